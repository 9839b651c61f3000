/* payload.c - see payload.h. */
#include "payload.h"

#include <inttypes.h>

#include "error.h"

static void put(struct payload *payload, const char *text)
{
    if (payload->result == 0)
        payload->result = buf_append_text(&payload->json, text);
}

static void put_text(struct payload *payload, const char *text)
{
    if (payload->result == 0)
        payload->result = json_append_string(&payload->json, text, strlen(text));
}

static void put_key(struct payload *payload, const char *key)
{
    put(payload, payload->json.size == 0 ? "{" : ",");
    put_text(payload, key);
    put(payload, ":");
}

void payload_text(struct payload *payload, const char *key, const char *value)
{
    put_key(payload, key);
    put_text(payload, value);
}

void payload_number(struct payload *payload, const char *key, uint64_t value)
{
    put_key(payload, key);
    if (payload->result == 0)
        payload->result = buf_printf(&payload->json, "%" PRIu64, value);
}

void payload_bool(struct payload *payload, const char *key, bool value)
{
    put_key(payload, key);
    put(payload, value ? "true" : "false");
}

void payload_texts(struct payload *payload, const char *key, char *const *values, size_t count)
{
    put_key(payload, key);
    put(payload, "[");
    for (size_t i = 0; i < count; i++) {
        put(payload, i > 0 ? "," : "");
        put_text(payload, values[i]);
    }
    put(payload, "]");
}

void payload_json(struct payload *payload, const char *key, struct span value)
{
    put_key(payload, key);
    if (payload->result == 0)
        payload->result = buf_append(&payload->json, value.data, value.size);
}

int payload_end(struct payload *payload, struct span *ret_json)
{
    put(payload, payload->json.size == 0 ? "{}" : "}");
    *ret_json = (struct span){ (const char *)payload->json.data, payload->json.size };
    return payload->result;
}

void payload_done(struct payload *payload)
{
    buf_done(&payload->json);
}
