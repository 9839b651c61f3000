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

/* The keys that tell which stage it is. */
static int stage_json(struct buf *json, const char *source, enum image_stage stage)
{
    int result;

    if (stage != IMAGE_PULLING)
        return buf_printf(json, "{\"event\":\"unpacking\",\"stage\":\"%s\"",
                          image_stage_name(stage));
    result = buf_append_text(json, "{\"event\":\"pulling_image\",\"image_ref\":");
    return result == 0 ? json_append_string(json, source, strlen(source)) : result;
}

void progress_image(struct request *request, const char *source,
                    const struct image_progress *progress)
{
    _cleanup_(buf_done)
    struct buf json = { 0 };
    int result = stage_json(&json, source, progress->stage);

    if (result == 0)
        result = buf_printf(&json, ",\"progress_bytes\":%" PRIu64, progress->bytes);
    if (result == 0 && progress->total_bytes > 0)
        result = buf_printf(&json, ",\"total_bytes\":%" PRIu64, progress->total_bytes);
    if (result == 0)
        result = buf_printf(&json, ",\"bytes_per_second\":%" PRIu64 "}",
                            progress->bytes_per_second);
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
