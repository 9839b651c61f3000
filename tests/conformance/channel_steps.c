/* channel_steps.c - see channel_steps.h. */

#include "channel_steps.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "match.h"
#include "web_writer.h"

#define STREAM_TIMEOUT_MS 60000

/* A channel that the rule made, and its writer's end once it is used; or the reader's end of a
 * ref, attached and not yet read. */
struct played_stream {
    struct played_stream *next;
    const char *name;
    bool at_web;
    bool reads;
    struct native_stream *stream;
    struct web_writer *web; /* in its place, when at_web */
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

/* The writer's end, at the front that the case wants. */
static bool open_writer(struct play *play, const char *ref, struct played_stream *played)
{
    if (!played->at_web)
        return open_ref(play, ref, true, &played->stream);
    json_t *value = json_loads(ref, 0, NULL);
    const char *id, *key;
    uint16_t port = subject_web_port(play->subject);
    bool opened = json_unpack(value, "{s:s, s:s}", "channel_id", &id, "access_key", &key) ==
                      0 &&
                  port && web_writer_open(port, id, key, &played->web) == 0;
    json_decref(value);
    return opened;
}

static bool add_played(struct play *play, const struct played_stream *stream)
{
    struct played_stream *played = malloc(sizeof(*played));
    if (!played)
        return false;
    *played = *stream;
    played->next = play->streams;
    play->streams = played;
    return true;
}

static struct played_stream *find_played(const struct play *play, const char *name, bool reads)
{
    struct played_stream *played = play->streams;
    while (played && (played->reads != reads || strcmp(played->name, name) != 0))
        played = played->next;
    return played;
}

/* For refs that are made up, such as one with a wrong key. */
static int save_id(struct play *play, const char *name, const json_t *ref)
{
    char variable[64];
    const char *id = json_string_value(json_object_get(ref, "channel_id"));
    snprintf(variable, sizeof(variable), "%s.id", name);
    return variables_set(&play->variables, variable, id ? id : "");
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
    (void)save_id(play, name, json_object_get(refs, "reader"));
    json_decref(refs);
    const char *front = text_of(step, "front");
    bool at_web = front && strcmp(front, "web") == 0;
    return add_played(play, &(struct played_stream){ .name = name, .at_web = at_web });
}

/* The writer's end of a channel of this rule, attached at its first use. */
static struct played_stream *writer_of(struct play *play, const char *name, struct buf *why)
{
    struct played_stream *played = find_played(play, name, false);
    if (!played) {
        (void)buf_printf(why, " the case has no channel %s", name);
        return NULL;
    }
    if (played->stream || played->web)
        return played;
    char variable[64];
    snprintf(variable, sizeof(variable), "%s.writer", name);
    const char *ref = variables_get(&play->variables, variable, strlen(variable));
    if (open_writer(play, ref, played))
        return played;
    (void)buf_append_text(why, " the writer could not attach");
    return NULL;
}

static int write_data(const struct played_stream *played, const void *data, size_t size)
{
    return played->at_web ? web_writer_send(played->web, WEBSOCKET_BINARY, data, size)
                          : native_stream_write(played->stream, data, size, STREAM_TIMEOUT_MS);
}

static int send_bytes(const struct played_stream *played, uint64_t total)
{
    uint8_t chunk[65536];
    int ret = 0;
    for (uint64_t sent = 0; ret == 0 && sent < total; sent += sizeof(chunk)) {
        size_t size = total - sent < sizeof(chunk) ? total - sent : sizeof(chunk);
        fill_bytes(chunk, size, sent);
        ret = write_data(played, chunk, size);
    }
    return ret;
}

bool channel_step_send(struct play *play, const struct yaml_node *step, struct buf *why)
{
    const struct played_stream *played = writer_of(play, text_of(step, "send"), why);
    const char *text = text_of(step, "text");
    const char *bytes = text_of(step, "bytes");
    if (!played)
        return false;
    int ret = text ? write_data(played, text, strlen(text))
                   : send_bytes(played, bytes ? strtoull(bytes, NULL, 10) : 0);
    if (ret < 0)
        (void)buf_printf(why, " sending failed: %s %s", strerror(-ret),
                         played->stream ? native_stream_reason(played->stream) : "");
    return ret == 0;
}

/* A text message beside the data. */
bool channel_step_beside(struct play *play, const struct yaml_node *step, struct buf *why)
{
    const struct played_stream *played = writer_of(play, text_of(step, "beside"), why);
    const char *text = text_of(step, "text");
    if (!played || !played->web || !text) {
        (void)buf_append_text(why, " it needs a text and a channel with front: web");
        return false;
    }
    int ret = web_writer_send(played->web, WEBSOCKET_TEXT, text, strlen(text));
    if (ret < 0)
        (void)buf_printf(why, " sending failed: %s", strerror(-ret));
    return ret == 0;
}

/* For a reader that must give up before so many bytes. */
bool channel_step_overfill(struct play *play, const struct yaml_node *step, struct buf *why)
{
    const struct played_stream *played = writer_of(play, text_of(step, "overfill"), why);
    const char *bytes = text_of(step, "bytes");
    int ret = played ? send_bytes(played, bytes ? strtoull(bytes, NULL, 10) : 0) : -EINVAL;
    if (played && ret != -ECONNRESET)
        (void)buf_append_text(why, " the reader took all of it");
    return ret == -ECONNRESET;
}

bool channel_step_finish(struct play *play, const struct yaml_node *step, struct buf *why)
{
    const struct played_stream *played = writer_of(play, text_of(step, "finish"), why);
    if (!played)
        return false;
    int ret = played->at_web ? web_writer_finish(played->web)
                             : native_stream_close(played->stream);
    if (ret < 0)
        (void)buf_printf(why, " the end was not taken: %s", strerror(-ret));
    return ret == 0;
}

bool channel_step_drop(struct play *play, const struct yaml_node *step, struct buf *why)
{
    struct played_stream *played = writer_of(play, text_of(step, "drop"), why);
    if (!played)
        return false;
    native_stream_free(take_ptr(played->stream));
    web_writer_free(take_ptr(played->web));
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

static bool attach_reader(struct play *play, const char *name, struct native_stream **ret,
                          struct buf *why)
{
    const char *ref = variables_get(&play->variables, name, strlen(name));
    bool attached = ref && open_ref(play, ref, false, ret);
    if (!attached)
        (void)buf_printf(why, " %s is no ref to attach to", name);
    return attached;
}

/* Attaches and takes nothing yet. */
bool channel_step_open(struct play *play, const struct yaml_node *step, struct buf *why)
{
    struct played_stream played = { .name = text_of(step, "open"), .reads = true };
    return attach_reader(play, played.name, &played.stream, why) && add_played(play, &played);
}

/* TEXT, or `any`, must be in what the abort says. */
static bool abort_is_right(const struct native_stream *stream, const char *text,
                           struct buf *why)
{
    const char *code = native_stream_code(stream), *reason = native_stream_reason(stream);
    bool right = strcmp(text, "any") == 0 || strstr(code, text) || strstr(reason, text);
    if (!right)
        (void)buf_printf(why, " the abort says %s: %s, wants %s", code, reason, text);
    return right;
}

bool channel_step_receive(struct play *play, const struct yaml_node *step, struct buf *why)
{
    const char *name = text_of(step, "receive");
    const char *aborted = text_of(step, "aborted");
    struct played_stream *opened = find_played(play, name, true);
    _cleanup_(native_stream_freep)
    struct native_stream *stream = opened ? take_ptr(opened->stream) : NULL;
    _cleanup_(buf_done)
    struct buf data = { 0 };
    uint8_t chunk[65536];
    ssize_t count;
    if (!stream && !attach_reader(play, name, &stream, why))
        return false;
    while ((count = native_stream_read(stream, chunk, sizeof(chunk), STREAM_TIMEOUT_MS)) > 0)
        (void)buf_append(&data, chunk, (size_t)count);
    if (aborted && count == -ECONNRESET)
        return abort_is_right(stream, aborted, why);
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
        web_writer_free(stream->web);
        free(stream);
    }
}
