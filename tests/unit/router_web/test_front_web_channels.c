/* Data channels: both ends are WebSockets here, the channel between them is the real one. */
#include "web_fixture.h"

#include <stdio.h>

static struct channel_refs create(uint32_t buffer)
{
    struct channel_refs refs;

    ck_assert_int_eq(channel_create(fixture.router.channels, buffer, &refs), 0);
    return refs;
}

static void open_end(struct web_client *client, const struct channel_refs *refs,
                     const char *direction)
{
    char path[200];

    (void)snprintf(path, sizeof(path), "/ws/channels/%s?key=%s&dir=%s", refs->channel_id,
                   refs->access_key, direction);
    client_open(client, fixture.loop, fixture.port, path);
}

static void send_close(struct web_client *client, unsigned code)
{
    uint8_t payload[WEBSOCKET_CONTROL_MAX_BYTES];

    client_frame(client, WEBSOCKET_CLOSE, payload, websocket_close_payload(code, "", payload));
}

static void expect_binary(struct web_client *client, const char *bytes)
{
    struct websocket_event event = client_next(client);

    ck_assert_int_eq(event.kind, WEBSOCKET_EVENT_MESSAGE);
    ck_assert(!event.is_text);
    ck_assert_uint_eq(event.size, strlen(bytes));
    ck_assert_mem_eq(event.data, bytes, event.size);
}

START_TEST(a_round_trip)
{
    struct channel_refs refs = create(0);
    struct web_client writer, reader;

    open_end(&writer, &refs, "write");
    client_frame(&writer, WEBSOCKET_BINARY, "one", 3);
    open_end(&reader, &refs, "read");
    expect_binary(&reader, "one");
    client_text(&writer, "beside");
    client_frame(&writer, WEBSOCKET_BINARY, "two", 3);
    ck_assert_str_eq(client_expect_text(&reader), "beside");
    expect_binary(&reader, "two");
    send_close(&writer, _i == 0 ? WEBSOCKET_CLOSE_NORMAL : WEBSOCKET_CLOSE_NONE);
    client_expect_close(&reader, WEBSOCKET_CLOSE_NORMAL);
    ck_assert_uint_eq(channel_set_count(fixture.router.channels), 0);
    client_close(&writer);
    client_close(&reader);
}
END_TEST

START_TEST(what_was_written_before_a_clean_end_is_read_later)
{
    struct channel_refs refs = create(0);
    struct web_client writer, reader;

    open_end(&writer, &refs, "write");
    client_frame(&writer, WEBSOCKET_BINARY, "kept", 4);
    send_close(&writer, WEBSOCKET_CLOSE_NORMAL);
    (void)client_read_all(&writer);
    open_end(&reader, &refs, "read");
    expect_binary(&reader, "kept");
    client_expect_close(&reader, WEBSOCKET_CLOSE_NORMAL);
    client_close(&writer);
    client_close(&reader);
}
END_TEST

START_TEST(a_writer_that_is_lost_aborts)
{
    struct channel_refs refs = create(0);
    struct web_client writer, reader;

    open_end(&writer, &refs, "write");
    open_end(&reader, &refs, "read");
    client_frame(&writer, WEBSOCKET_BINARY, "part", 4);
    expect_binary(&reader, "part");
    if (_i == 0)
        closep(&writer.fd);
    else
        send_close(&writer, 4000);
    ck_assert_ptr_nonnull(strstr(client_expect_text(&reader), "{\"error\":\"S218: "));
    client_expect_close(&reader, WEBSOCKET_CLOSE_INTERNAL);
    client_close(&writer);
    client_close(&reader);
}
END_TEST

START_TEST(a_reader_that_leaves_aborts_the_writer)
{
    struct channel_refs refs = create(0);
    struct web_client writer, reader;

    open_end(&writer, &refs, "write");
    open_end(&reader, &refs, "read");
    send_close(&reader, WEBSOCKET_CLOSE_NORMAL);
    client_expect_close(&writer, WEBSOCKET_CLOSE_INTERNAL);
    client_close(&writer);
    client_close(&reader);
}
END_TEST

START_TEST(an_end_is_taken_once)
{
    struct channel_refs refs = create(0);
    struct web_client first, second;

    open_end(&first, &refs, "read");
    open_end(&second, &refs, "read");
    client_expect_close(&second, WEBSOCKET_CLOSE_POLICY);
    client_close(&first);
    client_close(&second);
}
END_TEST

START_TEST(a_wrong_key_finds_nothing)
{
    struct channel_refs refs = create(0);
    struct web_client client;

    client_connect(&client, fixture.loop, fixture.port);
    client_send(&client, "GET /ws/channels/");
    client_send(&client, refs.channel_id);
    client_send(&client, "?key=wrong&dir=read HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
                         "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    ck_assert_ptr_nonnull(strstr(client_read_all(&client), "\r\n\r\nChannel not found"));
    client_close(&client);
}
END_TEST

START_TEST(a_channel_without_a_reader_holds_little)
{
    struct channel_refs refs = create(_i == 0 ? 0 : 2);
    uint8_t *chunk = calloc(1, 65536);
    size_t limit = _i == 0 ? 256 * 1024 : 2 * 65536;
    struct web_client writer, reader;
    size_t got = 0;

    open_end(&writer, &refs, "write");
    for (int i = 0; i < 16; i++)
        client_frame(&writer, WEBSOCKET_BINARY, chunk, 65536);
    send_close(&writer, WEBSOCKET_CLOSE_NORMAL);
    client_idle(&writer);
    ck_assert_uint_ge(channel_set_held_bytes(fixture.router.channels), limit);
    ck_assert_uint_le(channel_set_held_bytes(fixture.router.channels), limit + 65536);
    open_end(&reader, &refs, "read");
    while (got < 16 * 65536) {
        struct websocket_event event = client_next(&reader);

        ck_assert_int_eq(event.kind, WEBSOCKET_EVENT_MESSAGE);
        got += event.size;
    }
    client_expect_close(&reader, WEBSOCKET_CLOSE_NORMAL);
    client_close(&writer);
    client_close(&reader);
    free(chunk);
}
END_TEST

/* The reader takes a message only when the writer cannot go on. */
START_TEST(a_slow_reader_slows_the_writer)
{
    enum { CHUNKS = 400 };
    struct channel_refs refs = create(0);
    uint8_t *chunk = calloc(1, 65536);
    struct web_client writer, reader;
    struct buf frame = { 0 };
    size_t got = 0, sent = 0, stalls = 0;

    open_end(&writer, &refs, "write");
    open_end(&reader, &refs, "read");
    ck_assert_int_eq(
        websocket_frame_append(&frame, WEBSOCKET_CLIENT, WEBSOCKET_BINARY, chunk, 65536), 0);
    while (got < (size_t)CHUNKS * 65536) {
        size_t at = sent % frame.size, now = 0;

        if (sent < CHUNKS * frame.size)
            now = client_send_some(&writer, frame.data + at, frame.size - at);
        sent += now;
        stalls += now == 0;
        if (now == 0)
            got += client_next(&reader).size;
        ck_assert_int_eq(loop_turn(fixture.loop, 0), 0);
        ck_assert_uint_lt(fixture.router.backlog.total_bytes, 4 * 1024 * 1024);
        ck_assert_uint_le(channel_set_held_bytes(fixture.router.channels), 512 * 1024);
    }
    ck_assert_uint_gt(stalls, 100);
    send_close(&writer, WEBSOCKET_CLOSE_NORMAL);
    client_expect_close(&reader, WEBSOCKET_CLOSE_NORMAL);
    client_close(&writer);
    client_close(&reader);
    buf_done(&frame);
    free(chunk);
}
END_TEST

START_TEST(a_message_has_a_longest)
{
    struct channel_refs refs = create(0);
    struct web_client writer;

    open_end(&writer, &refs, "write");
    client_send_bytes(&writer, "\x82\xFF\0\0\0\0\0\x10\0\x01\0\0\0\0", 14);
    client_expect_close(&writer, WEBSOCKET_CLOSE_TOO_BIG);
    client_close(&writer);
}
END_TEST

START_TEST(a_message_of_a_mebibyte_passes_whole)
{
    struct channel_refs refs = create(0);
    struct web_client writer, reader;
    size_t size = 1024 * 1024;
    uint8_t *message = calloc(1, size);

    open_end(&writer, &refs, "write");
    open_end(&reader, &refs, "read");
    client_frame(&writer, WEBSOCKET_BINARY, message, size);
    ck_assert_uint_eq(client_next(&reader).size, size);
    client_close(&writer);
    client_close(&reader);
    free(message);
}
END_TEST

TCase *tests_of_channels(void)
{
    TCase *tests = tcase_create("channels");

    tcase_add_checked_fixture(tests, fixture_open, fixture_close);
    tcase_add_loop_test(tests, a_round_trip, 0, 2);
    tcase_add_test(tests, what_was_written_before_a_clean_end_is_read_later);
    tcase_add_loop_test(tests, a_writer_that_is_lost_aborts, 0, 2);
    tcase_add_test(tests, a_reader_that_leaves_aborts_the_writer);
    tcase_add_test(tests, an_end_is_taken_once);
    tcase_add_test(tests, a_wrong_key_finds_nothing);
    tcase_add_loop_test(tests, a_channel_without_a_reader_holds_little, 0, 2);
    tcase_add_test(tests, a_slow_reader_slows_the_writer);
    tcase_add_test(tests, a_message_has_a_longest);
    tcase_add_test(tests, a_message_of_a_mebibyte_passes_whole);
    return tests;
}
