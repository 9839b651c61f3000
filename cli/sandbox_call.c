/* sandbox_call.c - see sandbox_call.h. */
#include "sandbox_call.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "colour.h"
#include "json_scan.h"
#include "output.h"

int sandbox_complain(const char *format, ...)
{
    va_list arguments;

    (void)fprintf(stderr, "%serror:%s ", colour(STDERR_FILENO, COLOUR_RED),
                  colour(STDERR_FILENO, COLOUR_NONE));
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputs("\n", stderr);
    return EXIT_CODE_FAILED;
}

int sandbox_print(const void *text, size_t size)
{
    int result = output_write(STDOUT_FILENO, text, size);

    return result < 0 ? sandbox_complain("cannot write to stdout: %s", strerror(-result))
                      : EXIT_CODE_DONE;
}

int sandbox_printf(const char *format, ...)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    va_list arguments;
    int result;

    va_start(arguments, format);
    result = buf_vprintf(&text, format, arguments);
    va_end(arguments);
    return result < 0 ? sandbox_complain("%s", strerror(-result))
                      : sandbox_print(text.data, text.size);
}

struct span sandbox_result(const struct client_call *call)
{
    return (struct span){ (const char *)call->answer.data, call->answer.size };
}

int sandbox_envelope(const struct client_call *call, struct buf *ret_json,
                     struct span *ret_envelope)
{
    int result = output_envelope(sandbox_result(call), ret_json);

    if (result == 0)
        result = json_scan((const char *)ret_json->data, ret_json->size, ret_envelope, NULL);
    return result;
}

int sandbox_complain_of(struct span envelope)
{
    _cleanup_(buf_done)
    struct buf code = { 0 }, message = { 0 };

    if (output_member_text(envelope, "code", &code) < 0 ||
        output_member_text(envelope, "message", &message) < 0 || !buf_text(&code) ||
        !buf_text(&message))
        return sandbox_complain("%s", strerror(ENOMEM));
    if (code.size == 0)
        return sandbox_complain("%s", buf_text(&message));
    return sandbox_complain("[%s] %s", buf_text(&code), buf_text(&message));
}

static int complain_of_error(const struct client_call *call)
{
    _cleanup_(buf_done)
    struct buf json = { 0 };
    struct span envelope;

    if (sandbox_envelope(call, &json, &envelope) < 0)
        return sandbox_complain("%s", strerror(ENOMEM));
    return sandbox_complain_of(envelope);
}

int sandbox_outcome(const struct client *client, const struct client_call *call,
                    enum client_outcome outcome, const char *function, uint64_t timeout_ms)
{
    char text[CLIENT_TEXT_MAX_BYTES];

    if (outcome == CLIENT_INTERRUPTED)
        return 128 + client->interrupt.caught;
    if (outcome != CLIENT_ANSWERED) {
        client_explain(client, outcome, function, timeout_ms, text);
        return sandbox_complain("%s", text);
    }
    return call->is_error ? complain_of_error(call) : EXIT_CODE_DONE;
}

int sandbox_call(struct client *client, struct client_call *call, const char *function,
                 struct payload *payload, uint64_t timeout_ms)
{
    struct client_request request = { .function = function };
    enum client_outcome outcome;
    int result = payload_end(payload, &request.payload);

    if (result < 0)
        return sandbox_complain("%s", strerror(-result));
    outcome = client_run(client, call, &request, client_now_ms(client) + timeout_ms);
    return sandbox_outcome(client, call, outcome, function, timeout_ms);
}

void sandbox_put_env(struct payload *payload, const struct option_texts *env)
{
    if (env->count > 0)
        payload_texts(payload, "env", env->items, env->count);
}
