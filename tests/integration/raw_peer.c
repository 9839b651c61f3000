/* raw_peer.c - see raw_peer.h. */
#include "raw_peer.h"

#include <arpa/inet.h>
#include <check.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "native_client.h"

static int connected(int fd, const struct sockaddr *address, socklen_t size)
{
    ck_assert_int_ge(fd, 0);
    if (connect(fd, address, size) == 0)
        return fd;
    (void)close(fd); /* refused or reset: a crowd was before us */
    return -1;
}

int raw_native(const struct router_process *router)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s",
                   router_process_socket(router));
    return connected(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
                     (struct sockaddr *)&address, sizeof(address));
}

int raw_web(const struct router_process *router)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(router_process_port(router)) };

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return connected(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                     (struct sockaddr *)&address, sizeof(address));
}

void raw_close(int fd)
{
    if (fd >= 0)
        (void)close(fd); /* a test's own socket */
}

void raw_abort(int fd)
{
    const struct linger now = { .l_onoff = 1 };

    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)); /* unix: no reset */
    raw_close(fd);
}

void raw_send(int fd, const void *data, size_t size)
{
    if (fd >= 0)
        (void)!send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT); /* it may be closed already */
}

void raw_text(int fd, const char *text)
{
    raw_send(fd, text, strlen(text));
}

void raw_handshake(int fd)
{
    raw_send(fd, "\0SP\0\0\x10\0\0", 8);
}

void raw_frame(int fd, uint64_t length, const void *data, size_t size)
{
    uint8_t head[9] = { 1 };

    length = htobe64(length);
    memcpy(head + 1, &length, sizeof(length));
    raw_send(fd, head, sizeof(head));
    raw_send(fd, data, size);
}

void raw_envelope(int fd, const struct envelope *envelope)
{
    struct buf bytes = { 0 };

    ck_assert_int_eq(envelope_encode(envelope, &bytes), 0);
    raw_frame(fd, bytes.size, bytes.data, bytes.size);
    buf_done(&bytes);
}

void raw_caller(int fd)
{
    raw_handshake(fd);
    raw_envelope(fd, &native_caller_hello);
}

void raw_upgrade(int fd, const char *path)
{
    char text[1024];

    (void)snprintf(text, sizeof(text),
                   "GET %s HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                   "Sec-WebSocket-Version: 13\r\n"
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                   path);
    raw_text(fd, text);
}

void raw_websocket(int fd, uint8_t first, uint64_t length, const void *data, size_t size)
{
    uint8_t head[14] = { first, 0x80 };
    size_t head_size = 6; /* the mask is 0 */

    if (length < 126) {
        head[1] |= (uint8_t)length;
    } else if (length < 65536) {
        head[1] |= 126;
        head[2] = (uint8_t)(length >> 8);
        head[3] = (uint8_t)length;
        head_size = 8;
    } else {
        length = htobe64(length);
        head[1] |= 127;
        memcpy(head + 2, &length, sizeof(length));
        head_size = 14;
    }
    raw_send(fd, head, head_size);
    raw_send(fd, data, size);
}

bool raw_ended(int fd, int timeout_ms, char *first, size_t first_size)
{
    char bytes[65536];
    size_t used = 0;
    struct pollfd wait = { .fd = fd, .events = POLLIN };

    first[0] = '\0';
    while (poll(&wait, 1, timeout_ms) == 1) {
        ssize_t size = recv(fd, bytes, sizeof(bytes), 0);
        size_t part = size > 0 ? (size_t)size : 0;

        if (size <= 0)
            return true;
        if (part > first_size - 1 - used)
            part = first_size - 1 - used;
        memcpy(first + used, bytes, part);
        used += part;
        first[used] = '\0';
    }
    return false;
}
