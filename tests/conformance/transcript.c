/* transcript.c - see transcript.h. */

#include "transcript.h"

#include <string.h>

#include "uuid.h"

/* What differs from call to call: only its type counts. */
static bool is_masked_key(const char *key)
{
    static const char *const keys[] = { "created_at",  "started_at", "age_secs",
                                        "idle_secs",   "mtime",      "channel_id",
                                        "duration_ms", "access_key", "stderr",
                                        "adapter",     "size",       "adapter_version",
                                        "oci_ref" };
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (strcmp(keys[i], key) == 0)
            return true;
    }
    return false;
}

/* What an adapter says of itself: capabilities are declared, and may differ. */
static bool is_capability(const char *key)
{
    return strcmp(key, "features") == 0 || strcmp(key, "acceleration") == 0 ||
           strcmp(key, "isolation") == 0;
}

static void transcribe(const json_t *value, const char *key, struct buf *to)
{
    const char *child_key;
    json_t *child;
    size_t index;
    char canonical[37];
    if (json_is_object(value)) {
        (void)buf_append_text(to, "{");
        json_object_foreach((json_t *)value, child_key, child)
        {
            if (is_capability(child_key))
                continue;
            (void)buf_printf(to, "%s:", child_key);
            transcribe(child, child_key, to);
        }
        (void)buf_append_text(to, "}");
    } else if (json_is_array(value)) {
        (void)buf_append_text(to, "[");
        json_array_foreach((json_t *)value, index, child) transcribe(child, key, to);
        (void)buf_append_text(to, "]");
    } else if (is_masked_key(key)) {
        (void)buf_printf(to, "<%d>", (int)json_typeof(value));
    } else if (json_is_string(value) && uuid_parse(json_string_value(value), canonical) == 0) {
        (void)buf_append_text(to, "<uuid>");
    } else {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS |
                                           JSON_ENSURE_ASCII);
        (void)buf_printf(to, "%.200s ", text ? text : "");
        free(text);
    }
}

void transcript_add(bool ok, const json_t *body, struct buf *to)
{
    static const char *const error_keys[] = { "code", "type",     "retryable",
                                              "fix",  "fix_note", "outcome" };
    if (!to)
        return;
    if (ok)
        transcribe(body, "", to);
    for (size_t i = 0; !ok && i < ARRAY_SIZE(error_keys); i++) {
        const json_t *value = json_object_get(body, error_keys[i]);
        if (value)
            transcribe(value, error_keys[i], to);
    }
    (void)buf_append_text(to, "\n"); /* a shorter transcript shows as a difference */
}
