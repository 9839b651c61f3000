/* Every refusal of the HTTP head parser, and what it finds in heads that are right. */
#include <errno.h>

#include "http.h"
#include "unit.h"

#define GOOD "GET /a?b HTTP/1.1\r\nHost: x\r\n"

/* Feeds TEXT in pieces of PIECE bytes; the head is left to the caller. */
static struct http_head feed(const char *text, size_t size, size_t piece, size_t *ret_used)
{
    struct http_head head = { 0 };

    *ret_used = 0;
    while (*ret_used < size && head.state == HTTP_HEAD_OPEN) {
        size_t left = size - *ret_used, used = 0;
        size_t count = piece < left ? piece : left;

        ck_assert_int_eq(http_head_feed(&head, (const uint8_t *)text + *ret_used, count, &used),
                         0);
        *ret_used += used;
    }
    return head;
}

START_TEST(a_head_ends_at_its_empty_line)
{
    static const char text[] = GOOD "\r\nrest";
    size_t pieces[] = { 1, 2, 3, 7, sizeof(text) };

    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        size_t used;
        struct http_head head = feed(text, sizeof(text) - 1, pieces[i], &used);

        ck_assert_int_eq(head.state, HTTP_HEAD_COMPLETE);
        ck_assert_uint_eq(used, sizeof(text) - 1 - 4);
        ck_assert_uint_eq(head.bytes.size, used);
        ck_assert_mem_eq(head.bytes.data, text, used);
        http_head_done(&head);
    }
}
END_TEST

static const struct {
    const char *text;
    size_t size;
} bare_line_ends_and_nul_are_refused_cases[] = {
    { "GET / HTTP/1.1\n", 15 },
    { "GET / HTTP/1.1\r\nHost: x\n\r\n", 26 },
    { "GET / HTTP/1.1\rHost", 19 },
    { "GET / HTTP/1.1\r\r\n", 17 },
    { "GET /\0 HTTP/1.1\r\n\r\n", 19 },
    { "GET / HTTP/1.1\r\n\r\r\n", 19 },
    { "\n", 1 },
};

START_TEST(bare_line_ends_and_nul_are_refused)
{
    size_t used;
    struct http_head head = feed(bare_line_ends_and_nul_are_refused_cases[_i].text,
                                 bare_line_ends_and_nul_are_refused_cases[_i].size, 1, &used);

    ck_assert_int_eq(head.state, HTTP_HEAD_MALFORMED);
    http_head_done(&head);
}
END_TEST

START_TEST(a_head_has_a_longest)
{
    char text[HTTP_HEAD_MAX_BYTES + 1];
    struct http_head head;
    size_t used;

    memset(text, 'a', sizeof(text));
    memcpy(text + HTTP_HEAD_MAX_BYTES - 4, "\r\n\r\n", 4);
    head = feed(text, sizeof(text), sizeof(text), &used);
    ck_assert_int_eq(head.state, HTTP_HEAD_COMPLETE);
    http_head_done(&head);
    text[HTTP_HEAD_MAX_BYTES - 4] = 'a';
    text[HTTP_HEAD_MAX_BYTES - 3] = 'a';
    head = feed(text, sizeof(text), 100, &used);
    ck_assert_int_eq(head.state, HTTP_HEAD_TOO_LONG);
    ck_assert_uint_eq(head.bytes.size, HTTP_HEAD_MAX_BYTES);
    http_head_done(&head);
}
END_TEST

static int parse(const char *text, struct http_request *ret_request)
{
    return http_request_parse(span_of_text(text), ret_request);
}

START_TEST(a_request_is_taken_apart)
{
    struct http_request request;
    struct span value;

    ck_assert_int_eq(parse("GET /ws/x%41?key=a&dir=b?c HTTP/1.1\r\nhOST:\t127.0.0.1:1 \r\n"
                           "Connection: keep-alive, Upgrade\r\nX: \xC3\xA9\r\nEmpty:\r\n\r\n",
                           &request),
                     0);
    ck_assert(span_equals(request.method, "GET"));
    ck_assert(span_equals(request.path, "/ws/x%41"));
    ck_assert(span_equals(request.query, "key=a&dir=b?c"));
    ck_assert_uint_eq(http_header_get(request.headers, "Host", &value), 1);
    ck_assert(span_equals(value, "127.0.0.1:1"));
    ck_assert_uint_eq(http_header_get(request.headers, "empty", &value), 1);
    ck_assert_uint_eq(value.size, 0);
    ck_assert_uint_eq(http_header_get(request.headers, "Absent", NULL), 0);
    ck_assert(http_header_has_token(request.headers, "connection", "upgrade"));
    ck_assert(!http_header_has_token(request.headers, "connection", "grade"));
}
END_TEST

START_TEST(tokens_of_several_lines)
{
    struct http_request request;

    ck_assert_int_eq(parse(GOOD "A: x ,y\r\nA: , z\r\n\r\n", &request), 0);
    ck_assert_uint_eq(http_header_get(request.headers, "A", NULL), 2);
    ck_assert(http_header_has_token(request.headers, "A", "X"));
    ck_assert(http_header_has_token(request.headers, "A", "y"));
    ck_assert(http_header_has_token(request.headers, "A", "z"));
    ck_assert(!http_header_has_token(request.headers, "A", "x ,y"));
}
END_TEST

static const char *const requests_that_are_right_texts[] = {
    GOOD "\r\n",
    "GET / HTTP/1.1\r\nHost:\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\n\r\n",
    GOOD "Content-Length: 0\r\n\r\n",
    GOOD "Sec-WebSocket-Key: a\r\n\r\n",
    "GET /%41 HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /% HTTP/1.1\r\nHost: x\r\n\r\n",
};

START_TEST(requests_that_are_right)
{
    struct http_request request;

    ck_assert_int_eq(parse(requests_that_are_right_texts[_i], &request), 0);
}
END_TEST

static const char *const requests_that_are_refused_texts[] = {
    "\r\n",
    "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
    "GET / HTTP/1.0\r\nHost: x\r\n\r\n",
    "GET / HTTP/1.1 \r\nHost: x\r\n\r\n",
    "GET / http/1.1\r\nHost: x\r\n\r\n",
    "GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
    " GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET / HTTP/1.1\r\n Host: x\r\n\r\n",
    "G@T / HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /\r\nHost: x\r\n\r\n",
    "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET * HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /\xC3\xA9 HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /\x7F HTTP/1.1\r\nHost: x\r\n\r\n",
    GOOD "A: b\r\n c\r\n\r\n",
    GOOD "A : b\r\n\r\n",
    GOOD " A: b\r\n\r\n",
    GOOD "A\r\n\r\n",
    GOOD ": b\r\n\r\n",
    GOOD "A: b\x01\r\n\r\n",
    GOOD "A: b\x7F\r\n\r\n",
    GOOD "\xC3\xA9: b\r\n\r\n",
    GOOD "Content-Length: 1\r\n\r\n",
    GOOD "Content-Length: 00\r\n\r\n",
    GOOD "Content-Length:\r\n\r\n",
    GOOD "Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
    GOOD "Transfer-Encoding: chunked\r\n\r\n",
    GOOD "Transfer-Encoding:\r\n\r\n",
    GOOD "Sec-WebSocket-Key: a\r\nSec-WebSocket-Key: a\r\n\r\n",
};

START_TEST(requests_that_are_refused)
{
    struct http_request request;

    ck_assert_msg(parse(requests_that_are_refused_texts[_i], &request) == -EBADMSG, "taken: %s",
                  requests_that_are_refused_texts[_i]);
}
END_TEST

START_TEST(responses)
{
    struct http_response response;

    ck_assert_int_eq(
        http_response_parse(span_of_text("HTTP/1.1 101 Switching Protocols\r\nA: b\r\n\r\n"),
                            &response),
        0);
    ck_assert_uint_eq(response.status, 101);
    ck_assert(span_equals(response.reason, "Switching Protocols"));
    ck_assert(http_header_has_token(response.headers, "a", "b"));
    ck_assert_int_eq(http_response_parse(span_of_text("HTTP/1.1 404\r\n\r\n"), &response), 0);
    ck_assert_uint_eq(response.status, 404);
}
END_TEST

static const char *const responses_that_are_refused_texts[] = {
    "\r\n",
    "HTTP/1.1\r\n\r\n",
    "HTTP/2 200 OK\r\n\r\n",
    "HTTP/1.1 20 OK\r\n\r\n",
    "HTTP/1.1 2000 OK\r\n\r\n",
    "HTTP/1.1 2x0 OK\r\n\r\n",
    "HTTP/1.1 099 OK\r\n\r\n",
    "HTTP/1.1 200 O\x01K\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
};

START_TEST(responses_that_are_refused)
{
    struct http_response response;

    ck_assert_int_eq(
        http_response_parse(span_of_text(responses_that_are_refused_texts[_i]), &response),
        -EBADMSG);
}
END_TEST

static const struct {
    const char *query;
    const char *value; /* of `key` */
    unsigned count;
    int result;
} queries_cases[] = {
    { "key=a&dir=b", "a", 1, 0 },
    { "dir=b&key=a%2Fb%c3%a9", "a/b\xC3\xA9", 1, 0 },
    { "key=", "", 1, 0 },
    { "key=a=b", "a=b", 1, 0 },
    { "key", "", 0, 0 },
    { "", "", 0, 0 },
    { "&&", "", 0, 0 },
    { "k%65y=a", "", 0, 0 },
    { "key=a&key=b", "b", 2, 0 },
    { "key=a+b", "a+b", 1, 0 },
    { "key=%", "", 0, -EBADMSG },
    { "key=%4", "", 0, -EBADMSG },
    { "key=%4g", "", 0, -EBADMSG },
    { "key=a&dir=%", "", 0, -EBADMSG },
    { "%zz&key=a", "a", 1, 0 },
};

START_TEST(queries)
{
    struct buf value = { 0 };
    unsigned count = 0;

    ck_assert_int_eq(
        http_query_get(span_of_text(queries_cases[_i].query), "key", &value, &count),
        queries_cases[_i].result);
    ck_assert_uint_eq(count, queries_cases[_i].count);
    if (count > 0)
        ck_assert_str_eq(buf_text(&value), queries_cases[_i].value);
    buf_done(&value);
}
END_TEST

START_TEST(percent_encoding_and_back)
{
    struct buf encoded = { 0 }, decoded = { 0 };
    unsigned count;

    ck_assert_int_eq(buf_append_text(&encoded, "key="), 0);
    ck_assert_int_eq(http_percent_encode("a-._~ /%&=\xC3\xA9", &encoded), 0);
    ck_assert_str_eq(buf_text(&encoded), "key=a-._~%20%2F%25%26%3D%C3%A9");
    ck_assert_int_eq(http_query_get(span_of_text(buf_text(&encoded)), "key", &decoded, &count),
                     0);
    ck_assert_str_eq(buf_text(&decoded), "a-._~ /%&=\xC3\xA9");
    buf_done(&encoded);
    buf_done(&decoded);
}
END_TEST

START_TEST(answers)
{
    struct buf answer = { 0 };

    ck_assert_int_eq(http_response_append(&answer, 405, "Allow: GET\r\n", "text/plain",
                                          span_of_text("no\n")),
                     0);
    ck_assert_str_eq(buf_text(&answer), "HTTP/1.1 405 Method Not Allowed\r\n"
                                        "Content-Type: text/plain\r\n"
                                        "Content-Length: 3\r\n"
                                        "Allow: GET\r\n"
                                        "Connection: close\r\n\r\nno\n");
    buf_done(&answer);
}
END_TEST

UNIT_MAIN_ROWS(
    "http", UNIT_TEST(a_head_ends_at_its_empty_line),
    UNIT_ROWS(bare_line_ends_and_nul_are_refused, bare_line_ends_and_nul_are_refused_cases),
    UNIT_TEST(a_head_has_a_longest), UNIT_TEST(a_request_is_taken_apart),
    UNIT_TEST(tokens_of_several_lines),
    UNIT_ROWS(requests_that_are_right, requests_that_are_right_texts),
    UNIT_ROWS(requests_that_are_refused, requests_that_are_refused_texts), UNIT_TEST(responses),
    UNIT_ROWS(responses_that_are_refused, responses_that_are_refused_texts),
    UNIT_ROWS(queries, queries_cases), UNIT_TEST(percent_encoding_and_back), UNIT_TEST(answers))
