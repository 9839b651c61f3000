/* sandbox_list.c - `iii sandbox list`. */
#include <inttypes.h>
#include <stdio.h>

#include "json_scan.h"
#include "output.h"
#include "sandbox.h"
#include "sandbox_call.h"

struct list_options {
    struct target_options target;
    bool help;
};

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
    if (result == 0)
        result = output_write(1, text.data, text.size);
    return result < 0 ? sandbox_complain("%s", strerror(-result)) : EXIT_CODE_DONE;
}

static int list(struct client *client)
{
    struct payload payload = { 0 };
    struct client_call call = { 0 };
    int code = sandbox_call(client, &call, "sandbox::list", &payload, SANDBOX_CALL_TIMEOUT_MS);

    if (code == EXIT_CODE_DONE) {
        code = print_list(sandbox_result(&call));
        client_close(client);
    }
    client_call_done(&call);
    payload_done(&payload);
    return code;
}

static int run_list(const struct command *self, int argc, char **argv)
{
    struct list_options options = { .target = TARGET_STANDARD };
    struct option_rest rest;
    struct client client;
    int code = command_options(self, argc, argv, &options, &rest);

    if (code != EXIT_CODE_DONE)
        return code;
    if (options.help) {
        command_usage(self, 1);
        return EXIT_CODE_DONE;
    }
    if (rest.word_count != 0 || rest.has_command)
        return command_misused(self, "takes no words");
    if (command_client(&client, &options.target) < 0)
        return sandbox_complain("no memory");
    code = list(&client);
    client_done(&client);
    return code;
}

static const struct option_row rows[] = {
    TARGET_OPTIONS(struct list_options),
    HELP_OPTION(struct list_options),
};

const struct command command_sandbox_list = {
    .name = "list",
    .path = "iii sandbox list",
    .synopsis = "[OPTIONS]",
    .text = "List the live sandboxes.",
    .options = { rows, ARRAY_SIZE(rows) },
    .run = run_list,
};
