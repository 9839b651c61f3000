/* web_client.c - see web_client.h. */
#include "web_client.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#define PATIENCE_TURNS 2000 /* of 5 ms */
#define RECEIVE_BYTES 65536 /* small, so that what is not read waits at the front */

static void turn(struct web_client *client)
{
    ck_assert_int_eq(loop_turn(client->loop, 5), 0);
}

void client_idle(struct web_client *client)
{
    for (int i = 0; i < 10; i++)
        turn(client);
}

void client_connect(struct web_client *client, struct loop *loop, uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

    *client = (struct web_client){ .loop = loop };
    websocket_init(&client->ws, WEBSOCKET_CLIENT, SIZE_MAX / 2);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(client->fd, 0);
    ck_assert_int_eq(
        setsockopt(client->fd, SOL_SOCKET, SO_RCVBUF, &(int){ RECEIVE_BYTES }, sizeof(int)), 0);
    ck_assert_int_eq(connect(client->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(fcntl(client->fd, F_SETFL, O_NONBLOCK), 0);
}

void client_close(struct web_client *client)
{
    closep(&client->fd);
    buf_done(&client->input);
    buf_done(&client->message);
    websocket_done(&client->ws);
}

size_t client_send_some(struct web_client *client, const void *data, size_t size)
{
    ssize_t sent = send(client->fd, data, size, MSG_NOSIGNAL);

    ck_assert_msg(sent >= 0 || errno == EAGAIN, "send: errno %d", errno);
    return sent < 0 ? 0 : (size_t)sent;
}

void client_send_bytes(struct web_client *client, const void *data, size_t size)
{
    const uint8_t *at = data;

    for (int turns = 0; size > 0; turns++) {
        size_t sent = client_send_some(client, at, size);

        ck_assert_int_lt(turns, PATIENCE_TURNS);
        if (sent == 0)
            turn(client);
        at += sent;
        size -= sent;
    }
}

void client_send(struct web_client *client, const char *text)
{
    client_send_bytes(client, text, strlen(text));
}

/* Reads what is there. */
static void receive(struct web_client *client)
{
    uint8_t bytes[65536];
    ssize_t size = recv(client->fd, bytes, sizeof(bytes), 0);

    if (size == 0 || (size < 0 && errno == ECONNRESET))
        client->ended = true;
    else if (size > 0)
        ck_assert_int_eq(buf_append(&client->input, bytes, (size_t)size), 0);
    else
        turn(client);
}

static void take_input(struct web_client *client, size_t size)
{
    buf_clear(&client->message);
    ck_assert_int_eq(buf_append(&client->message, client->input.data, size), 0);
    buf_consume(&client->input, size);
}

const char *client_read_until(struct web_client *client, const char *end)
{
    for (int turns = 0;; turns++) {
        const char *found = strstr(buf_text(&client->input), end);

        if (found) {
            size_t size = (size_t)(found - (char *)client->input.data) + strlen(end);

            take_input(client, size);
            return buf_text(&client->message);
        }
        ck_assert_msg(!client->ended, "the connection ended behind: %s",
                      buf_text(&client->input));
        ck_assert_int_lt(turns, PATIENCE_TURNS);
        receive(client);
    }
}

const char *client_read_all(struct web_client *client)
{
    for (int turns = 0; !client->ended; turns++) {
        ck_assert_int_lt(turns, PATIENCE_TURNS);
        receive(client);
    }
    take_input(client, client->input.size);
    return buf_text(&client->message);
}

void client_open(struct web_client *client, struct loop *loop, uint16_t port, const char *path)
{
    client_connect(client, loop, port);
    client_send(client, "GET ");
    client_send(client, path);
    client_send(client, " HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Version: 13\r\n"
                        "Sec-WebSocket-Extensions: permessage-deflate\r\n"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    ck_assert_str_eq(client_read_until(client, "\r\n\r\n"),
                     "HTTP/1.1 101 Switching Protocols\r\n"
                     "Upgrade: websocket\r\n"
                     "Connection: Upgrade\r\n"
                     "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
}

void client_open_main(struct web_client *client, struct loop *loop, uint16_t port)
{
    client_open(client, loop, port, "/");
    ck_assert(strstr(client_expect_text(client), "\"type\":\"workerregistered\""));
}

void client_frame(struct web_client *client, enum websocket_opcode opcode, const void *data,
                  size_t size)
{
    struct buf frame = { 0 };

    ck_assert_int_eq(websocket_frame_append(&frame, WEBSOCKET_CLIENT, opcode, data, size), 0);
    client_send_bytes(client, frame.data, frame.size);
    buf_done(&frame);
}

void client_text(struct web_client *client, const char *text)
{
    client_frame(client, WEBSOCKET_TEXT, text, strlen(text));
}

struct websocket_event client_next(struct web_client *client)
{
    for (int turns = 0;; turns++) {
        const uint8_t *data = client->input.data;
        size_t size = client->input.size, before = size;
        struct websocket_event event;

        ck_assert_int_eq(websocket_next(&client->ws, &data, &size, &event), 0);
        buf_consume(&client->input, before - size);
        if (event.kind != WEBSOCKET_EVENT_NONE)
            return event;
        ck_assert_msg(!client->ended, "the connection ended without a frame");
        ck_assert_int_lt(turns, PATIENCE_TURNS);
        receive(client);
    }
}

const char *client_expect_text(struct web_client *client)
{
    struct websocket_event event = client_next(client);

    ck_assert_int_eq(event.kind, WEBSOCKET_EVENT_MESSAGE);
    ck_assert(event.is_text);
    buf_clear(&client->message);
    ck_assert_int_eq(buf_append(&client->message, event.data, event.size), 0);
    return buf_text(&client->message);
}

void client_expect_close(struct web_client *client, unsigned code)
{
    struct websocket_event event = client_next(client);
    uint8_t payload[WEBSOCKET_CONTROL_MAX_BYTES];

    ck_assert_int_eq(event.kind, WEBSOCKET_EVENT_CLOSE);
    ck_assert_uint_eq(event.code, code);
    client_frame(client, WEBSOCKET_CLOSE, payload,
                 websocket_close_payload(event.code, "", payload));
    (void)client_read_all(client);
}
