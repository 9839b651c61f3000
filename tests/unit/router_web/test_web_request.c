/* Each check that a request goes through, and their order: every case breaks one thing more
 * than the one below it in the specification's table. */
#include <stdlib.h>

#include "unit.h"
#include "web_request.h"

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define UPGRADE                                                                                \
    "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n"
#define HEAD(target) "GET " target " HTTP/1.1\r\nHost: anything\r\n"
#define GOOD(target) HEAD(target) UPGRADE KEY
#define TOKEN "0123456789abcdef"

static char *origins[] = { "https://app.example.com" };
static const struct text_list allowed = { .count = 1, .items = origins };

static struct web_request judge(const char *text, const char *token)
{
    struct web_policy policy = { .allowed_origins = &allowed, .token = token };
    struct http_head head = { 0 };
    struct web_request request;
    size_t used;

    ck_assert_int_eq(http_head_feed(&head, (const uint8_t *)text, strlen(text), &used), 0);
    ck_assert_int_eq(web_request_judge(&head, &policy, &request), 0);
    request.key = (struct span){ 0 }; /* it points into the head */
    http_head_done(&head);
    return request;
}

static void expect_status(const char *text, const char *token, unsigned status)
{
    struct web_request request = judge(text, token);

    ck_assert_msg(request.status == status, "%u instead of %u for: %s", request.status, status,
                  text);
    web_request_done(&request);
}

static const struct {
    const char *text;
    enum web_target target;
} targets_cases[] = {
    { GOOD("/") "\r\n", WEB_TARGET_MAIN },
    { GOOD("/?x=%") "\r\n", WEB_TARGET_MAIN },
    { GOOD("/otel") "\r\n", WEB_TARGET_OTEL },
    { HEAD("/metrics") "\r\n", WEB_TARGET_METRICS },
    { HEAD("/healthz?a") "\r\n", WEB_TARGET_HEALTH },
    { GOOD("/ws/channels/abc?key=k%20k&dir=write") "\r\n", WEB_TARGET_CHANNEL },
    { GOOD("/ws/channels/abc?dir=read&key=k&x=y") "\r\n", WEB_TARGET_CHANNEL },
};

START_TEST(targets)
{
    struct web_request request = judge(targets_cases[_i].text, NULL);

    ck_assert_uint_eq(request.status, 0);
    ck_assert_int_eq(request.target, targets_cases[_i].target);
    web_request_done(&request);
}
END_TEST

START_TEST(channel_parts)
{
    struct web_request request = judge(GOOD("/ws/channels/abc?key=k%20k&dir=write") "\r\n",
                                       NULL);

    ck_assert(request.writes);
    ck_assert_str_eq(buf_text(&request.access_key), "k k");
    web_request_done(&request);
    request = judge(GOOD("/ws/channels/abc?key=k&dir=read") "\r\n", NULL);
    ck_assert(!request.writes);
    web_request_done(&request);
}
END_TEST

static const struct {
    unsigned status;
    const char *text;
} refusals_cases[] = {
    { 400, "GET / HTTP/1.1\n" },
    { 400, "GET / HTTP/1.1\r\n\r\n" },
    { 400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n" },
    { 405, "POST /nowhere HTTP/1.1\r\nHost: a\r\nOrigin: null\r\n\r\n" },
    { 405, "HEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\n" },
    { 404, HEAD("/nowhere") "Origin: null\r\n\r\n" },
    { 404, HEAD("/otel/") "\r\n" },
    { 404, HEAD("//") "\r\n" },
    { 404, HEAD("/%6Ftel") "\r\n" },
    { 404, HEAD("/%41") "\r\n" },
    { 404, HEAD("/ws/channels/") "\r\n" },
    { 404, HEAD("/ws/channels/a/b?key=k&dir=read") "\r\n" },
    { 404, HEAD("/OTEL") "\r\n" },
    { 403, HEAD("/healthz") "Origin: null\r\n\r\n" },
    { 403, HEAD("/otel") "Origin: http://evil.example\r\n\r\n" },
    { 403, GOOD("/") "Origin: http://anything\r\n\r\n" }, /* equals Host */
    { 403, GOOD("/") "Origin: http://localhost\r\nOrigin: http://localhost\r\n\r\n" },
    { 426, HEAD("/") "\r\n" },
    { 426, HEAD("/otel") KEY "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n" },
    { 426, HEAD("/") KEY "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n" },
    { 426, HEAD("/") KEY
      "Upgrade: h2c\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n" },
    { 426, HEAD("/") KEY
      "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 8\r\n\r\n" },
    { 426, HEAD("/") KEY "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n" },
    { 426, HEAD("/ws/channels/a") "\r\n" },
    { 400, HEAD("/") UPGRADE "\r\n" },
    { 400, HEAD("/") UPGRADE "Sec-WebSocket-Key: short\r\n\r\n" },
    { 400, HEAD("/ws/channels/a") UPGRADE "\r\n" },
    { 400, GOOD("/ws/channels/a") "\r\n" },
    { 400, GOOD("/ws/channels/a?key=k") "\r\n" },
    { 400, GOOD("/ws/channels/a?dir=read") "\r\n" },
    { 400, GOOD("/ws/channels/a?key=k&key=k&dir=read") "\r\n" },
    { 400, GOOD("/ws/channels/a?key=k&dir=read&dir=read") "\r\n" },
    { 400, GOOD("/ws/channels/a?key=k&dir=both") "\r\n" },
    { 400, GOOD("/ws/channels/a?key=k&dir=READ") "\r\n" },
    { 400, GOOD("/ws/channels/a?key=%zz&dir=read") "\r\n" },
    { 400, GOOD("/ws/channels/a?key=k&dir=read&x=%") "\r\n" },
};

START_TEST(refusals)
{
    expect_status(refusals_cases[_i].text, NULL, refusals_cases[_i].status);
}
END_TEST

START_TEST(a_long_head)
{
    char text[9000];

    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    expect_status(text, NULL, 431);
}
END_TEST

START_TEST(refusals_say_what_would_do)
{
    struct web_request request = judge("PUT / HTTP/1.1\r\nHost: a\r\n\r\n", NULL);

    ck_assert_str_eq(request.extra, "Allow: GET\r\n");
    web_request_done(&request);
    request = judge(HEAD("/") "\r\n", NULL);
    ck_assert_str_eq(request.extra, "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
    web_request_done(&request);
    request = judge(HEAD("/metrics") "\r\n", TOKEN);
    ck_assert_str_eq(request.extra, "WWW-Authenticate: Bearer\r\n");
    web_request_done(&request);
}
END_TEST

static const struct {
    unsigned status;
    const char *text;
} the_token_cases[] = {
    { 401, GOOD("/") "\r\n" },
    { 401, HEAD("/metrics") "\r\n" },
    { 401, GOOD("/") "Authorization: Bearer 0123456789abcdeF\r\n\r\n" },
    { 401, GOOD("/") "Authorization: Bearer 0123456789abcde\r\n\r\n" },
    { 401, GOOD("/") "Authorization: Bearer 0123456789abcdeff\r\n\r\n" },
    { 401, GOOD("/") "Authorization: Basic 0123456789abcdef\r\n\r\n" },
    { 401, GOOD("/") "Authorization: 0123456789abcdef\r\n\r\n" },
    { 401, GOOD("/") "Authorization:\r\n\r\n" },
    { 401,
      GOOD("/") "Authorization: Bearer " TOKEN "\r\nAuthorization: Bearer " TOKEN "\r\n\r\n" },
    { 401, HEAD("/") "\r\n" },                 /* before 426 */
    { 403, GOOD("/") "Origin: null\r\n\r\n" }, /* and after 403 */
    { 0, GOOD("/") "Authorization: Bearer " TOKEN "\r\n\r\n" },
    { 0, GOOD("/") "Authorization: bearer " TOKEN "\r\n\r\n" },
    { 0, HEAD("/metrics") "Authorization: Bearer " TOKEN "\r\n\r\n" },
    { 0, HEAD("/healthz") "\r\n" },
    { 0, GOOD("/otel") "\r\n" },
    { 0, GOOD("/ws/channels/a?key=k&dir=read") "\r\n" },
};

START_TEST(the_token)
{
    expect_status(the_token_cases[_i].text, TOKEN, the_token_cases[_i].status);
}
END_TEST

static const char *const origins_that_pass_texts[] = {
    "http://localhost",        "https://localhost:8443", "http://127.0.0.1:3000",
    "http://127.255.0.1",      "http://[::1]",           "https://[::1]:5",
    "https://app.example.com", "http://localhost:65535",
};

START_TEST(origins_that_pass)
{
    ck_assert_msg(web_origin_allowed(span_of_text(origins_that_pass_texts[_i]), &allowed), "%s",
                  origins_that_pass_texts[_i]);
}
END_TEST

static const char *const origins_that_do_not_texts[] = {
    "",
    "null",
    "localhost",
    "http://",
    "http://localhost.example.com",
    "http://localhost:",
    "http://localhost:65536",
    "http://localhost:1x",
    "http://localhost/",
    "http://LOCALHOST",
    "HTTP://localhost",
    "ws://localhost",
    "http://user@localhost",
    "http://128.0.0.1",
    "http://127.0.0",
    "http://127.0.0.256",
    "http://127.0.0.01",
    "http://127.0.0.1.example.com",
    "http://127.0.0.1a",
    "http://[::1",
    "http://[::2]",
    "http://[::1]x",
    "https://app.example.com:443",
    "https://app.example.com/",
    "http://app.example.com",
    "file://",
    "http://notlocalhost",
};

START_TEST(origins_that_do_not)
{
    ck_assert_msg(!web_origin_allowed(span_of_text(origins_that_do_not_texts[_i]), &allowed),
                  "%s", origins_that_do_not_texts[_i]);
}
END_TEST

UNIT_MAIN_ROWS("web_request", UNIT_ROWS(targets, targets_cases), UNIT_TEST(channel_parts),
               UNIT_ROWS(refusals, refusals_cases), UNIT_TEST(a_long_head),
               UNIT_TEST(refusals_say_what_would_do), UNIT_ROWS(the_token, the_token_cases),
               UNIT_ROWS(origins_that_pass, origins_that_pass_texts),
               UNIT_ROWS(origins_that_do_not, origins_that_do_not_texts))
