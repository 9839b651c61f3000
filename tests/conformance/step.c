/* step.c - see step.h. */

#include "step.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <time.h>

#define ANSWER_TIMEOUT_MS                                                                      \
    180000 /* longer than any limit of the contract that a case waits for */
#define STREAM_TIMEOUT_MS 60000
#define REPEAT_PAUSE_MS 200

struct played_call {
    struct played_call *next;
    const char *name;
    struct native_call *call;
    uint64_t started_ms;
};

struct played_stream {
    struct played_stream *next;
    const char *name;
    struct native_stream *stream;
};

static const char *text_of(const struct yaml_node *map, const char *key)
{
    const struct yaml_node *node = yaml_get(map, key);
    return node ? node->text : NULL;
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* `sandbox::` goes before an operation; names with a namespace of their own stay. */
static void function_name(const struct play *play, const char *name, struct buf *to)
{
    _cleanup_(buf_done)
    struct buf expanded = { 0 };
    (void)variables_expand(&play->variables, name, &expanded);
    const char *text = buf_text(&expanded);
    size_t prefix = strlen(play->adapter_name);
    bool own = strncmp(text, "engine::", 8) == 0 || strncmp(text, "sandbox::", 9) == 0 ||
               (prefix > 0 && strncmp(text, play->adapter_name, prefix) == 0);
    (void)buf_printf(to, "%s%s", own ? "" : "sandbox::", text);
    const char *last = buf_text(to) + (strncmp(buf_text(to), "sandbox::", 9) == 0 ? 9 : 0);
    const struct operation *operation = operation_find(last, strlen(last));
    if (operation)
        play->coverage->operations[operation->id] = true;
}

static int start_call(struct play *play, const struct yaml_node *step, struct native_call **ret)
{
    _cleanup_(buf_done)
    struct buf function = { 0 };
    _cleanup_(buf_done)
    struct buf body = { 0 };
    const char *text = text_of(step, "body");
    function_name(play, text_of(step, "call"), &function);
    (void)buf_text(&body);
    if (variables_expand(&play->variables, text ? text : "{}", &body) < 0)
        return -ENOMEM;
    return native_call_start(play->client, buf_text(&function), body.data, body.size, ret);
}

static bool check(struct play *play, const struct yaml_node *step, struct native_call *call,
                  uint64_t started_ms, struct buf *why)
{
    int ret = native_call_wait(call, ANSWER_TIMEOUT_MS);
    if (ret < 0) {
        (void)buf_printf(why, " no answer: %s", strerror(-ret));
        return false;
    }
    return answer_check(call,
                        &(struct expectation){ .step = step,
                                               .variables = &play->variables,
                                               .coverage = play->coverage,
                                               .transcript = play->transcript,
                                               .duration_ms = now_ms() - started_ms },
                        why);
}

static bool step_call(struct play *play, const struct yaml_node *step, struct buf *why)
{
    _cleanup_(native_call_freep)
    struct native_call *call = NULL;
    uint64_t started_ms = now_ms();
    int ret = start_call(play, step, &call);
    if (ret < 0) {
        (void)buf_printf(why, " not sent: %s", strerror(-ret));
        return false;
    }
    return check(play, step, call, started_ms, why);
}

/* For states that no event tells a caller of, such as the reaper's. */
static bool step_call_eventually(struct play *play, const struct yaml_node *step,
                                 uint64_t limit_ms, struct buf *why)
{
    uint64_t end = now_ms() + limit_ms;
    size_t mark = why->size;
    struct buf *transcript = play->transcript;
    play->transcript = NULL;
    bool right = step_call(play, step, why);
    while (!right && now_ms() < end) {
        why->size = mark;
        (void)nanosleep(&(struct timespec){ .tv_nsec = REPEAT_PAUSE_MS * 1000000L }, NULL);
        right = step_call(play, step, why);
    }
    play->transcript = transcript;
    return right;
}

static bool step_start(struct play *play, const struct yaml_node *step, struct buf *why)
{
    struct played_call *played = calloc(1, sizeof(*played));
    if (!played)
        return false;
    played->name = text_of(step, "start");
    played->started_ms = now_ms();
    played->next = play->calls;
    play->calls = played;
    int ret = start_call(play, step, &played->call);
    if (ret < 0)
        (void)buf_printf(why, " not sent: %s", strerror(-ret));
    return ret == 0;
}

static struct played_call *played_call(struct play *play, const char *name, struct buf *why)
{
    struct played_call *call = play->calls;
    while (call && strcmp(call->name, name) != 0)
        call = call->next;
    if (!call)
        (void)buf_printf(why, " the case has no started call %s", name);
    return call;
}

static bool step_await(struct play *play, const struct yaml_node *step, struct buf *why)
{
    struct played_call *call = played_call(play, text_of(step, "await"), why);
    return call && check(play, step, call->call, call->started_ms, why);
}

static bool step_cancel(struct play *play, const struct yaml_node *step, struct buf *why)
{
    struct played_call *call = played_call(play, text_of(step, "cancel"), why);
    if (call)
        native_call_cancel(call->call);
    return call != NULL;
}

/* The fixed pseudo-random stream: byte I is a function of I alone. */
static void fill_bytes(uint8_t *to, size_t size, uint64_t offset)
{
    for (size_t i = 0; i < size; i++) {
        uint64_t x = (offset + i) * 0x9e3779b97f4a7c15u;
        to[i] = (uint8_t)((x ^ (x >> 29)) >> 17);
    }
}

static bool open_ref(struct play *play, const char *ref, bool write, struct native_stream **ret)
{
    json_t *value = json_loads(ref, 0, NULL);
    const char *id = json_string_value(json_object_get(value, "channel_id"));
    const char *key = json_string_value(json_object_get(value, "access_key"));
    bool opened = id && key && native_stream_open(play->client, id, key, write, ret) == 0;
    json_decref(value);
    return opened;
}

static bool step_channel(struct play *play, const struct yaml_node *step, struct buf *why)
{
    static const char *const ends[] = { "reader", "writer" };
    _cleanup_(buf_done)
    struct buf body = { 0 };
    const char *name = text_of(step, "channel");
    if (!play_call(play, "engine::channels::create", "{}", &body)) {
        (void)buf_printf(why, " no channel: %s", buf_text(&body));
        return false;
    }
    json_t *refs = json_loads(buf_text(&body), 0, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        char variable[64];
        snprintf(variable, sizeof(variable), "%s.%s", name, ends[i]);
        char *text = json_dumps(json_object_get(refs, ends[i]), JSON_COMPACT);
        (void)variables_set(&play->variables, variable, text ? text : "");
        free(text);
    }
    json_decref(refs);
    struct played_stream *played = calloc(1, sizeof(*played));
    if (!played)
        return false;
    *played = (struct played_stream){ .name = name, .next = play->streams };
    play->streams = played;
    return true;
}

/* The writer's end of a channel of this rule, attached at its first use. */
static struct native_stream *writer_of(struct play *play, const char *name, struct buf *why)
{
    struct played_stream *played = play->streams;
    while (played && strcmp(played->name, name) != 0)
        played = played->next;
    if (!played) {
        (void)buf_printf(why, " the case has no channel %s", name);
        return NULL;
    }
    char variable[64];
    snprintf(variable, sizeof(variable), "%s.writer", name);
    const char *ref = variables_get(&play->variables, variable, strlen(variable));
    if (!played->stream && !open_ref(play, ref, true, &played->stream))
        (void)buf_append_text(why, " the writer could not attach");
    return played->stream;
}

static bool step_send(struct play *play, const struct yaml_node *step, struct buf *why)
{
    struct native_stream *stream = writer_of(play, text_of(step, "send"), why);
    const char *text = text_of(step, "text");
    const char *bytes = text_of(step, "bytes");
    uint64_t total = bytes ? strtoull(bytes, NULL, 10) : 0;
    uint8_t chunk[65536];
    int ret = stream && text
                  ? native_stream_write(stream, text, strlen(text), STREAM_TIMEOUT_MS)
                  : 0;
    for (uint64_t sent = 0; stream && ret == 0 && sent < total; sent += sizeof(chunk)) {
        size_t size = total - sent < sizeof(chunk) ? total - sent : sizeof(chunk);
        fill_bytes(chunk, size, sent);
        ret = native_stream_write(stream, chunk, size, STREAM_TIMEOUT_MS);
    }
    if (ret < 0)
        (void)buf_printf(why, " sending failed: %s %s", strerror(-ret),
                         native_stream_reason(stream));
    return stream && ret == 0;
}

static bool step_finish(struct play *play, const struct yaml_node *step, struct buf *why)
{
    struct native_stream *stream = writer_of(play, text_of(step, "finish"), why);
    return stream && native_stream_close(stream) == 0;
}

static bool step_drop(struct play *play, const struct yaml_node *step, struct buf *why)
{
    const char *name = text_of(step, "drop");
    if (!writer_of(play, name, why))
        return false;
    for (struct played_stream *played = play->streams; played; played = played->next) {
        if (strcmp(played->name, name) == 0) {
            native_stream_free(played->stream);
            played->stream = NULL;
        }
    }
    return true;
}

static bool received_is_right(const struct yaml_node *step, const struct buf *data,
                              struct buf *why)
{
    const char *text = text_of(step, "text");
    const char *bytes = text_of(step, "bytes");
    size_t wanted = text ? strlen(text) : bytes ? strtoull(bytes, NULL, 10) : 0;
    if (data->size != wanted) {
        (void)buf_printf(why, " received %zu bytes, wants %zu", data->size, wanted);
        return false;
    }
    _cleanup_free_ uint8_t *expected = malloc(wanted + 1);
    if (!expected)
        return false;
    if (text)
        memcpy(expected, text, wanted);
    else
        fill_bytes(expected, wanted, 0);
    if (wanted == 0 || memcmp(expected, data->data, wanted) == 0)
        return true;
    (void)buf_append_text(why, " other bytes were received than wanted");
    return false;
}

static bool step_receive(struct play *play, const struct yaml_node *step, struct buf *why)
{
    const char *name = text_of(step, "receive");
    const char *ref = variables_get(&play->variables, name, strlen(name));
    const char *aborted = text_of(step, "aborted");
    _cleanup_(native_stream_freep)
    struct native_stream *stream = NULL;
    _cleanup_(buf_done)
    struct buf data = { 0 };
    uint8_t chunk[65536];
    ssize_t count;
    if (!ref || !open_ref(play, ref, false, &stream)) {
        (void)buf_printf(why, " %s is no ref to attach to", name);
        return false;
    }
    while ((count = native_stream_read(stream, chunk, sizeof(chunk), STREAM_TIMEOUT_MS)) > 0)
        (void)buf_append(&data, chunk, (size_t)count);
    if (aborted && count == -ECONNRESET)
        return true;
    if (aborted || count < 0) {
        (void)buf_printf(why, " the stream ended with %s %s", strerror((int)-count),
                         native_stream_reason(stream));
        return false;
    }
    return received_is_right(step, &data, why);
}

static bool play_step(struct play *play, const struct yaml_node *step, struct buf *why)
{
    static const struct {
        const char *key;
        bool (*run)(struct play *, const struct yaml_node *, struct buf *);
    } kinds[] = {
        { "start", step_start },     { "await", step_await },     { "cancel", step_cancel },
        { "channel", step_channel }, { "send", step_send },       { "finish", step_finish },
        { "drop", step_drop },       { "receive", step_receive },
    };
    uint64_t eventually_ms;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (yaml_get(step, kinds[i].key))
            return kinds[i].run(play, step, why);
    }
    const struct yaml_node *eventually = yaml_get(step, "eventually_ms");
    if (eventually && yaml_as_u64(eventually, &eventually_ms) == 0)
        return step_call_eventually(play, step, eventually_ms, why);
    if (yaml_get(step, "call"))
        return step_call(play, step, why);
    (void)buf_append_text(why, " the step is of no known kind");
    return false;
}

bool play_steps(struct play *play, const struct yaml_node *steps, struct buf *why)
{
    for (size_t i = 0; i < steps->count; i++) {
        (void)buf_printf(why, "step %zu (line %u):", i + 1, steps->items[i]->line);
        if (!play_step(play, steps->items[i], why))
            return false;
        buf_clear(why);
    }
    return true;
}

bool play_call(struct play *play, const char *function, const char *body, struct buf *ret_body)
{
    _cleanup_(native_call_freep)
    struct native_call *call = NULL;
    size_t size;
    int ret = native_call_start(play->client, function, body, strlen(body), &call);
    if (ret == 0)
        ret = native_call_wait(call, ANSWER_TIMEOUT_MS);
    if (ret < 0) {
        (void)buf_printf(ret_body, "no answer: %s", strerror(-ret));
        return false;
    }
    const char *text = native_call_body(call, &size);
    (void)buf_append(ret_body, text, size); /* a shorter text only worsens the report */
    return native_call_ok(call);
}

void play_done(struct play *play)
{
    while (play->calls) {
        struct played_call *call = play->calls;
        play->calls = call->next;
        native_call_free(call->call);
        free(call);
    }
    while (play->streams) {
        struct played_stream *stream = play->streams;
        play->streams = stream->next;
        native_stream_free(stream->stream);
        free(stream);
    }
    variables_done(&play->variables);
}
