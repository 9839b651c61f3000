/* transfer.c - see transfer.h. */
#include "transfer.h"

#include <errno.h>
#include <stdio.h>

#include "http.h"
#include "json_scan.h"
#include "output.h"

static int write_path(struct span ref, bool writes, struct buf *ret_path)
{
    _cleanup_(buf_done)
    struct buf id = { 0 }, key = { 0 };
    int result = output_member_text(ref, "channel_id", &id);

    if (result == 0)
        result = output_member_text(ref, "access_key", &key);
    if (result < 0 || !buf_text(&id) || !buf_text(&key))
        return result < 0 ? result : -ENOMEM;
    if (id.size == 0 || key.size == 0)
        return -EBADMSG;
    result = buf_append_text(ret_path, "/ws/channels/");
    if (result == 0)
        result = http_percent_encode(buf_text(&id), ret_path);
    if (result == 0)
        result = buf_append_text(ret_path, "?key=");
    if (result == 0)
        result = http_percent_encode(buf_text(&key), ret_path);
    return result == 0 ? buf_printf(ret_path, "&dir=%s", writes ? "write" : "read") : result;
}

int transfer_open(struct transfer *transfer, struct span ref, bool writes,
                  const struct web_socket_events *events, void *ctx)
{
    _cleanup_(buf_done)
    struct buf path = { 0 };
    struct web_socket_spec spec = {
        .endpoint = &transfer->client->endpoint,
        .events = events,
        .ctx = ctx,
    };
    int result = write_path(ref, writes, &path);

    if (result < 0)
        return result;
    spec.path = buf_text(&path);
    transfer_moved(transfer, 0);
    return spec.path ? web_socket_new(transfer->client->loop, &spec, &transfer->socket)
                     : -ENOMEM;
}

void transfer_moved(struct transfer *transfer, size_t bytes)
{
    transfer->bytes += bytes;
    transfer->moved_ms = client_now_ms(transfer->client);
}

void transfer_fail(struct transfer *transfer, const char *format, ...)
{
    va_list arguments;

    if (transfer->failed)
        return;
    transfer->failed = true;
    va_start(arguments, format);
    (void)vsnprintf(transfer->why, sizeof(transfer->why), format, arguments); /* cut is fine */
    va_end(arguments);
}

void transfer_take_text(struct transfer *transfer, struct span text)
{
    _cleanup_(buf_done)
    struct buf error = { 0 };
    struct span value;

    if (json_scan(text.data, text.size, &value, NULL) < 0 || json_kind(value) != JSON_OBJECT)
        return;
    if (output_member_text(value, "error", &error) == 0 && error.size > 0 && buf_text(&error))
        transfer_fail(transfer, "%s", buf_text(&error));
}

struct wait {
    struct transfer *transfer;
    bool (*done)(const void *ctx);
    const void *ctx;
};

static bool is_settled(const void *ctx)
{
    const struct wait *wait = ctx;

    return wait->transfer->failed || wait->done(wait->ctx);
}

enum client_outcome transfer_wait(struct transfer *transfer, bool (*done)(const void *ctx),
                                  const void *ctx)
{
    struct wait wait = { .transfer = transfer, .done = done, .ctx = ctx };
    enum client_outcome outcome;
    uint64_t moved_ms;

    do {
        if (transfer->held)
            transfer_moved(transfer, 0);
        moved_ms = transfer->moved_ms;
        outcome = client_wait_for(transfer->client, is_settled, &wait,
                                  moved_ms + TRANSFER_IDLE_MS, false);
    } while (outcome == CLIENT_TIMED_OUT && (transfer->held || transfer->moved_ms != moved_ms));
    if (outcome == CLIENT_TIMED_OUT)
        transfer_fail(transfer, "no byte has moved for %u s", TRANSFER_IDLE_MS / 1000);
    return outcome;
}
