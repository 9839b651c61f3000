/* image_rm.c - `iii sandbox image rm` and `prune`. */
#include "byte_count.h"
#include "image_call.h"
#include "json_scan.h"
#include "output.h"
#include "sandbox_call.h"

struct prune_options {
    struct common_options common;
    struct option_number max_mb;
};

static int print_removed(struct span reply)
{
    struct json_iterator iterator = json_iterate(json_get(reply, "removed"));
    char freed[BYTE_COUNT_TEXT_BYTES];
    struct span key, digest;
    uint64_t bytes = 0;
    int code = EXIT_CODE_DONE;

    while (code == EXIT_CODE_DONE && json_next(&iterator, &key, &digest)) {
        _cleanup_(buf_done)
        struct buf text = { 0 };

        if (json_string_decode(digest, &text) < 0 || !buf_text(&text))
            return sandbox_complain("the reply's digests cannot be read");
        code = sandbox_printf("removed %s\n", buf_text(&text));
    }
    (void)json_as_u64(json_get(reply, "freed_bytes"), &bytes); /* 0 when it is not there */
    byte_count_write(bytes, freed);
    return code == EXIT_CODE_DONE ? sandbox_printf("freed %s\n", freed) : code;
}

static int remove_by(const struct command_line *line, const char *operation,
                     struct payload *payload)
{
    struct client_call call = { 0 };
    int code = image_call(line->client, &call, operation, payload, NULL);

    if (code == EXIT_CODE_DONE) {
        code = print_removed(sandbox_result(&call));
        client_close(line->client);
    }
    client_call_done(&call);
    payload_done(payload);
    return code;
}

static int run_rm(const struct command_line *line)
{
    struct payload payload = { 0 };

    payload_text(&payload, "image", line->rest.words[0]);
    return remove_by(line, "rm", &payload);
}

static int run_prune(const struct command_line *line)
{
    const struct prune_options *options = line->options;
    struct payload payload = { 0 };

    if (options->max_mb.given)
        payload_number(&payload, "max_mb", options->max_mb.value);
    return remove_by(line, "prune", &payload);
}

static const struct option_row prune_rows[] = {
    { .name = "max-mb",
      .kind = OPTION_NUMBER,
      .offset = offsetof(struct prune_options, max_mb),
      .value = "MB",
      .text = "what images may take, MiB (the setting max_cache_mb)",
      .max = UINT32_MAX },
};

const struct command command_image_rm = {
    .name = "rm",
    .path = "iii sandbox image rm",
    .text = "Remove an image from disk.",
    .details = "IMAGE is a name of the catalog or a digest. One in use stays.\n",
    .words = { { .name = "IMAGE", .kind = WORD_IMAGE } },
    COMMAND_COMMON_OPTIONS,
    .run = run_rm,
};

const struct command command_image_prune = {
    .name = "prune",
    .path = "iii sandbox image prune",
    .text = "Remove images that nobody uses until the rest fits.",
    COMMAND_OPTIONS(struct prune_options, prune_rows),
    .run = run_prune,
};
