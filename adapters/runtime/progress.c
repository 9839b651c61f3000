/* progress.c - see progress.h. An event that cannot be made is left out: nobody relies on it.
 */
#include "progress.h"

#include <inttypes.h>
#include <string.h>

static void progress_send(struct request *request, struct buf *json, int result)
{
    if (result == 0)
        request_event(request, (const char *)json->data, json->size);
}

static int pulling_json(struct buf *json, const char *source, uint64_t bytes,
                        uint64_t total_bytes)
{
    int result = buf_append_text(json, "{\"event\":\"pulling_image\",\"image_ref\":");

    if (result == 0)
        result = json_append_string(json, source, strlen(source));
    if (result == 0)
        result = buf_printf(json, ",\"progress_bytes\":%" PRIu64, bytes);
    if (result == 0 && total_bytes > 0)
        result = buf_printf(json, ",\"total_bytes\":%" PRIu64, total_bytes);
    return result == 0 ? buf_append_byte(json, '}') : result;
}

void progress_image(struct request *request, enum image_stage stage, const char *source,
                    uint64_t bytes, uint64_t total_bytes)
{
    _cleanup_(buf_done)
    struct buf json = { 0 };
    int result = stage == IMAGE_PULLING ? pulling_json(&json, source, bytes, total_bytes)
                                        : buf_append_text(&json, "{\"event\":\"unpacking\"}");

    progress_send(request, &json, result);
}

void progress_booting(struct request *request)
{
    static const char json[] = "{\"event\":\"booting_vm\"}";

    request_event(request, json, sizeof(json) - 1);
}

void progress_ready(struct request *request, const char *sandbox_id)
{
    _cleanup_(buf_done)
    struct buf json = { 0 };
    int result = buf_printf(&json, "{\"event\":\"ready\",\"sandbox_id\":\"%s\"}", sandbox_id);

    progress_send(request, &json, result);
}
