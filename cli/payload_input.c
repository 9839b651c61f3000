/* payload_input.c - see payload_input.h. */
#include "payload_input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "whole_input.h"

static bool is_stdin(const char *json)
{
    return strcmp(json, "-") == 0 || strcmp(json, "@-") == 0;
}

bool payload_input_is(const char *json)
{
    return json[0] == '@' || is_stdin(json);
}

static int complain(const char *json, const char *why)
{
    (void)fprintf(stderr, "Error: --json %s: %s\n", json, why);
    return EXIT_CODE_FAILED;
}

static int conclude(const struct client *client, const char *json, enum client_outcome outcome,
                    uint64_t wait_ms)
{
    char why[CLIENT_TEXT_MAX_BYTES];

    if (outcome == CLIENT_INTERRUPTED)
        return 128 + client->interrupt.caught;
    (void)snprintf(why, sizeof(why), "it did not end within %" PRIu64 " ms", wait_ms);
    return complain(json, why);
}

int payload_input_read(struct client *client, const char *json, uint64_t wait_ms,
                       struct buf *to)
{
    /* A pipe that nobody writes to yet is waited for in the loop, not in open(). */
    _cleanup_close_ int file_fd = is_stdin(json)
                                      ? -1
                                      : open(json + 1, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const struct whole_input_spec spec = {
        .fd = is_stdin(json) ? STDIN_FILENO : file_fd,
        .max_bytes = PAYLOAD_INPUT_MAX_BYTES,
        .wait_ms = wait_ms,
    };
    enum client_outcome outcome;
    char why[CLIENT_TEXT_MAX_BYTES];
    int error;

    if (spec.fd < 0)
        return complain(json, strerror(errno));
    outcome = whole_input_read(client, &spec, to, &error);
    if (outcome != CLIENT_ANSWERED)
        return conclude(client, json, outcome, wait_ms);
    if (error == 0)
        return EXIT_CODE_DONE;
    (void)snprintf(why, sizeof(why),
                   "it is larger than %u bytes, which is what a message has room for",
                   PAYLOAD_INPUT_MAX_BYTES);
    return complain(json, error == -EFBIG ? why : strerror(-error));
}
