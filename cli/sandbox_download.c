/* sandbox_download.c - `iii sandbox download`: a file of a sandbox to a local one, or stdout.
 *
 * The bytes go to a temporary file beside LOCAL, which is renamed when all have come: a failure
 * leaves nothing. A LOCAL that is no regular file (a pipe, a device) is written to as it is. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "json_scan.h"
#include "progress.h"
#include "sandbox.h"
#include "sandbox_call.h"
#include "sink.h"
#include "transfer.h"

struct download {
    struct transfer transfer;
    struct client *client;
    char *const *words; /* ID, REMOTE, LOCAL */
    int fd;
    char *temporary; /* NULL: fd is written to directly */
    bool to_stdout;
    uint64_t size_bytes; /* as the reply says */
    struct sink sink;
    struct progress progress;
};

/* The local end. */

static int make_temporary(struct download *download)
{
    mode_t mask = umask(0);

    (void)umask(mask);
    if (asprintf(&download->temporary, "%s.iii-XXXXXX", download->words[2]) < 0) {
        download->temporary = NULL;
        return -ENOMEM;
    }
    download->fd = mkostemp(download->temporary, O_CLOEXEC);
    if (download->fd < 0) {
        free(take_ptr(download->temporary));
        return -errno;
    }
    return fchmod(download->fd, 0666 & ~mask) < 0 ? -errno : 0;
}

static int open_local(struct download *download)
{
    const char *path = download->words[2];
    struct stat status;

    download->to_stdout = strcmp(path, "-") == 0;
    if (download->to_stdout) {
        download->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        return download->fd < 0 ? -errno : 0;
    }
    if (stat(path, &status) < 0 || S_ISREG(status.st_mode))
        return make_temporary(download);
    if (S_ISDIR(status.st_mode))
        return -EISDIR;
    download->fd = open(path, O_WRONLY | O_CLOEXEC);
    return download->fd < 0 ? -errno : 0;
}

/* The end of the local file: in place, or gone. */
static int settle_local(struct download *download, bool complete)
{
    int result = 0;

    if (download->fd >= 0 && close(download->fd) < 0)
        result = -errno;
    download->fd = -1;
    if (!download->temporary)
        return result;
    if (result == 0 && complete && rename(download->temporary, download->words[2]) < 0)
        result = -errno;
    if (result < 0 || !complete)
        (void)unlink(download->temporary); /* the first error counts */
    free(take_ptr(download->temporary));
    return result;
}

/* The channel. */

/* While nobody reads what we write, nothing is taken. */
static void hold(struct download *download, bool held)
{
    download->transfer.held = held;
    if (!download->transfer.socket)
        return;
    if (held)
        web_socket_pause(download->transfer.socket);
    else
        web_socket_resume(download->transfer.socket);
}

static void on_drained(void *ctx, int error)
{
    struct download *download = ctx;

    if (error < 0)
        transfer_fail(&download->transfer, "%s: %s", download->words[2], strerror(-error));
    transfer_moved(&download->transfer, 0);
    hold(download, false);
    download->transfer.over = !download->transfer.socket;
}

static void on_message(void *ctx, bool is_text, const uint8_t *data, size_t size)
{
    struct download *download = ctx;
    int result;

    if (is_text) {
        transfer_take_text(&download->transfer, (struct span){ (const char *)data, size });
        return;
    }
    result = sink_write(&download->sink, data, size);
    if (result < 0)
        transfer_fail(&download->transfer, "%s: %s", download->words[2], strerror(-result));
    hold(download, sink_is_full(&download->sink));
    transfer_moved(&download->transfer, size);
    progress_bytes(&download->progress, download->transfer.bytes, download->size_bytes);
}

static void on_closed(void *ctx, unsigned code, const char *why)
{
    struct download *download = ctx;

    web_socket_free(take_ptr(download->transfer.socket));
    download->transfer.over = !sink_is_full(&download->sink); /* else on_drained() */
    if (code != WEBSOCKET_CLOSE_NORMAL)
        transfer_fail(&download->transfer, "the channel broke: %s", *why ? why : "no reason");
}

static const struct web_socket_events socket_events = {
    .message = on_message,
    .closed = on_closed,
};

static bool is_over(const void *ctx)
{
    const struct download *download = ctx;

    return download->transfer.over;
}

/* EXIT_CODE_DONE: all bytes are written. */
static int receive(struct download *download, const struct client_call *read)
{
    struct span reply = sandbox_result(read);
    enum client_outcome outcome;
    int result;

    if (json_as_u64(json_get(reply, "size"), &download->size_bytes) < 0)
        return sandbox_complain("the reply has no size");
    result = transfer_open(&download->transfer, json_get(reply, "content"), false,
                           &socket_events, download);
    if (result < 0)
        return sandbox_complain("the reply's channel: %s", strerror(-result));
    progress_begin(&download->progress, download->client->loop, "downloading");
    outcome = transfer_wait(&download->transfer, is_over, download);
    progress_end(&download->progress, NULL);
    if (!download->transfer.failed && outcome == CLIENT_ANSWERED &&
        download->transfer.bytes < download->size_bytes)
        transfer_fail(&download->transfer, "only %" PRIu64 " of %" PRIu64 " bytes came",
                      download->transfer.bytes, download->size_bytes);
    if (download->transfer.failed)
        return sandbox_complain("%s", download->transfer.why);
    return sandbox_outcome(download->client, read, outcome, "sandbox::fs::read",
                           TRANSFER_IDLE_MS);
}

static int print_received(const struct download *download)
{
    if (download->to_stdout)
        return EXIT_CODE_DONE;
    return sandbox_printf("downloaded %" PRIu64 " bytes to %s\n", download->transfer.bytes,
                          download->words[2]);
}

static int read_file(struct download *download, const struct client_call *read)
{
    int result = open_local(download);
    int code;

    if (result < 0) {
        (void)settle_local(download, false); /* the first error counts */
        return sandbox_complain("%s: %s", download->words[2], strerror(-result));
    }
    download->sink = (struct sink){
        .loop = download->client->loop,
        .fd = download->fd,
        .drained = on_drained,
        .ctx = download,
    };
    code = receive(download, read);
    sink_done(&download->sink);
    result = settle_local(download, code == EXIT_CODE_DONE);
    if (code == EXIT_CODE_DONE && result < 0)
        return sandbox_complain("%s: %s", download->words[2], strerror(-result));
    return code == EXIT_CODE_DONE ? print_received(download) : code;
}

static int download_file(struct download *download)
{
    struct client_call read = { 0 };
    struct payload payload = { 0 };
    int code;

    payload_text(&payload, "sandbox_id", download->words[0]);
    payload_text(&payload, "path", download->words[1]);
    code = sandbox_call(download->client, &read, "sandbox::fs::read", &payload,
                        SANDBOX_CALL_TIMEOUT_MS);
    if (code == EXIT_CODE_DONE)
        code = read_file(download, &read);
    web_socket_free(download->transfer.socket);
    if (code == EXIT_CODE_DONE)
        client_close(download->client);
    client_call_done(&read);
    payload_done(&payload);
    return code;
}

static int run_download(const struct command_line *line)
{
    struct download download = {
        .client = line->client,
        .transfer = { .client = line->client },
        .words = line->rest.words,
        .fd = -1,
    };

    return download_file(&download);
}

const struct command command_sandbox_download = {
    .name = "download",
    .path = "iii sandbox download",
    .text = "Read a file of a sandbox into a local one, or to stdout.",
    .details = "LOCAL - is stdout. What goes wrong leaves the old file.\n",
    .words = { { .name = "ID", .kind = WORD_SANDBOX },
               { .name = "REMOTE", .kind = WORD_REMOTE },
               { .name = "LOCAL", .kind = WORD_LOCAL } },
    COMMAND_COMMON_OPTIONS,
    .run = run_download,
};
