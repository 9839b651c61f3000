/* The WebSocket codec: each rule of RFC 6455 that the wire specification names. Everything is
 * fed in pieces of several sizes, so that no rule depends on how bytes arrive. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"
#include "websocket.h"

#define LIMIT 1000

/* An event as text: kind, then what belongs to it. */
static void describe(const struct websocket_event *event, struct buf *to)
{
    int size = (int)event->size;
    const char *data = event->data ? (const char *)event->data : "";
    int result = 0;

    switch (event->kind) {
    case WEBSOCKET_EVENT_NONE:
        break;
    case WEBSOCKET_EVENT_MESSAGE:
        result = buf_printf(to, "%s(%.*s)", event->is_text ? "text" : "binary", size, data);
        break;
    case WEBSOCKET_EVENT_PING:
        result = buf_printf(to, "ping(%.*s)", size, data);
        break;
    case WEBSOCKET_EVENT_PONG:
        result = buf_printf(to, "pong(%.*s)", size, data);
        break;
    case WEBSOCKET_EVENT_CLOSE:
        result = buf_printf(to, "close(%u %.*s)", event->code, size, data);
        break;
    case WEBSOCKET_EVENT_FAILED:
        result = buf_printf(to, "failed(%u)", event->code);
        break;
    }
    ck_assert_int_eq(result, 0);
}

/* Decodes BYTES, given to the decoder PIECE by PIECE, each in a block of exactly its size. */
static void decode(struct websocket *ws, const struct buf *bytes, size_t piece, struct buf *to)
{
    for (size_t at = 0; at < bytes->size; at += piece) {
        size_t size = bytes->size - at < piece ? bytes->size - at : piece;
        uint8_t *copy = malloc(size);
        const uint8_t *data = copy;
        struct websocket_event event;

        memcpy(copy, bytes->data + at, size);
        do {
            ck_assert_int_eq(websocket_next(ws, &data, &size, &event), 0);
            describe(&event, to);
        } while (event.kind != WEBSOCKET_EVENT_NONE);
        free(copy);
    }
}

static void expect_as(enum websocket_role role, const struct buf *bytes, const char *events)
{
    static const size_t pieces[] = { 1, 2, 5, 4096 };

    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        struct websocket ws;
        struct buf text = { 0 };

        websocket_init(&ws, role, LIMIT);
        decode(&ws, bytes, pieces[i], &text);
        ck_assert_str_eq(buf_text(&text), events);
        buf_done(&text);
        websocket_done(&ws);
    }
}

static void expect(const char *bytes, size_t size, const char *events)
{
    struct buf input = { .data = (uint8_t *)(uintptr_t)bytes, .size = size };

    expect_as(WEBSOCKET_CLIENT, &input, events);
}

#define EXPECT(bytes, events) expect(bytes, sizeof(bytes) - 1, events)

START_TEST(messages)
{
    EXPECT("\x81\x05hello", "text(hello)");
    EXPECT("\x82\x03"
           "abc",
           "binary(abc)");
    EXPECT("\x81\x00", "text()");
    EXPECT("\x81\x01"
           "a\x82\x01"
           "b\x81\x01"
           "c",
           "text(a)binary(b)text(c)");
}
END_TEST

START_TEST(fragments)
{
    EXPECT("\x01\x02he\x00\x02ll\x80\x01o", "text(hello)");
    EXPECT("\x01\x02he\x89\x01!\x80\x03llo", "ping(!)text(hello)");
    EXPECT("\x02\x00\x80\x00", "binary()");
    EXPECT("\x01\x01\xC3\x80\x01\xA9", "text(\xC3\xA9)");
}
END_TEST

START_TEST(controls)
{
    EXPECT("\x89\x00", "ping()");
    EXPECT("\x8A\x02hi", "pong(hi)");
    EXPECT("\x88\x00", "close(1005 )");
    EXPECT("\x88\x02\x03\xE8", "close(1000 )");
    EXPECT("\x88\x05\x0F\xA0"
           "bye",
           "close(4000 bye)");
    EXPECT("\x88\x00\x89\x00", "close(1005 )");
}
END_TEST

START_TEST(breaches)
{
    EXPECT("\x81\x85????hello", "failed(1002)"); /* masked by a server */
    EXPECT("\xC1\x00", "failed(1002)");
    EXPECT("\xA1\x00", "failed(1002)");
    EXPECT("\x91\x00", "failed(1002)");
    EXPECT("\x83\x00", "failed(1002)");
    EXPECT("\x87\x00", "failed(1002)");
    EXPECT("\x8B\x00", "failed(1002)");
    EXPECT("\x8F\x00", "failed(1002)");
    EXPECT("\x09\x00", "failed(1002)");         /* fragmented control */
    EXPECT("\x89\x7E\x00\x7E", "failed(1002)"); /* long control */
    EXPECT("\x81\x7E\x00\x7D", "failed(1002)"); /* not the shortest form */
    EXPECT("\x81\x7F\x00\x00\x00\x00\x00\x00\xFF\xFF", "failed(1002)");
    EXPECT("\x81\x7F\x80\x00\x00\x00\x00\x00\x00\x00", "failed(1002)");
    EXPECT("\x80\x00", "failed(1002)");                       /* continues nothing */
    EXPECT("\x01\x00\x80\x00\x80\x00", "text()failed(1002)"); /* nor here */
    EXPECT("\x01\x00\x81\x00", "failed(1002)");               /* inside a fragmented one */
    EXPECT("\x88\x01x", "failed(1002)");
}
END_TEST

START_TEST(text_that_is_none)
{
    EXPECT("\x81\x01\xFF", "failed(1007)");
    EXPECT("\x81\x02\xC3"
           "a",
           "failed(1007)");
    EXPECT("\x81\x01\xC3", "failed(1007)");
    EXPECT("\x81\x03\xED\xA0\x80", "failed(1007)");
    EXPECT("\x81\x02\xC0\x80", "failed(1007)");
    EXPECT("\x81\x04\xF4\x90\x80\x80", "failed(1007)");
    EXPECT("\x01\x01\xC3\x80\x01"
           "a",
           "failed(1007)");
    EXPECT("\x88\x03\x03\xE8\xFF", "failed(1007)");
    EXPECT("\x82\x01\xFF", "binary(\xFF)");
}
END_TEST

START_TEST(close_codes)
{
    static const unsigned legal[] = { 1000, 1001, 1002, 1003, 1007, 1011, 1014, 3000, 4999 };
    static const unsigned illegal[] = {
        0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535
    };
    char frame[] = "\x88\x02??";
    char events[32];

    for (size_t i = 0; i < ARRAY_SIZE(legal); i++) {
        frame[2] = (char)(legal[i] >> 8);
        frame[3] = (char)legal[i];
        (void)snprintf(events, sizeof(events), "close(%u )", legal[i]);
        EXPECT(frame, events);
    }
    for (size_t i = 0; i < ARRAY_SIZE(illegal); i++) {
        frame[2] = (char)(illegal[i] >> 8);
        frame[3] = (char)illegal[i];
        EXPECT(frame, "failed(1002)");
    }
}
END_TEST

START_TEST(limit_is_judged_by_the_length_alone)
{
    EXPECT("\x82\x7E\x03\xE9", "failed(1009)");
    EXPECT("\x82\x7F\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", "failed(1009)");
    EXPECT("\x02\x01"
           "a\x80\x7E\x03\xE8",
           "failed(1009)");
}
END_TEST

START_TEST(limit_is_a_whole_message)
{
    struct buf bytes = { 0 };
    struct websocket ws;
    struct websocket_event event;
    char payload[LIMIT];
    const uint8_t *data;

    memset(payload, 'x', sizeof(payload));
    ck_assert_int_eq(websocket_frame_append(&bytes, WEBSOCKET_SERVER, WEBSOCKET_TEXT, payload,
                                            sizeof(payload)),
                     0);
    websocket_init(&ws, WEBSOCKET_CLIENT, LIMIT);
    data = bytes.data;
    ck_assert_int_eq(websocket_next(&ws, &data, &bytes.size, &event), 0);
    ck_assert_int_eq(event.kind, WEBSOCKET_EVENT_MESSAGE);
    ck_assert_uint_eq(event.size, LIMIT);
    websocket_done(&ws);
    buf_done(&bytes);
}
END_TEST

START_TEST(a_server_expects_masks)
{
    struct buf bytes = { 0 };

    ck_assert_int_eq(buf_append(&bytes, "\x81\x85\x37\xFA\x21\x3D\x7F\x9F\x4D\x51\x58", 11), 0);
    expect_as(WEBSOCKET_SERVER, &bytes, "text(Hello)");
    bytes.data[1] = 0x05;
    expect_as(WEBSOCKET_SERVER, &bytes, "failed(1002)");
    buf_done(&bytes);
}
END_TEST

START_TEST(discarding_keeps_nothing)
{
    struct websocket ws;
    struct buf events = { 0 }, bytes = { 0 };
    char payload[500];

    memset(payload, 'x', sizeof(payload));
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(websocket_frame_append(&bytes, WEBSOCKET_SERVER, WEBSOCKET_TEXT,
                                                payload, sizeof(payload)),
                         0);
    ck_assert_int_eq(buf_append(&bytes, "\x89\x01?\x81\x01\xFF", 6), 0);
    websocket_init(&ws, WEBSOCKET_CLIENT, SIZE_MAX);
    ws.discards = true;
    decode(&ws, &bytes, 64, &events);
    ck_assert_str_eq(buf_text(&events), "text()text()text()text()text()text()text()text()text()"
                                        "text()ping(?)failed(1007)");
    ck_assert_uint_le(ws.message.capacity, 256);
    websocket_done(&ws);
    buf_done(&bytes);
    buf_done(&events);
}
END_TEST

START_TEST(a_big_message_does_not_keep_its_memory)
{
    struct websocket ws;
    struct websocket_event event;
    struct buf bytes = { 0 };
    size_t size = 1024 * 1024;
    uint8_t *payload = calloc(1, size);
    const uint8_t *data;

    ck_assert_int_eq(
        websocket_frame_append(&bytes, WEBSOCKET_SERVER, WEBSOCKET_BINARY, payload, size), 0);
    websocket_init(&ws, WEBSOCKET_CLIENT, size);
    data = bytes.data;
    size = bytes.size;
    ck_assert_int_eq(websocket_next(&ws, &data, &size, &event), 0);
    ck_assert_int_eq(event.kind, WEBSOCKET_EVENT_MESSAGE);
    ck_assert_int_eq(websocket_next(&ws, &data, &size, &event), 0);
    ck_assert_uint_eq(ws.message.capacity, 0);
    websocket_done(&ws);
    buf_done(&bytes);
    free(payload);
}
END_TEST

/* Encodes SIZE bytes in ROLE and decodes them in the other. */
static void round_trip(enum websocket_role role, size_t size)
{
    enum websocket_role other = role == WEBSOCKET_CLIENT ? WEBSOCKET_SERVER : WEBSOCKET_CLIENT;
    uint8_t *payload = calloc(1, size + 1);
    struct buf bytes = { 0 };
    struct websocket ws;
    struct websocket_event event;
    const uint8_t *data;
    size_t left;

    for (size_t i = 0; i < size; i++)
        payload[i] = (uint8_t)(i * 7);
    ck_assert_int_eq(websocket_frame_append(&bytes, role, WEBSOCKET_BINARY, payload, size), 0);
    websocket_init(&ws, other, SIZE_MAX);
    data = bytes.data;
    left = bytes.size;
    ck_assert_int_eq(websocket_next(&ws, &data, &left, &event), 0);
    ck_assert_int_eq(event.kind, WEBSOCKET_EVENT_MESSAGE);
    ck_assert_uint_eq(event.size, size);
    ck_assert_uint_eq(left, 0);
    if (size > 0)
        ck_assert_mem_eq(event.data, payload, size);
    websocket_done(&ws);
    buf_done(&bytes);
    free(payload);
}

static const size_t frames_go_there_and_back_sizes[] = { 0,   1,     125,   126,
                                                         127, 65535, 65536, 100000 };

START_TEST(frames_go_there_and_back)
{
    round_trip(WEBSOCKET_CLIENT, frames_go_there_and_back_sizes[_i]);
    round_trip(WEBSOCKET_SERVER, frames_go_there_and_back_sizes[_i]);
}
END_TEST

START_TEST(each_frame_has_its_own_mask)
{
    struct buf bytes = { 0 };

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(
            websocket_frame_append(&bytes, WEBSOCKET_CLIENT, WEBSOCKET_PING, "", 0), 0);
    ck_assert_uint_eq(bytes.size, 18);
    ck_assert(memcmp(bytes.data + 2, bytes.data + 8, 4) != 0 ||
              memcmp(bytes.data + 2, bytes.data + 14, 4) != 0);
    buf_done(&bytes);
}
END_TEST

START_TEST(a_frame_that_does_not_fit_leaves_nothing)
{
    struct buf bytes = { .limit = 10 };

    ck_assert_int_eq(
        websocket_frame_append(&bytes, WEBSOCKET_SERVER, WEBSOCKET_TEXT, "123456789", 9),
        -ENOBUFS);
    ck_assert_uint_eq(bytes.size, 0);
    buf_done(&bytes);
}
END_TEST

START_TEST(close_payloads)
{
    uint8_t payload[WEBSOCKET_CONTROL_MAX_BYTES];
    char reason[200];

    ck_assert_uint_eq(websocket_close_payload(WEBSOCKET_CLOSE_NONE, "", payload), 0);
    ck_assert_uint_eq(websocket_close_payload(1001, "bye", payload), 5);
    ck_assert_mem_eq(payload,
                     "\x03\xE9"
                     "bye",
                     5);
    memset(reason, 'x', sizeof(reason));
    memcpy(reason + 122, "\xC3\xA9", 3);
    ck_assert_uint_eq(websocket_close_payload(1001, reason, payload), 124);
}
END_TEST

START_TEST(keys)
{
    char accept[WEBSOCKET_ACCEPT_SIZE + 1], key[WEBSOCKET_KEY_SIZE + 1];

    /* RFC 6455, section 1.3 */
    ck_assert_int_eq(websocket_key_accept(span_of_text("dGhlIHNhbXBsZSBub25jZQ=="), accept), 0);
    ck_assert_str_eq(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    ck_assert_int_eq(websocket_key_new(key), 0);
    ck_assert(websocket_key_valid(span_of_text(key)));
    ck_assert(websocket_key_valid(span_of_text("dGhlIHNhbXBsZSBub25jZQ==")));
    ck_assert(!websocket_key_valid(span_of_text("")));
    ck_assert(!websocket_key_valid((struct span){ 0 }));
    ck_assert(!websocket_key_valid(span_of_text("dGhlIHNhbXBsZSBub25jZQ=")));
    ck_assert(!websocket_key_valid(span_of_text("dGhlIHNhbXBsZSBub25j")));
    ck_assert(!websocket_key_valid(span_of_text("dGhlIHNhbXBsZSBub25jZWE=")));
    ck_assert(!websocket_key_valid(span_of_text("dGhlIHNhbXBsZSBub25jZ!==")));
    ck_assert(!websocket_key_valid(span_of_text("dGhlIHNhbXBsZSBub25jZR==")));
}
END_TEST

UNIT_MAIN_ROWS("websocket", UNIT_TEST(messages), UNIT_TEST(fragments), UNIT_TEST(controls),
               UNIT_TEST(breaches), UNIT_TEST(text_that_is_none), UNIT_TEST(close_codes),
               UNIT_TEST(limit_is_judged_by_the_length_alone),
               UNIT_TEST(limit_is_a_whole_message), UNIT_TEST(a_server_expects_masks),
               UNIT_TEST(discarding_keeps_nothing),
               UNIT_TEST(a_big_message_does_not_keep_its_memory),
               UNIT_ROWS(frames_go_there_and_back, frames_go_there_and_back_sizes),
               UNIT_TEST(each_frame_has_its_own_mask),
               UNIT_TEST(a_frame_that_does_not_fit_leaves_nothing), UNIT_TEST(close_payloads),
               UNIT_TEST(keys))
