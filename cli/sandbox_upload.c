/* sandbox_upload.c - `iii sandbox upload`: a local file, or stdin, into a sandbox.
 *
 * The channel is opened in any case, also for an empty file, whose clean end makes an empty
 * file there. Whatever goes wrong here drops TCP without a close frame, so that the old file
 * stays. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "json_scan.h"
#include "output.h"
#include "progress.h"
#include "sandbox.h"
#include "sandbox_call.h"
#include "source.h"
#include "transfer.h"

struct upload_options {
    struct common_options common;
    const char *mode;
    bool parents;
};

struct upload {
    struct transfer transfer;
    struct client *client;
    const struct upload_options *options;
    char *const *words;  /* ID, LOCAL, REMOTE */
    uint64_t size_bytes; /* 0: unknown */
    struct source source;
    bool at_end;
    struct client_call write;
    struct progress progress;
};

/* Pumping. */

static bool on_data(void *ctx, const uint8_t *data, size_t size)
{
    struct upload *upload = ctx;
    int result = web_socket_send(upload->transfer.socket, WEBSOCKET_BINARY, data, size);

    if (result < 0) {
        transfer_fail(&upload->transfer, "the channel: %s", strerror(-result));
        return false;
    }
    transfer_moved(&upload->transfer, size);
    progress_bytes(&upload->progress, upload->transfer.bytes, upload->size_bytes);
    return !web_socket_is_full(upload->transfer.socket);
}

static void on_ended(void *ctx, int error)
{
    struct upload *upload = ctx;

    if (error < 0) {
        transfer_fail(&upload->transfer, "%s: %s", upload->words[1], strerror(-error));
        return;
    }
    if (interrupt_is_near(&upload->client->interrupt))
        return; /* not the end of what was meant; the signal ends the transfer */
    upload->at_end = true;
    web_socket_close(upload->transfer.socket, WEBSOCKET_CLOSE_NORMAL, "stream_complete", 0);
}

static void on_opened(void *ctx)
{
    struct upload *upload = ctx;
    int result = source_begin(&upload->source);

    if (result < 0)
        on_ended(upload, result);
}

static void on_drained(void *ctx)
{
    source_resume(&((struct upload *)ctx)->source);
}

static void on_message(void *ctx, bool is_text, const uint8_t *data, size_t size)
{
}

/* After our own end the answer of the call tells how it went; before it the call's error does,
 * if it comes. */
static void on_closed(void *ctx, unsigned code, const char *why)
{
    struct upload *upload = ctx;

    web_socket_free(take_ptr(upload->transfer.socket));
    source_done(&upload->source);
    transfer_moved(&upload->transfer, 0);
    if (!upload->at_end && code == WEB_SOCKET_LOST)
        transfer_fail(&upload->transfer, "the channel was lost: %s", why);
    upload->at_end = true;
}

static const struct web_socket_events socket_events = {
    .opened = on_opened,
    .message = on_message,
    .drained = on_drained,
    .closed = on_closed,
};

/* The call. */

static bool is_over(const void *ctx)
{
    const struct upload *upload = ctx;

    return upload->write.state == CLIENT_CALL_OVER;
}

static int begin_write(struct upload *upload, struct span reader)
{
    struct client_request request = { .function = "sandbox::fs::write" };
    struct payload payload = { 0 };
    int result;

    payload_text(&payload, "sandbox_id", upload->words[0]);
    payload_text(&payload, "path", upload->words[2]);
    if (upload->options->mode)
        payload_text(&payload, "mode", upload->options->mode);
    if (upload->options->parents)
        payload_bool(&payload, "parents", true);
    payload_json(&payload, "content", reader);
    result = payload_end(&payload, &request.payload);
    if (result == 0)
        result = client_call_begin(upload->client, &upload->write, &request);
    payload_done(&payload);
    return result;
}

static int print_written(const struct upload *upload)
{
    uint64_t bytes;

    if (json_as_u64(json_get(sandbox_result(&upload->write), "bytes_written"), &bytes) < 0)
        return sandbox_complain("the reply has no bytes_written");
    return sandbox_printf("uploaded %" PRIu64 " bytes to %s:%s\n", bytes, upload->words[0],
                          upload->words[2]);
}

static int send_file(struct upload *upload, struct span refs)
{
    enum client_outcome outcome;
    int result = transfer_open(&upload->transfer, json_get(refs, "writer"), true,
                               &socket_events, upload);
    int code;

    if (result == 0)
        result = begin_write(upload, json_get(refs, "reader"));
    if (result < 0)
        return sandbox_complain("%s", strerror(-result));
    progress_begin(&upload->progress, upload->client->loop, "uploading");
    outcome = transfer_wait(&upload->transfer, is_over, upload);
    progress_end(&upload->progress, NULL);
    if (upload->transfer.failed && !is_over(upload))
        return sandbox_complain("%s", upload->transfer.why);
    code = sandbox_outcome(upload->client, &upload->write, outcome, "sandbox::fs::write",
                           TRANSFER_IDLE_MS);
    return code == EXIT_CODE_DONE ? print_written(upload) : code;
}

static int upload_file(struct upload *upload)
{
    struct client_call create = { 0 };
    struct payload payload = { 0 };
    int code = sandbox_call(upload->client, &create, "engine::channels::create", &payload,
                            SANDBOX_CALL_TIMEOUT_MS);

    if (code == EXIT_CODE_DONE)
        code = send_file(upload, sandbox_result(&create));
    source_done(&upload->source);
    web_socket_free(upload->transfer.socket);
    if (code == EXIT_CODE_DONE)
        client_close(upload->client);
    client_call_done(&upload->write);
    client_call_done(&create);
    payload_done(&payload);
    return code;
}

static int open_local(struct upload *upload)
{
    const char *path = upload->words[1];
    struct stat status;
    int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                    : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    upload->source = (struct source){
        .loop = upload->client->loop,
        .fd = fd,
        .data = on_data,
        .ended = on_ended,
        .ctx = upload,
    };
    if (fstat(fd, &status) < 0)
        return 0; /* reading will tell */
    if (S_ISDIR(status.st_mode)) {
        (void)close(fd); /* nothing was written */
        return -EISDIR;
    }
    upload->size_bytes = S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
    return 0;
}

static int run_upload(const struct command_line *line)
{
    struct upload upload = {
        .client = line->client,
        .transfer = { .client = line->client },
        .options = line->options,
        .words = line->rest.words,
    };
    int code = open_local(&upload);

    if (code < 0)
        return sandbox_complain("%s: %s", upload.words[1], strerror(-code));
    code = upload_file(&upload);
    (void)close(upload.source.fd); /* nothing was written */
    return code;
}

static const struct option_row rows[] = {
    { .name = "mode",
      .kind = OPTION_TEXT,
      .offset = offsetof(struct upload_options, mode),
      .value = "MODE",
      .text = "octal mode of the file (0644)" },
    { .name = "parents",
      .kind = OPTION_FLAG,
      .offset = offsetof(struct upload_options, parents),
      .text = "make missing directories" },
};

const struct command command_sandbox_upload = {
    .name = "upload",
    .path = "iii sandbox upload",
    .text = "Write a local file, or stdin, into a sandbox.",
    .details = "LOCAL - is stdin. What goes wrong leaves the old file.\n",
    .words = { { .name = "ID", .kind = WORD_SANDBOX },
               { .name = "LOCAL", .kind = WORD_LOCAL },
               { .name = "REMOTE", .kind = WORD_REMOTE } },
    COMMAND_OPTIONS(struct upload_options, rows),
    .run = run_upload,
};
