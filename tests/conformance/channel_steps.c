/* channel_steps.c - see channel_steps.h. */

#include "channel_steps.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "match.h"

#define STREAM_TIMEOUT_MS 60000

/* A channel that the rule made; its writer's end once it is used. */
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

bool channel_step_make(struct play *play, const struct yaml_node *step, struct buf *why)
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

static int send_bytes(struct native_stream *stream, uint64_t total)
{
    uint8_t chunk[65536];
    int ret = 0;
    for (uint64_t sent = 0; ret == 0 && sent < total; sent += sizeof(chunk)) {
        size_t size = total - sent < sizeof(chunk) ? total - sent : sizeof(chunk);
        fill_bytes(chunk, size, sent);
        ret = native_stream_write(stream, chunk, size, STREAM_TIMEOUT_MS);
    }
    return ret;
}

bool channel_step_send(struct play *play, const struct yaml_node *step, struct buf *why)
{
    struct native_stream *stream = writer_of(play, text_of(step, "send"), why);
    const char *text = text_of(step, "text");
    const char *bytes = text_of(step, "bytes");
    if (!stream)
        return false;
    int ret = text ? native_stream_write(stream, text, strlen(text), STREAM_TIMEOUT_MS)
                   : send_bytes(stream, bytes ? strtoull(bytes, NULL, 10) : 0);
    if (ret < 0)
        (void)buf_printf(why, " sending failed: %s %s", strerror(-ret),
                         native_stream_reason(stream));
    return ret == 0;
}

/* For a reader that must give up before so many bytes. */
bool channel_step_overfill(struct play *play, const struct yaml_node *step, struct buf *why)
{
    struct native_stream *stream = writer_of(play, text_of(step, "overfill"), why);
    const char *bytes = text_of(step, "bytes");
    int ret = stream ? send_bytes(stream, bytes ? strtoull(bytes, NULL, 10) : 0) : -EINVAL;
    if (stream && ret != -ECONNRESET)
        (void)buf_append_text(why, " the reader took all of it");
    return ret == -ECONNRESET;
}

bool channel_step_finish(struct play *play, const struct yaml_node *step, struct buf *why)
{
    struct native_stream *stream = writer_of(play, text_of(step, "finish"), why);
    return stream && native_stream_close(stream) == 0;
}

bool channel_step_drop(struct play *play, const struct yaml_node *step, struct buf *why)
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

static bool received_matches(const char *pattern, const struct buf *data, struct buf *why)
{
    json_t *value = json_loadb((const char *)data->data, data->size, 0, NULL);
    bool matches = value && match_text(pattern, value, why);
    if (!value)
        (void)buf_printf(why, " what was received is no JSON: %.*s", (int)data->size,
                         (const char *)data->data);
    json_decref(value);
    return matches;
}

static bool received_is_right(const struct yaml_node *step, const struct buf *data,
                              struct buf *why)
{
    const char *text = text_of(step, "text");
    const char *bytes = text_of(step, "bytes");
    const char *json = text_of(step, "json");
    const char *count = text_of(step, "count");
    if (json)
        return received_matches(json, data, why);
    size_t wanted = count   ? strtoull(count, NULL, 10)
                    : text  ? strlen(text)
                    : bytes ? strtoull(bytes, NULL, 10)
                            : 0;
    if (data->size != wanted) {
        (void)buf_printf(why, " received %zu bytes, wants %zu", data->size, wanted);
        return false;
    }
    if (count)
        return true;
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

bool channel_step_receive(struct play *play, const struct yaml_node *step, struct buf *why)
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

void channel_steps_done(struct play *play)
{
    while (play->streams) {
        struct played_stream *stream = play->streams;
        play->streams = stream->next;
        native_stream_free(stream->stream);
        free(stream);
    }
}
