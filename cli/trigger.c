/* trigger.c - `iii trigger`: one call, its result on stdout (iii-wire 5). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "command.h"
#include "function_help.h"
#include "hint.h"
#include "json_scan.h"
#include "output.h"
#include "payload_input.h"

#define HELP_TIMEOUT_MS 3000u

struct trigger_options {
    struct common_options common;
    const char *json;
    const char *name_space;
    struct option_number timeout_ms;
};

static int complain(const char *text)
{
    (void)fprintf(stderr, "Error: %s\n", text);
    return EXIT_CODE_FAILED;
}

static int print_json(struct span value, FILE *before, const char *prefix, int fd)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    int result = output_format(value, &text);

    if (result == 0 && prefix)
        (void)fputs(prefix, before); /* stderr: unbuffered */
    if (result == 0)
        result = output_write(fd, text.data, text.size);
    return result;
}

static int print_error(struct span error, const char *function)
{
    _cleanup_(buf_done)
    struct buf envelope = { 0 };
    struct span value = { 0 };
    int result = output_envelope(error, &envelope);

    if (result == 0 && json_scan((const char *)envelope.data, envelope.size, &value, NULL) == 0)
        result = print_json(value, stderr, "Error: ", STDERR_FILENO);
    if (json_string_equals(json_get(error, "code"), "function_not_found"))
        hint_function(function);
    return result < 0 ? complain(strerror(-result)) : EXIT_CODE_FAILED;
}

static int print_result(struct span value)
{
    char text[CLIENT_TEXT_MAX_BYTES];
    int result = print_json(value, NULL, NULL, STDOUT_FILENO);

    (void)snprintf(text, sizeof(text), "cannot write to stdout: %s", strerror(-result));
    return result < 0 ? complain(text) : EXIT_CODE_DONE;
}

/* The answer's buffer holds checked JSON: a part of the frame. */
static int print_answer(const struct client_call *call, const char *function)
{
    struct span value = { .data = (const char *)call->answer.data, .size = call->answer.size };

    if (call->is_error)
        return print_error(value, function);
    if (json_kind(value) == JSON_NULL)
        return EXIT_CODE_DONE;
    return print_result(value);
}

static int call(struct client *client, const struct client_request *request,
                uint64_t timeout_ms)
{
    char text[CLIENT_TEXT_MAX_BYTES];
    struct client_call call = { 0 };
    enum client_outcome outcome = client_run(client, &call, request,
                                             client_now_ms(client) + timeout_ms);
    int code;

    if (outcome == CLIENT_ANSWERED) {
        interrupt_release(&client->interrupt);
        code = print_answer(&call, request->function);
        client_close(client);
    } else if (outcome == CLIENT_INTERRUPTED) {
        code = 128 + client->interrupt.caught;
    } else {
        client_explain(client, outcome, request->function, timeout_ms, text);
        code = complain(text);
    }
    client_call_done(&call);
    return code;
}

static int put_payload(const struct args *args, struct buf *ret_payload)
{
    _cleanup_(buf_done)
    struct buf error = { 0 };
    int result = args_payload(args, ret_payload, &error);

    if (result == 0) {
        hint_fields(args);
        return EXIT_CODE_DONE;
    }
    return complain(error.size > 0 ? buf_text(&error) : strerror(-result));
}

static int make_payload(const struct command_line *line, struct buf *ret_payload)
{
    const struct trigger_options *options = line->options;
    _cleanup_(buf_done)
    struct buf input = { 0 };
    _cleanup_(buf_done)
    struct buf source = { 0 };
    struct args args = {
        .function = line->rest.words[0],
        .json = span_of_text(options->json),
        .source = "--json",
        .pairs = line->rest.words + 1,
        .pair_count = line->rest.word_count - 1,
    };
    int code = EXIT_CODE_DONE;

    if (!options->json || !payload_input_is(options->json))
        return put_payload(&args, ret_payload);
    code = payload_input_read(line->client, options->json, options->timeout_ms.value, &input);
    if (code != EXIT_CODE_DONE)
        return code;
    if (buf_printf(&source, "--json %s", options->json) < 0 || !buf_text(&input))
        return complain(strerror(ENOMEM));
    args.json = (struct span){ buf_text(&input), input.size };
    args.source = buf_text(&source);
    return put_payload(&args, ret_payload);
}

static int run_trigger(const struct command_line *line)
{
    const struct trigger_options *options = line->options;
    _cleanup_(buf_done)
    struct buf payload = { 0 };
    struct client_request request = {
        .function = line->rest.words[0],
        .name_space = options->name_space,
    };
    int code = make_payload(line, &payload);

    if (code != EXIT_CODE_DONE)
        return code;
    request.payload = (struct span){ (const char *)payload.data, payload.size };
    return call(line->client, &request, options->timeout_ms.value);
}

/* The built-in tables answer as well, so nobody has to wait long for the router's. */
static int explain_function(const struct command_line *line)
{
    const struct trigger_options *options = line->options;

    return function_help(
        line->client, options->timeout_ms.given ? options->timeout_ms.value : HELP_TIMEOUT_MS,
        line->rest.words[0]);
}

static const struct option_row rows[] = {
    { .name = "json",
      .kind = OPTION_TEXT,
      .offset = offsetof(struct trigger_options, json),
      .value = "JSON",
      .text = "the payload, or what the pairs are added to; @FILE: of a file, -: of stdin",
      .any_bytes = true },
    { .name = "timeout-ms",
      .kind = OPTION_NUMBER,
      .offset = offsetof(struct trigger_options, timeout_ms),
      .value = "N",
      .text = "how long to wait, connecting included (30000)",
      .min = 1,
      .max = UINT32_MAX },
    { .name = "namespace",
      .letter = 'n',
      .kind = OPTION_TEXT,
      .offset = offsetof(struct trigger_options, name_space),
      .value = "NS",
      .text = "sent as the call's namespace" },
};

const struct command command_trigger = {
    .name = "trigger",
    .aliases = { "t", "call" },
    .path = "iii trigger",
    .text = "Call a function and print its result as JSON.",
    .details =
        "The table of FUNCTION says which values are text and which are numbers, lists or\n"
        "objects; values of keys in no table are JSON if they parse, else text.\n"
        "--help behind FUNCTION explains that: what it does and which keys it has.\n"
        "III_AUTH_TOKEN holds the bearer token, if the router wants one.\n"
        "\n"
        "  iii trigger sandbox::run image=python lang=python code='print(2+2)'\n"
        "  iii trigger sandbox::exec --json @call.json sandbox_id=$SB\n"
        "  iii trigger sandbox::fs::write -h\n",
    .words = { { .name = "FUNCTION", .kind = WORD_FUNCTION },
               { .name = "KEY=VALUE", .kind = WORD_FIELD, .repeated = true } },
    .tail = TAIL_WORDS,
    COMMAND_OPTIONS(struct trigger_options, rows, .timeout_ms = { .value = 30000 }),
    .explain = explain_function,
    .run = run_trigger,
};
