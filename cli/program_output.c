/* program_output.c - see program_output.h. */
#include "program_output.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "client_output.h"
#include "json_scan.h"
#include "output.h"
#include "sandbox_call.h"

static int write_stream(struct client *client, struct span reply, const char *name, int fd)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    int result = output_member_text(reply, name, &text);

    return result == 0 ? client_output(client, fd, text.data, text.size) : result;
}

/* EXIT_CODE_DONE: both are written. Else the exit code, after saying why. */
static int write_streams(struct client *client, struct span reply)
{
    int result = write_stream(client, reply, "stdout", STDOUT_FILENO);

    if (result == 0)
        result = write_stream(client, reply, "stderr", STDERR_FILENO);
    if (result == -EINTR)
        return 128 + client->interrupt.caught;
    return result < 0
               ? sandbox_complain("cannot write the program's output: %s", strerror(-result))
               : EXIT_CODE_DONE;
}

static void tell_truncated(struct span reply, const char *key, const char *stream,
                           const char *what)
{
    if (span_equals(json_get(reply, key), "true"))
        (void)fprintf(stderr, "warning: %s is truncated: %s\n", stream, what);
}

static void tell_all_truncated(struct span reply, const char *what)
{
    tell_truncated(reply, "stdout_truncated", "stdout", what);
    tell_truncated(reply, "stderr_truncated", "stderr", what);
}

static int exit_code_of(struct span reply)
{
    uint64_t code;

    if (span_equals(json_get(reply, "timed_out"), "true"))
        return EXIT_CODE_TIMED_OUT;
    if (json_as_u64(json_get(reply, "exit_code"), &code) < 0)
        return sandbox_complain("the program's exit code is not known");
    return (int)(code & 0xFF);
}

/* A timeout comes with what was written last. */
static int tell_error(struct client *client, const struct client_call *call)
{
    _cleanup_(buf_done)
    struct buf json = { 0 };
    struct span envelope, partial;
    int code;

    if (sandbox_envelope(call, &json, &envelope) < 0)
        return sandbox_complain("no memory");
    if (!json_string_equals(json_get(envelope, "code"), "S200"))
        return sandbox_outcome(client, call, CLIENT_ANSWERED, "", 0);
    partial = json_get(envelope, "partial");
    if (partial.data && json_kind(partial) == JSON_OBJECT) {
        code = write_streams(client, partial);
        if (code != EXIT_CODE_DONE)
            return code;
        tell_all_truncated(partial, "its beginning is missing");
    }
    (void)sandbox_outcome(client, call, CLIENT_ANSWERED, "", 0); /* always a failure here */
    return EXIT_CODE_TIMED_OUT;
}

int program_output(struct client *client, const struct client_call *call)
{
    struct span reply = sandbox_result(call);
    int code;

    if (call->is_error)
        return tell_error(client, call);
    if (json_kind(reply) != JSON_OBJECT)
        return sandbox_complain("the reply is no object");
    code = write_streams(client, reply);
    if (code != EXIT_CODE_DONE)
        return code;
    tell_all_truncated(reply, "its end is missing");
    return exit_code_of(reply);
}

int program_result(struct span result)
{
    struct span reply = json_get(result, "reply"), error = json_get(result, "error");

    if (reply.data && json_kind(reply) == JSON_OBJECT)
        return exit_code_of(reply);
    if (!error.data || json_kind(error) != JSON_OBJECT)
        return sandbox_complain("the program's result is neither reply nor error");
    (void)sandbox_complain_of(error); /* always a failure here */
    return json_string_equals(json_get(error, "code"), "S200") ? EXIT_CODE_TIMED_OUT
                                                               : EXIT_CODE_FAILED;
}
