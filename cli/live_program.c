/* live_program.c - see live_program.h. */
#include "live_program.h"

#include <errno.h>
#include <unistd.h>

#include "json_scan.h"
#include "live_input.h"
#include "program_output.h"
#include "sandbox_call.h"
#include "sink.h"

#define RESULT_MAX_BYTES (4u * 1024 * 1024)

enum { STREAM_RESULT, STREAM_STDOUT, STREAM_STDERR, STREAMS };

struct live_stream {
    struct transfer transfer;
    struct sink sink; /* fd -1: into `text` */
    struct buf text;
};

struct live_program {
    struct client *client;
    struct live_stream streams[STREAMS];
    struct live_input input;
};

static bool has_feature(struct span reply, const char *name)
{
    struct span info = json_kind(reply) == JSON_OBJECT ? json_get(reply, "info") : reply;
    struct json_iterator iterator;
    struct span features, key, feature;

    if (!info.data || json_kind(info) != JSON_OBJECT)
        return false;
    features = json_get(info, "features");
    if (!features.data || json_kind(features) != JSON_ARRAY)
        return false;
    iterator = json_iterate(features);
    while (json_next(&iterator, &key, &feature)) {
        if (json_string_equals(feature, name))
            return true;
    }
    return false;
}

bool live_program_possible(struct client *client)
{
    struct client_request request = { .function = "sandbox::adapter::info" };
    uint64_t deadline_ms = client_now_ms(client) + SANDBOX_CALL_TIMEOUT_MS;
    struct client_call call = { 0 };
    struct payload payload = { 0 };
    bool possible = payload_end(&payload, &request.payload) == 0 &&
                    client_run(client, &call, &request, deadline_ms) == CLIENT_ANSWERED &&
                    !call.is_error && has_feature(sandbox_result(&call), "exec_stream");

    client_call_done(&call);
    payload_done(&payload);
    return possible;
}

/* The streams. */

static void fail_to_write(struct live_stream *stream, int error)
{
    transfer_fail(&stream->transfer, "cannot write the program's output: %s", strerror(-error));
}

static void on_message(void *ctx, bool is_text, const uint8_t *data, size_t size)
{
    struct live_stream *stream = ctx;
    int result;

    if (is_text) {
        transfer_take_text(&stream->transfer, (struct span){ (const char *)data, size });
        return;
    }
    if (stream->sink.fd >= 0)
        result = sink_write(&stream->sink, data, size);
    else
        result = stream->text.size + size > RESULT_MAX_BYTES
                     ? -EMSGSIZE
                     : buf_append(&stream->text, data, size);
    if (result < 0)
        fail_to_write(stream, result);
    else if (sink_is_full(&stream->sink))
        web_socket_pause(stream->transfer.socket);
}

/* The reader of our output caught up. */
static void on_drained(void *ctx, int error)
{
    struct live_stream *stream = ctx;

    if (error < 0)
        fail_to_write(stream, error);
    if (stream->transfer.socket)
        web_socket_resume(stream->transfer.socket);
    else
        stream->transfer.over = true;
}

static void on_closed(void *ctx, unsigned code, const char *why)
{
    struct live_stream *stream = ctx;

    web_socket_free(take_ptr(stream->transfer.socket));
    stream->transfer.over = !sink_is_full(&stream->sink); /* else on_drained() */
    if (code != WEBSOCKET_CLOSE_NORMAL)
        transfer_fail(&stream->transfer, "the channel broke: %s", *why ? why : "no reason");
}

static bool all_over(const void *ctx)
{
    const struct live_program *program = ctx;
    bool over = true;

    for (int i = 0; i < STREAMS; i++) {
        if (program->streams[i].transfer.failed)
            return true;
        over = over && program->streams[i].transfer.over;
    }
    return over;
}

static int open_streams(struct live_program *program, struct span reply)
{
    static const struct web_socket_events events = {
        .message = on_message,
        .closed = on_closed,
    };
    static const char *const names[STREAMS] = {
        [STREAM_RESULT] = "result_stream",
        [STREAM_STDOUT] = "stdout_stream",
        [STREAM_STDERR] = "stderr_stream",
    };

    for (int i = 0; i < STREAMS; i++) {
        struct span ref = json_get(reply, names[i]);
        int result = -EBADMSG;

        if (ref.data && json_kind(ref) == JSON_OBJECT)
            result = transfer_open(&program->streams[i].transfer, ref, false, &events,
                                   &program->streams[i]);
        if (result < 0)
            return sandbox_complain("%s: %s", names[i], strerror(-result));
    }
    return EXIT_CODE_DONE;
}

/* The end: what the result says, unless something of ours failed. */
static int conclude(struct live_program *program)
{
    const struct buf *text = &program->streams[STREAM_RESULT].text;
    struct span result;

    for (int i = STREAMS - 1; i >= 0; i--) {
        if (program->streams[i].transfer.failed)
            return sandbox_complain("%s", program->streams[i].transfer.why);
    }
    if (json_scan((const char *)text->data, text->size, &result, NULL) < 0 ||
        json_kind(result) != JSON_OBJECT)
        return sandbox_complain("the program's result is no JSON");
    return program_result(result);
}

static int follow(struct live_program *program, struct span reply, uint64_t deadline_ms,
                  uint64_t wait_ms)
{
    enum client_outcome outcome;
    int code = open_streams(program, reply);

    if (code != EXIT_CODE_DONE)
        return code;
    outcome = client_wait_for(program->client, all_over, program, deadline_ms, false);
    if (outcome == CLIENT_ANSWERED)
        return conclude(program);
    return sandbox_outcome(program->client, NULL, outcome, "sandbox::exec", wait_ms);
}

/* The call. */

/* EXIT_CODE_DONE: our stdin goes into a channel that the payload names. */
static int begin_input(struct live_program *program, struct payload *payload)
{
    struct client_call create = { 0 };
    struct payload nothing = { 0 };
    int code = sandbox_call(program->client, &create, "engine::channels::create", &nothing,
                            SANDBOX_CALL_TIMEOUT_MS);
    int result;

    if (code == EXIT_CODE_DONE) {
        payload_json(payload, "stdin_stream", json_get(sandbox_result(&create), "reader"));
        result = live_input_begin(&program->input, json_get(sandbox_result(&create), "writer"));
        if (result < 0)
            code = sandbox_complain("stdin: %s", strerror(-result));
    }
    client_call_done(&create);
    payload_done(&nothing);
    return code;
}

static int call_and_follow(struct live_program *program, const struct live_program_spec *spec)
{
    uint64_t deadline_ms = client_now_ms(program->client) + spec->wait_ms;
    struct client_request request = { .function = "sandbox::exec" };
    enum client_outcome outcome = CLIENT_LOST;
    struct client_call call = { 0 };
    int code;

    payload_bool(spec->payload, "stream", true);
    if (payload_end(spec->payload, &request.payload) == 0)
        outcome = client_run(program->client, &call, &request, deadline_ms);
    if (outcome != CLIENT_ANSWERED)
        code = sandbox_outcome(program->client, &call, outcome, request.function,
                               spec->wait_ms);
    else if (call.is_error)
        code = program_output(program->client, &call);
    else
        code = follow(program, sandbox_result(&call), deadline_ms, spec->wait_ms);
    client_call_done(&call);
    return code;
}

static void prepare_stream(struct live_program *program, int index)
{
    static const int fds[STREAMS] = {
        [STREAM_RESULT] = -1,
        [STREAM_STDOUT] = STDOUT_FILENO,
        [STREAM_STDERR] = STDERR_FILENO,
    };
    struct live_stream *stream = &program->streams[index];

    stream->transfer.client = program->client;
    stream->sink = (struct sink){
        .loop = program->client->loop,
        .fd = fds[index],
        .drained = on_drained,
        .ctx = stream,
    };
}

int live_program_run(struct client *client, const struct live_program_spec *spec)
{
    struct live_program program = {
        .client = client,
    };
    int code = EXIT_CODE_DONE;

    program.input.transfer.client = client;
    for (int i = 0; i < STREAMS; i++)
        prepare_stream(&program, i);
    if (spec->input)
        code = begin_input(&program, spec->payload);
    if (code == EXIT_CODE_DONE)
        code = call_and_follow(&program, spec);
    live_input_done(&program.input);
    for (int i = 0; i < STREAMS; i++) {
        web_socket_free(program.streams[i].transfer.socket);
        sink_done(&program.streams[i].sink);
        buf_done(&program.streams[i].text);
    }
    return code;
}
