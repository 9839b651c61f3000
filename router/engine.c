/* engine.c - see engine.h. */
#include "engine.h"

#include <errno.h>
#include <string.h>

#include "json_scan.h"
#include "router.h"

/* An absent or empty body counts as {}; null counts as absent. */
static int read_buffer_size(struct span body, uint32_t *ret_buffer, struct sandbox_error *err)
{
    struct span object, value;
    uint64_t number;

    *ret_buffer = CHANNEL_BUFFER_DEFAULT;
    if (!body.data || body.size == 0)
        return 0;
    if (json_scan(body.data, body.size, &object, NULL) < 0 || json_kind(object) != JSON_OBJECT)
        return sandbox_error_set(err, S001, "the request wants one JSON object");
    value = json_get(object, "buffer_size");
    if (!value.data || json_kind(value) == JSON_NULL)
        return 0;
    if (json_kind(value) != JSON_NUMBER || json_as_u64(value, &number) < 0 || number < 1 ||
        number > CHANNEL_BUFFER_MAX)
        return sandbox_error_set(
            err, S001, "buffer_size wants an integer from 1 to %u, got %.*s",
            CHANNEL_BUFFER_MAX, (int)(value.size < 64 ? value.size : 64), value.data);
    *ret_buffer = (uint32_t)number;
    return 0;
}

static int create(struct router *router, uint32_t buffer, struct channel_refs *ret_refs,
                  struct sandbox_error *err)
{
    int result = channel_create(router->channels, buffer, ret_refs);

    if (result == -EMFILE)
        return sandbox_error_set(
            err, S400, "one more than the %u channels that this router holds", CHANNELS_MAX);
    if (result < 0)
        return sandbox_error_set(err, S400, "no channel can be made: %s", strerror(-result));
    return 0;
}

static int encode(const struct channel_refs *refs, struct buf *to)
{
    static const char *const directions[] = { "write", "read" };
    static const char *const names[] = { "{\"writer\":", ",\"reader\":" };
    int result = 0;

    for (unsigned i = 0; i < ARRAY_SIZE(names) && result == 0; i++)
        result = buf_printf(
            to, "%s{\"channel_id\":\"%s\",\"access_key\":\"%s\",\"direction\":\"%s\"}",
            names[i], refs->channel_id, refs->access_key, directions[i]);
    return result == 0 ? buf_append_byte(to, '}') : result;
}

void engine_channels_create(struct router *router, struct span body,
                            struct refusal *ret_refusal)
{
    struct sandbox_error err = { 0 };
    struct channel_refs refs;
    uint32_t buffer;

    if (read_buffer_size(body, &buffer, &err) < 0 || create(router, buffer, &refs, &err) < 0) {
        refuse_error(ret_refusal, router->settings->router.docs_base, &err);
        return;
    }
    *ret_refusal = (struct refusal){ .code = SANDBOX_OK };
    if (encode(&refs, &ret_refusal->body) < 0) {
        ret_refusal->answer = (struct answer){ .kind = ANSWER_FAILED,
                                               .message = "the router is out of memory" };
        return;
    }
    ret_refusal->answer = (struct answer){
        .kind = ANSWER_REPLY,
        .body = { .data = (const char *)ret_refusal->body.data,
                  .size = ret_refusal->body.size },
    };
}
