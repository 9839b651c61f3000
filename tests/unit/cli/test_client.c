/* The client against a router that the test plays: the upgrade, calls, and every way of not
 * getting an answer. The played router is a thread that follows a script of reads and writes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

#include "client.h"
#include "http.h"
#include "unit.h"

enum script_kind {
    ACCEPT_UPGRADE, /* reads the request and answers with the right 101 */
    ANSWER_UPGRADE, /* reads the request and answers with TEXT */
    SEND_TEXT,      /* a text frame */
    SEND_BYTES,     /* TEXT as it is */
    READ_CALL,      /* a frame, which must hold TEXT */
    READ_CLOSE,     /* a close frame with 1000, which is echoed */
    HOLD            /* nothing until the client leaves */
};

struct step {
    enum script_kind kind;
    const char *text;
};

struct played {
    int listener;
    uint16_t port;
    const struct step *steps;
    pthread_t thread;
    char request[2048];
    struct websocket ws;
    struct buf input;
};

static void read_request(struct played *played, int fd)
{
    size_t size = 0;

    while (size < 4 || memcmp(played->request + size - 4, "\r\n\r\n", 4) != 0) {
        if (read(fd, played->request + size, 1) != 1)
            abort();
        played->request[++size] = '\0';
    }
}

static void send_all(int fd, const void *data, size_t size)
{
    if (send(fd, data, size, MSG_NOSIGNAL) != (ssize_t)size)
        abort();
}

static void accept_upgrade(struct played *played, int fd)
{
    char accept[WEBSOCKET_ACCEPT_SIZE + 1], answer[256];
    struct http_request request;
    struct span key;

    read_request(played, fd);
    if (http_request_parse(span_of_text(played->request), &request) < 0 ||
        http_header_get(request.headers, "Sec-WebSocket-Key", &key) != 1 ||
        websocket_key_accept(key, accept) < 0)
        abort();
    (void)snprintf(answer, sizeof(answer),
                   "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                   "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
                   accept);
    send_all(fd, answer, strlen(answer));
}

static struct websocket_event read_event(struct played *played, int fd)
{
    for (;;) {
        const uint8_t *data = played->input.data;
        size_t size = played->input.size, before = size;
        struct websocket_event event;
        uint8_t bytes[4096];
        ssize_t got;

        if (websocket_next(&played->ws, &data, &size, &event) < 0)
            abort();
        buf_consume(&played->input, before - size);
        if (event.kind != WEBSOCKET_EVENT_NONE)
            return event;
        got = read(fd, bytes, sizeof(bytes));
        if (got <= 0 || buf_append(&played->input, bytes, (size_t)got) < 0)
            abort();
    }
}

static void read_call(struct played *played, int fd, const char *text)
{
    struct websocket_event event = read_event(played, fd);

    if (event.kind != WEBSOCKET_EVENT_MESSAGE ||
        !memmem(event.data, event.size, text, strlen(text))) {
        (void)fprintf(stderr, "got %.*s\n", (int)event.size, (const char *)event.data);
        abort();
    }
}

static void send_frame(int fd, enum websocket_opcode opcode, const void *data, size_t size)
{
    struct buf frame = { 0 };

    if (websocket_frame_append(&frame, WEBSOCKET_SERVER, opcode, data, size) < 0)
        abort();
    send_all(fd, frame.data, frame.size);
    buf_done(&frame);
}

static void play_step(struct played *played, int fd, const struct step *step)
{
    char byte;

    switch (step->kind) {
    case ACCEPT_UPGRADE:
        accept_upgrade(played, fd);
        break;
    case ANSWER_UPGRADE:
        read_request(played, fd);
        send_all(fd, step->text, strlen(step->text));
        break;
    case SEND_TEXT:
        send_frame(fd, WEBSOCKET_TEXT, step->text, strlen(step->text));
        break;
    case SEND_BYTES:
        send_all(fd, step->text, strlen(step->text));
        break;
    case READ_CALL:
        read_call(played, fd, step->text);
        break;
    case READ_CLOSE:
        if (read_event(played, fd).code != WEBSOCKET_CLOSE_NORMAL)
            abort();
        send_frame(fd, WEBSOCKET_CLOSE, "\x03\xE8", 2);
        break;
    case HOLD:
        while (read(fd, &byte, 1) > 0)
            continue;
        break;
    }
}

static void *play(void *argument)
{
    struct played *played = argument;
    int fd = accept(played->listener, NULL, NULL);

    for (size_t i = 0; played->steps[i].kind != HOLD || played->steps[i].text; i++) {
        play_step(played, fd, &played->steps[i]);
        if (played->steps[i].kind == HOLD)
            break;
    }
    close(fd);
    return NULL;
}

/* The end of a script: TCP is closed. */
#define END                                                                                    \
    {                                                                                          \
        HOLD, NULL                                                                             \
    }

static void start(struct played *played, const struct step *steps)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof(address);

    *played = (struct played){ .steps = steps };
    websocket_init(&played->ws, WEBSOCKET_SERVER, SIZE_MAX / 2);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    played->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(played->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(played->listener, 1), 0);
    ck_assert_int_eq(getsockname(played->listener, (struct sockaddr *)&address, &size), 0);
    played->port = ntohs(address.sin_port);
    ck_assert_int_eq(pthread_create(&played->thread, NULL, play, played), 0);
}

static void finish(struct played *played)
{
    (void)pthread_join(played->thread, NULL);
    close(played->listener);
    buf_done(&played->input);
    websocket_done(&played->ws);
}

/* One call with {"a":1}; its outcome, and its answer in *ret_call. */
static enum client_outcome call(struct client *client, uint16_t port, const char *token,
                                uint64_t timeout_ms, struct client_call *ret_call)
{
    static const struct client_request request = {
        .function = "f",
        .payload = { "{\"a\":1}", 7 },
        .name_space = "n",
    };
    struct endpoint endpoint = { .host = "127.0.0.1", .port = port };

    *ret_call = (struct client_call){ 0 };
    ck_assert_int_eq(client_init(client, &endpoint, token), 0);
    return client_run(client, ret_call, &request, client_now_ms(client) + timeout_ms);
}

#define CALL                                                                                   \
    "{\"type\":\"invokefunction\",\"invocation_id\":\"1\",\"function_id\":\"f\","              \
    "\"namespace\":\"n\",\"data\":{\"a\":1}}"
#define RESULT "{\"type\":\"invocationresult\",\"invocation_id\":\"1\",\"function_id\":\"f\","

START_TEST(a_call_and_a_goodbye)
{
    static const struct step steps[] = {
        { ACCEPT_UPGRADE, "" },
        { SEND_TEXT, "{\"type\":\"workerregistered\",\"worker_id\":\"w\"}" },
        { READ_CALL, CALL },
        { SEND_TEXT, "nonsense" },
        { SEND_TEXT, "{\"type\":\"invocationresult\",\"invocation_id\":\"2\",\"result\":0}" },
        { SEND_TEXT, RESULT "\"result\":[1.0]}" },
        { READ_CLOSE, "" },
        END,
    };
    struct played played;
    struct client client;
    struct client_call answer;

    start(&played, steps);
    ck_assert_int_eq(call(&client, played.port, NULL, 10000, &answer), CLIENT_ANSWERED);
    ck_assert(!answer.is_error);
    ck_assert_str_eq(buf_text(&answer.answer), "[1.0]");
    client_close(&client);
    client_call_done(&answer);
    client_done(&client);
    finish(&played);
    ck_assert_ptr_null(strstr(played.request, "Authorization"));
    ck_assert_ptr_null(strstr(played.request, "Origin"));
}
END_TEST

START_TEST(an_error_and_the_token)
{
    static const struct step steps[] = {
        { ACCEPT_UPGRADE, "" },
        { READ_CALL, "\"f\"" },
        { SEND_TEXT, RESULT "\"error\":{\"code\":\"c\"}}" },
        { HOLD, "" },
    };
    struct played played;
    struct client client;
    struct client_call answer;

    start(&played, steps);
    ck_assert_int_eq(call(&client, played.port, "secret", 10000, &answer), CLIENT_ANSWERED);
    ck_assert(answer.is_error);
    ck_assert_str_eq(buf_text(&answer.answer), "{\"code\":\"c\"}");
    client_call_done(&answer);
    client_done(&client);
    finish(&played);
    ck_assert_ptr_nonnull(strstr(played.request, "\r\nAuthorization: Bearer secret\r\n"));
}
END_TEST

static const struct {
    struct step steps[5];
    const char *why;
} no_answer_cases[] = {
    { { { ACCEPT_UPGRADE, "" }, { READ_CALL, "" }, END }, "closed" },
    { { { ACCEPT_UPGRADE, "" }, { SEND_BYTES, "\xFF\x01" }, { HOLD, "" } }, "RSV" },
    { { { ANSWER_UPGRADE, "SSH-2.0-x\r\n\r\n" }, { HOLD, "" } }, "no HTTP" },
    { { { ANSWER_UPGRADE, "hello\n" }, { HOLD, "" } }, "no HTTP" },
    { { { ANSWER_UPGRADE, "HTTP/1.1 401 Unauthorized\r\n\r\na bearer token is needed\n" },
        { HOLD, "" } },
      "HTTP 401 Unauthorized: a bearer token is needed" },
    { { { ANSWER_UPGRADE, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                          "Connection: Upgrade\r\n"
                          "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n" },
        { HOLD, "" } },
      "no WebSocket" },
};

START_TEST(no_answer)
{
    char text[CLIENT_TEXT_MAX_BYTES];
    struct played played;
    struct client client;
    struct client_call answer;

    start(&played, no_answer_cases[_i].steps);
    ck_assert_int_eq(call(&client, played.port, NULL, 10000, &answer), CLIENT_LOST);
    client_explain(&client, CLIENT_LOST, "f", 10000, text);
    ck_assert_msg(strstr(text, no_answer_cases[_i].why) != NULL, "%s", text);
    client_call_done(&answer);
    client_done(&client);
    finish(&played);
}
END_TEST

START_TEST(refused)
{
    char text[CLIENT_TEXT_MAX_BYTES], port_text[32];
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct client client;
    struct client_call answer;

    /* bound, not listening: nobody else gets the port meanwhile */
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    ck_assert_int_eq(call(&client, ntohs(address.sin_port), NULL, 10000, &answer), CLIENT_LOST);
    client_explain(&client, CLIENT_LOST, "f", 10000, text);
    (void)snprintf(port_text, sizeof(port_text), "127.0.0.1 port %u", ntohs(address.sin_port));
    ck_assert_msg(strstr(text, port_text) && strstr(text, "refused"), "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "does the router run there?"));
    client_call_done(&answer);
    client_done(&client);
    close(fd);
}
END_TEST

static const struct step silence_steps[][3] = {
    { { HOLD, "" } },
    { { ACCEPT_UPGRADE, "" }, { HOLD, "" } },
};

START_TEST(silence)
{
    struct played played;
    struct client client;
    struct client_call answer;
    uint64_t began;

    start(&played, silence_steps[_i]);
    ck_assert_int_eq(call(&client, played.port, NULL, 300, &answer), CLIENT_TIMED_OUT);
    began = client_now_ms(&client);
    ck_assert_int_eq(client_wait(&client, &answer, began + 100, false), CLIENT_TIMED_OUT);
    ck_assert_uint_ge(client_now_ms(&client), began + 100);
    client_call_done(&answer);
    client_done(&client);
    finish(&played);
}
END_TEST

START_TEST(a_signal_ends_the_wait)
{
    static const struct step steps[] = { { HOLD, "" } };
    static const struct client_request request = { .function = "f", .payload = { "{}", 2 } };
    struct endpoint endpoint = { .host = "localhost" };
    struct played played;
    struct client client;
    struct client_call answer = { 0 };

    /* first: it blocks the signals for the threads to come */
    ck_assert_int_eq(client_init(&client, &endpoint, NULL), 0);
    start(&played, steps);
    client.endpoint.port = played.port;
    ck_assert_int_eq(client_call_begin(&client, &answer, &request), 0);
    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
    ck_assert_int_eq(client_wait(&client, &answer, CLIENT_NO_DEADLINE, false),
                     CLIENT_INTERRUPTED);
    ck_assert_int_eq(client.interrupt.caught, SIGTERM);
    ck_assert_int_eq(client_wait(&client, &answer, client_now_ms(&client) + 50, true),
                     CLIENT_TIMED_OUT);
    client_call_done(&answer);
    client_done(&client);
    shutdown(played.listener, SHUT_RDWR); /* it may not have connected yet */
    finish(&played);
}
END_TEST

UNIT_MAIN_ROWS("client", UNIT_TEST(a_call_and_a_goodbye), UNIT_TEST(an_error_and_the_token),
               UNIT_ROWS(no_answer, no_answer_cases), UNIT_TEST(refused),
               UNIT_ROWS(silence, silence_steps), UNIT_TEST(a_signal_ends_the_wait))
