/* image_call.c - see image_call.h. */
#include "image_call.h"

#include "json_scan.h"
#include "output.h"
#include "sandbox_call.h"

/* The name of the adapter, which is the namespace of its own operations. */
static int adapter_name(struct client *client, struct buf *ret_name)
{
    struct client_call info = { 0 };
    struct payload nothing = { 0 };
    int code = sandbox_call(client, &info, "sandbox::adapter::info", &nothing,
                            SANDBOX_CALL_TIMEOUT_MS);

    if (code == EXIT_CODE_DONE &&
        (json_kind(sandbox_result(&info)) != JSON_OBJECT ||
         output_member_text(sandbox_result(&info), "adapter", ret_name) < 0))
        code = sandbox_complain("sandbox::adapter::info gave no answer that can be read");
    if (code == EXIT_CODE_DONE && ret_name->size == 0)
        code = sandbox_complain("the router has no adapter; `sandbox.adapter` in its settings "
                                "names one");
    client_call_done(&info);
    payload_done(&nothing);
    return code;
}

/* The line of progress is gone before anything is said. */
static int call_with_progress(struct client *client, struct client_call *call,
                              const char *function, struct payload *payload,
                              struct progress *progress)
{
    struct client_request request = { .function = function };
    enum client_outcome outcome = CLIENT_LOST;

    if (payload_end(payload, &request.payload) == 0)
        outcome = client_run(client, call, &request,
                             client_now_ms(client) + IMAGE_CALL_TIMEOUT_MS);
    if (progress)
        progress_end(progress, NULL);
    return sandbox_outcome(client, call, outcome, function, IMAGE_CALL_TIMEOUT_MS);
}

int image_call(struct client *client, struct client_call *call, const char *operation,
               struct payload *payload, struct progress *progress)
{
    _cleanup_(buf_done)
    struct buf function = { 0 };
    int code = adapter_name(client, &function);

    if (code != EXIT_CODE_DONE) {
        if (progress)
            progress_end(progress, NULL);
        return code;
    }
    if (buf_printf(&function, "::image::%s", operation) < 0)
        return sandbox_complain("no memory");
    code = call_with_progress(client, call, buf_text(&function), payload, progress);
    if (code == EXIT_CODE_DONE && json_kind(sandbox_result(call)) != JSON_OBJECT)
        return sandbox_complain("%s: the reply is no object", buf_text(&function));
    return code;
}
