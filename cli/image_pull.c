/* image_pull.c - `iii sandbox image pull`. */
#include "byte_count.h"
#include "image_call.h"
#include "json_scan.h"
#include "progress.h"
#include "sandbox_call.h"

struct pull_options {
    struct common_options common;
    bool anew;
};

static int print_pulled(const char *image, struct span reply)
{
    char size[BYTE_COUNT_TEXT_BYTES] = "";
    uint64_t bytes = 0;
    bool installed = span_equals(json_get(reply, "installed"), "true");

    (void)json_as_u64(json_get(reply, "size_bytes"), &bytes); /* 0 when it is not there */
    byte_count_write(bytes, size);
    return sandbox_printf("%s %s, %s\n", installed ? "pulled" : "already there:", image, size);
}

static int run_pull(const struct command_line *line)
{
    const struct pull_options *options = line->options;
    const char *image = line->rest.words[0];
    struct progress progress;
    struct client_call call = { .progress = progress_event, .progress_ctx = &progress };
    struct payload payload = { 0 };
    int code;

    payload_text(&payload, "image", image);
    if (options->anew)
        payload_bool(&payload, "anew", true);
    progress_begin(&progress, line->client->loop, "checking image");
    code = image_call(line->client, &call, "pull", &payload, &progress);
    if (code == EXIT_CODE_DONE) {
        code = print_pulled(image, sandbox_result(&call));
        client_close(line->client);
    }
    client_call_done(&call);
    payload_done(&payload);
    return code;
}

static const struct option_row rows[] = {
    { .name = "anew",
      .kind = OPTION_FLAG,
      .offset = offsetof(struct pull_options, anew),
      .text = "install it even if it is there; sandboxes that run keep the old one" },
};

const struct command command_image_pull = {
    .name = "pull",
    .path = "iii sandbox image pull",
    .text = "Install an image of the catalog, so that the first sandbox need not wait.",
    .words = { { .name = "IMAGE", .kind = WORD_IMAGE } },
    COMMAND_OPTIONS(struct pull_options, rows),
    .run = run_pull,
};
