/* sandbox_list.c - `iii sandbox list`. */
#include <inttypes.h>
#include <stdio.h>

#include "json_scan.h"
#include "output.h"
#include "sandbox.h"
#include "sandbox_call.h"

/* Characters of UTF-8 text: what a column's width counts. */
static int count_characters(const char *text)
{
    int count = 0;

    for (; *text; text++)
        count += (*text & 0xC0) != 0x80;
    return count;
}

static int pad(const char *text, int width)
{
    int missing = width - count_characters(text);

    return missing > 0 ? missing : 0;
}

static int put_row(struct span entry, struct buf *to)
{
    _cleanup_(buf_done)
    struct buf id = { 0 }, image = { 0 }, name = { 0 };
    uint64_t age = 0;
    int result = output_member_text(entry, "sandbox_id", &id);

    if (result == 0)
        result = output_member_text(entry, "image", &image);
    if (result == 0)
        result = output_member_text(entry, "name", &name);
    if (result < 0 || !buf_text(&id) || !buf_text(&image) || !buf_text(&name))
        return result < 0 ? result : -1;
    (void)json_as_u64(json_get(entry, "age_secs"), &age); /* 0 when it is not there */
    return buf_printf(to, "%s%*s  %s%*s  %8" PRIu64 "  %s\n", buf_text(&id),
                      pad(buf_text(&id), 36), "", buf_text(&image), pad(buf_text(&image), 10),
                      "", age, buf_text(&name));
}

static int print_list(struct span list)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    struct json_iterator iterator = json_iterate(list);
    struct span key, value;
    int result = buf_printf(&text, "%-36s  %-10s  %8s  %s\n", "SANDBOX_ID", "IMAGE", "AGE_SECS",
                            "NAME");

    while (result == 0 && json_next(&iterator, &key, &value))
        result = put_row(value, &text);
    return result < 0 ? sandbox_complain("%s", strerror(-result))
                      : sandbox_print(text.data, text.size);
}

static int run_list(const struct command_line *line)
{
    struct payload payload = { 0 };
    struct client_call call = { 0 };
    int code = sandbox_call(line->client, &call, "sandbox::list", &payload,
                            SANDBOX_CALL_TIMEOUT_MS);

    if (code == EXIT_CODE_DONE) {
        code = print_list(sandbox_result(&call));
        client_close(line->client);
    }
    client_call_done(&call);
    payload_done(&payload);
    return code;
}

const struct command command_sandbox_list = {
    .name = "list",
    .aliases = { "ls" },
    .path = "iii sandbox list",
    .text = "List the live sandboxes.",
    COMMAND_COMMON_OPTIONS,
    .run = run_list,
};
