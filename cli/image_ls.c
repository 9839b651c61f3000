/* image_ls.c - `iii sandbox image ls`. */
#include <stdio.h>

#include "byte_count.h"
#include "image_call.h"
#include "json_scan.h"
#include "output.h"
#include "sandbox_call.h"

/* Widths grow with what stands in them: nothing is cut. */
#define ROW_FORMAT "%-16s  %-10s  %10s  %-7s  %s\n"

/* How it is called on a command line: by its name, or by its digest where the name means
 * another image or none. */
static int put_word(struct span image, struct buf *to)
{
    int result = 0;

    if (!json_string_equals(json_get(image, "kind"), "none"))
        result = output_member_text(image, "name", to);
    return result == 0 && to->size == 0 ? output_member_text(image, "digest", to) : result;
}

static int put_row(struct span image, struct buf *to)
{
    _cleanup_(buf_done)
    struct buf name = { 0 }, state = { 0 }, source = { 0 };
    char size[BYTE_COUNT_TEXT_BYTES] = "-";
    uint64_t bytes;
    int result = put_word(image, &name);

    if (result == 0)
        result = output_member_text(image, "state", &state);
    if (result == 0)
        result = output_member_text(image, "source", &source);
    if (result < 0 || !buf_text(&name) || !buf_text(&state) || !buf_text(&source))
        return result < 0 ? result : -1;
    if (json_as_u64(json_get(image, "size_bytes"), &bytes) == 0)
        byte_count_write(bytes, size);
    return buf_printf(to, ROW_FORMAT, buf_text(&name), buf_text(&state), size,
                      span_equals(json_get(image, "allowed"), "true") ? "yes" : "no",
                      buf_text(&source));
}

/* What they take together, of what they may. */
static int put_total(struct span reply, struct buf *to)
{
    char total[BYTE_COUNT_TEXT_BYTES], limit[BYTE_COUNT_TEXT_BYTES];
    uint64_t total_bytes, limit_bytes;

    if (json_as_u64(json_get(reply, "total_bytes"), &total_bytes) < 0)
        return 0;
    byte_count_write(total_bytes, total);
    if (json_as_u64(json_get(reply, "limit_bytes"), &limit_bytes) < 0 || limit_bytes == 0)
        return buf_printf(to, "total %s\n", total);
    byte_count_write(limit_bytes, limit);
    return buf_printf(to, "total %s of %s\n", total, limit);
}

static int print_images(struct span reply)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    struct json_iterator iterator = json_iterate(json_get(reply, "images"));
    struct span key, image;
    int result = buf_printf(&text, ROW_FORMAT, "IMAGE", "STATE", "SIZE", "ALLOWED", "SOURCE");

    while (result == 0 && json_next(&iterator, &key, &image))
        result = put_row(image, &text);
    if (result == 0)
        result = put_total(reply, &text);
    return result < 0 ? sandbox_complain("%s", strerror(-result))
                      : sandbox_print(text.data, text.size);
}

static int run_ls(const struct command_line *line)
{
    struct client_call call = { 0 };
    struct payload payload = { 0 };
    int code = image_call(line->client, &call, "ls", &payload, NULL);

    if (code == EXIT_CODE_DONE) {
        code = print_images(sandbox_result(&call));
        client_close(line->client);
    }
    client_call_done(&call);
    payload_done(&payload);
    return code;
}

const struct command command_image_ls = {
    .name = "ls",
    .aliases = { "list" },
    .path = "iii sandbox image ls",
    .text = "List the images of the catalog and what else is on disk.",
    .details =
        "STATE is missing, installing, ready, unchecked (it is compared with its digests\n"
        "before its next use) or damaged (it is installed again then).\n",
    COMMAND_COMMON_OPTIONS,
    .run = run_ls,
};
