/* image_verify.c - `iii sandbox image verify`. */
#include <errno.h>

#include "image_call.h"
#include "json_scan.h"
#include "output.h"
#include "progress.h"
#include "sandbox_call.h"

/* Texts of several lines, such as a tool's last words, become one. */
static void join_lines(struct buf *text)
{
    for (size_t i = 0; i < text->size; i++)
        text->data[i] = text->data[i] == '\n' ? ' ' : text->data[i];
}

/* WORD: how it was called on the command line; NULL: it was not, and the digest tells it from
 * others of its name. */
static int put_image(struct span image, const char *word, struct buf *to)
{
    _cleanup_(buf_done)
    struct buf name = { 0 }, state = { 0 }, digest = { 0 }, problem = { 0 };
    int result = output_member_text(image, "name", &name);

    if (result == 0)
        result = output_member_text(image, "state", &state);
    if (result == 0)
        result = output_member_text(image, "digest", &digest);
    if (result == 0)
        result = output_member_text(image, "problem", &problem);
    join_lines(&problem);
    if (result < 0 || !buf_text(&name) || !buf_text(&state) || !buf_text(&digest) ||
        !buf_text(&problem))
        return result < 0 ? result : -ENOMEM;
    return buf_printf(to, "%s  %s%s%s%s%s\n", word ? word : buf_text(&name), buf_text(&state),
                      word ? "" : "  ", word ? "" : buf_text(&digest),
                      problem.size > 0 ? ": " : "", buf_text(&problem));
}

static int print_verified(struct span reply, const char *word)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    struct json_iterator iterator = json_iterate(json_get(reply, "images"));
    struct span key, image;
    int code, result = 0;

    while (result == 0 && json_next(&iterator, &key, &image))
        result = put_image(image, word, &text);
    if (result < 0)
        return sandbox_complain("%s", strerror(-result));
    code = sandbox_print(text.data, text.size);
    return span_equals(json_get(reply, "damaged"), "true") ? EXIT_CODE_FAILED : code;
}

/* IMAGE NULL: all. */
static int verify(struct client *client, const char *image)
{
    struct progress progress;
    struct client_call call = { 0 };
    struct payload payload = { 0 };
    int code;

    if (image)
        payload_text(&payload, "image", image);
    progress_begin(&progress, client->loop, "verifying");
    code = image_call(client, &call, "verify", &payload, &progress);
    if (code == EXIT_CODE_DONE)
        code = print_verified(sandbox_result(&call), image);
    client_call_done(&call);
    payload_done(&payload);
    return code;
}

static int run_verify(const struct command_line *line)
{
    int code = EXIT_CODE_DONE;

    if (line->rest.word_count == 0)
        code = verify(line->client, NULL);
    for (size_t i = 0; i < line->rest.word_count && !line->client->interrupt.caught; i++) {
        int result = verify(line->client, line->rest.words[i]);

        code = code == EXIT_CODE_DONE ? result : code;
    }
    if (!line->client->interrupt.caught)
        client_close(line->client);
    return line->client->interrupt.caught ? 128 + line->client->interrupt.caught : code;
}

const struct command command_image_verify = {
    .name = "verify",
    .path = "iii sandbox image verify",
    .text = "Compare images on disk with their digests.",
    .details =
        "All that are on disk, if none is named. A damaged one is exit code 1; nothing is\n"
        "repaired: its next use installs it again.\n",
    .words = { { .name = "IMAGE", .kind = WORD_IMAGE, .repeated = true } },
    COMMAND_COMMON_OPTIONS,
    .run = run_verify,
};
