/* web_writer.c - see web_writer.h. */

#include "web_writer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "cleanup.h"

#define PATIENCE_S 60

struct web_writer {
    int fd;
    struct websocket ws;
};

static int send_all(const struct web_writer *writer, const void *data, size_t size)
{
    for (size_t sent = 0; sent < size;) {
        ssize_t count = send(writer->fd, (const char *)data + sent, size - sent, MSG_NOSIGNAL);
        if (count < 0)
            return -errno;
        sent += (size_t)count;
    }
    return 0;
}

static int dial(struct web_writer *writer, uint16_t port)
{
    const struct timeval patience = { .tv_sec = PATIENCE_S };
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    writer->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (writer->fd < 0 ||
        setsockopt(writer->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
        setsockopt(writer->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
        connect(writer->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return 0;
}

/* The head of the answer, byte by byte: what follows belongs to the frames. */
static int read_head(const struct web_writer *writer)
{
    char head[2048];
    size_t size = 0;
    while (size + 1 < sizeof(head)) {
        ssize_t count = recv(writer->fd, head + size, 1, 0);
        if (count <= 0)
            return count < 0 ? -errno : -EPROTO;
        head[++size] = '\0';
        if (size >= 4 && strcmp(head + size - 4, "\r\n\r\n") == 0)
            return strncmp(head, "HTTP/1.1 101 ", 13) == 0 ? 0 : -EPROTO;
    }
    return -EPROTO;
}

static int upgrade(const struct web_writer *writer, const char *channel_id,
                   const char *access_key)
{
    char key[WEBSOCKET_KEY_SIZE + 1], request[1024];
    int ret = websocket_key_new(key);
    if (ret < 0)
        return ret;
    int size = snprintf(request, sizeof(request),
                        "GET /ws/channels/%s?key=%s&dir=write HTTP/1.1\r\nHost: localhost\r\n"
                        "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n",
                        channel_id, access_key, key);
    if (size < 0 || (size_t)size >= sizeof(request))
        return -EINVAL;
    ret = send_all(writer, request, (size_t)size);
    return ret < 0 ? ret : read_head(writer);
}

int web_writer_open(uint16_t port, const char *channel_id, const char *access_key,
                    struct web_writer **ret_writer)
{
    struct web_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return -ENOMEM;
    writer->fd = -1;
    websocket_init(&writer->ws, WEBSOCKET_CLIENT, 65536);
    int ret = dial(writer, port);
    if (ret == 0)
        ret = upgrade(writer, channel_id, access_key);
    if (ret < 0) {
        web_writer_free(writer);
        return ret;
    }
    *ret_writer = writer;
    return 0;
}

int web_writer_send(struct web_writer *writer, enum websocket_opcode opcode, const void *data,
                    size_t size)
{
    _cleanup_(buf_done)
    struct buf frame = { 0 };
    int ret = websocket_frame_append(&frame, WEBSOCKET_CLIENT, opcode, data, size);
    return ret < 0 ? ret : send_all(writer, frame.data, frame.size);
}

/* The code of the front's close frame, or -errno. */
static int read_close(struct web_writer *writer)
{
    uint8_t input[4096];
    for (;;) {
        ssize_t count = recv(writer->fd, input, sizeof(input), 0);
        if (count <= 0)
            return count < 0 ? -errno : -ECONNRESET;
        const uint8_t *data = input;
        size_t size = (size_t)count;
        struct websocket_event event;
        do {
            int ret = websocket_next(&writer->ws, &data, &size, &event);
            if (ret < 0 || event.kind == WEBSOCKET_EVENT_FAILED)
                return ret < 0 ? ret : -EPROTO;
            if (event.kind == WEBSOCKET_EVENT_CLOSE)
                return (int)event.code;
        } while (event.kind != WEBSOCKET_EVENT_NONE);
    }
}

int web_writer_finish(struct web_writer *writer)
{
    uint8_t payload[WEBSOCKET_CONTROL_MAX_BYTES];
    size_t size = websocket_close_payload(WEBSOCKET_CLOSE_NORMAL, "", payload);
    int ret = web_writer_send(writer, WEBSOCKET_CLOSE, payload, size);
    if (ret == 0)
        ret = read_close(writer);
    if (ret < 0)
        return ret;
    return ret == WEBSOCKET_CLOSE_NORMAL ? 0 : -ECONNRESET;
}

void web_writer_free(struct web_writer *writer)
{
    if (!writer)
        return;
    closep(&writer->fd);
    websocket_done(&writer->ws);
    free(writer);
}
