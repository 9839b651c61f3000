/* test_stream.c - what a stream carries: order, parts, back-pressure, ends. */
#include "stream.h"

#include <errno.h>

#include "link.h"
#include "unit.h"

#define BULK_BYTES (32u * 1024 * 1024)
#define PART_BYTES (6u * 1024 * 1024) /* enough to fill every buffer on the way */

static const char *const schemes[] = { "ipc", "tcp" };

static uint8_t *bulk_new(void)
{
    uint8_t *bulk = malloc(BULK_BYTES);
    uint32_t random = 1;

    ck_assert_ptr_nonnull(bulk);
    for (size_t i = 0; i < BULK_BYTES; i += 4) {
        random = random * 1664525u + 1013904223u;
        memcpy(bulk + i, &random, 4);
    }
    return bulk;
}

START_TEST(test_both_ways)
{
    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
        struct link link;

        link_open(&link, schemes[i]);
        ck_assert_int_eq(stream_send(link.client.stream, "to server", 9), 0);
        ck_assert_int_eq(stream_send(link.server.stream, "to client!", 10), 0);
        TURN_UNTIL(link.loop, link.server.got.size == 9 && link.client.got.size == 10);
        ck_assert_str_eq(buf_text(&link.server.got), "to server");
        ck_assert_str_eq(buf_text(&link.client.got), "to client!");
        link_close(&link);
    }
}
END_TEST

/* One send of 32 MiB: the kernel takes it in many parts. */
START_TEST(test_partial_sends)
{
    _cleanup_free_ uint8_t *bulk = bulk_new();

    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
        struct link link;

        link_open(&link, schemes[i]);
        ck_assert_int_eq(stream_send(link.client.stream, bulk, BULK_BYTES), 0);
        ck_assert_uint_gt(stream_queued_bytes(link.client.stream), BULK_BYTES / 2);
        ck_assert_int_eq(stream_send(link.client.stream, "end", 3), 0);
        TURN_UNTIL(link.loop, link.server.got.size == BULK_BYTES + 3);
        ck_assert(memcmp(link.server.got.data, bulk, BULK_BYTES) == 0);
        ck_assert_mem_eq(link.server.got.data + BULK_BYTES, "end", 3);
        TURN_UNTIL(link.loop, link.client.drained == 1);
        ck_assert_uint_eq(stream_queued_bytes(link.client.stream), 0);
        link_close(&link);
    }
}
END_TEST

/* What is big goes out in its call, from where it lies, behind all that was queued before it.
 */
START_TEST(test_big_sends_do_not_wait)
{
    _cleanup_free_ uint8_t *bulk = bulk_new();
    const struct iovec parts[] = {
        { .iov_base = bulk, .iov_len = 9 },
        { .iov_base = NULL, .iov_len = 0 },
        { .iov_base = bulk + 9, .iov_len = 40000 },
        { .iov_base = bulk + 40009, .iov_len = PART_BYTES - 40009 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
        struct link link;

        link_open(&link, schemes[i]);
        ck_assert_int_eq(stream_send(link.client.stream, "small", 5), 0);
        ck_assert_uint_eq(stream_queued_bytes(link.client.stream), 5);
        ck_assert_int_eq(stream_sendv(link.client.stream, parts, 3), 0);
        ck_assert_uint_eq(stream_queued_bytes(link.client.stream), 0);
        ck_assert_int_eq(stream_sendv(link.client.stream, parts, 4), 0); /* the socket fills */
        ck_assert_uint_gt(stream_queued_bytes(link.client.stream), 0);
        ck_assert_uint_lt(stream_queued_bytes(link.client.stream), PART_BYTES);
        ck_assert_int_eq(stream_send(link.client.stream, "end", 3), 0);
        TURN_UNTIL(link.loop, link.server.got.size == 5 + 40009 + PART_BYTES + 3);
        ck_assert_mem_eq(link.server.got.data, "small", 5);
        ck_assert(memcmp(link.server.got.data + 5, bulk, 40009) == 0);
        ck_assert(memcmp(link.server.got.data + 40014, bulk, PART_BYTES) == 0);
        ck_assert_mem_eq(link.server.got.data + 40014 + PART_BYTES, "end", 3);
        link_close(&link);
    }
}
END_TEST

/* All that lies in the socket comes in one turn, and in few pieces. */
START_TEST(test_reads_what_is_there)
{
    _cleanup_free_ uint8_t *bulk = bulk_new();
    struct link link;
    int fd;

    link_listen(&link, "ipc");
    fd = link_connect_raw(&link);
    TURN_UNTIL(link.loop, link.server.stream);
    ck_assert_int_eq(send(fd, bulk, 100000, MSG_NOSIGNAL), 100000);
    TURN_UNTIL(link.loop, link.server.got.size > 0);
    ck_assert_uint_eq(link.server.got.size, 100000);
    ck_assert_uint_eq(link.server.chunks, 1);
    ck_assert(memcmp(link.server.got.data, bulk, 100000) == 0);
    closep(&fd);
    link_close(&link);
}
END_TEST

START_TEST(test_small_sends_of_a_turn_go_together)
{
    struct link link;

    link_open(&link, "ipc");
    for (uint16_t i = 0; i < 10000; i++)
        ck_assert_int_eq(stream_send(link.client.stream, &i, sizeof(i)), 0);
    TURN_UNTIL(link.loop, link.server.got.size == 20000);
    for (uint16_t i = 0; i < 10000; i++)
        ck_assert_mem_eq(link.server.got.data + 2 * i, &i, sizeof(i));
    ck_assert_uint_le(link.server.chunks, 4);
    ck_assert_uint_eq(link.client.drained, 0); /* never was above the high-water mark */
    link_close(&link);
}
END_TEST

START_TEST(test_pause_and_resume)
{
    _cleanup_free_ uint8_t *bulk = bulk_new();
    struct link link;
    size_t chunks;

    link_open(&link, "ipc");
    stream_pause(link.server.stream);
    ck_assert_int_eq(stream_send(link.client.stream, bulk, PART_BYTES), 0);
    turn_for(link.loop, 100);
    ck_assert_uint_eq(link.server.got.size, 0);
    ck_assert_uint_gt(stream_queued_bytes(link.client.stream), PART_BYTES / 2);
    stream_resume(link.server.stream);
    ck_assert_uint_eq(link.server.got.size, 0); /* not from inside the call */
    TURN_UNTIL(link.loop, link.server.got.size > PART_BYTES / 2);

    stream_pause(link.server.stream); /* at most what is read already, and that later */
    chunks = link.server.chunks;
    turn_for(link.loop, 50);
    ck_assert_uint_eq(link.server.chunks, chunks);
    stream_resume(link.server.stream);
    stream_pause(link.server.stream);
    stream_resume(link.server.stream);
    TURN_UNTIL(link.loop, link.server.got.size == PART_BYTES);
    ck_assert(memcmp(link.server.got.data, bulk, PART_BYTES) == 0);
    link_close(&link);
}
END_TEST

START_TEST(test_pause_inside_data)
{
    struct link link;

    link_open(&link, "ipc");
    link.server.pause_on_data = true;
    for (int i = 1; i <= 20; i++) {
        ck_assert_int_eq(stream_send(link.client.stream, "x", 1), 0);
        TURN_UNTIL(link.loop, link.server.got.size == (size_t)i);
        stream_resume(link.server.stream);
    }
    ck_assert_uint_eq(link.server.chunks, 20);
    link_close(&link);
}
END_TEST

START_TEST(test_finish_sends_all)
{
    _cleanup_free_ uint8_t *bulk = bulk_new();

    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
        struct link link;

        link_open(&link, schemes[i]);
        ck_assert_int_eq(stream_send(link.client.stream, bulk, PART_BYTES), 0);
        stream_finish(link.client.stream, 10000);
        ck_assert_int_eq(stream_send(link.client.stream, "x", 1), -EPIPE);
        ck_assert_uint_eq(link.client.closed, 0);
        TURN_UNTIL(link.loop, link.client.closed && link.server.closed);
        ck_assert_int_eq(link.client.error, 0);
        ck_assert_int_eq(link.server.error, 0);
        ck_assert_uint_eq(link.server.got.size, PART_BYTES);
        ck_assert(memcmp(link.server.got.data, bulk, PART_BYTES) == 0);
        link_close(&link);
    }
}
END_TEST

START_TEST(test_finish_of_an_empty_queue)
{
    struct link link;

    link_open(&link, "ipc");
    link.server.finish_on_data = true;
    ck_assert_int_eq(stream_send(link.client.stream, "x", 1), 0);
    TURN_UNTIL(link.loop, link.client.closed && link.server.closed);
    ck_assert_int_eq(link.server.error, 0);
    ck_assert_uint_eq(link.server.closed, 1);
    link_close(&link);
}
END_TEST

START_TEST(test_finish_gives_up)
{
    _cleanup_free_ uint8_t *bulk = bulk_new();
    struct link link;

    link_open(&link, "ipc");
    stream_pause(link.server.stream);
    ck_assert_int_eq(stream_send(link.client.stream, bulk, PART_BYTES), 0);
    stream_finish(link.client.stream, 50);
    TURN_UNTIL(link.loop, link.client.closed);
    ck_assert_int_eq(link.client.error, -ETIMEDOUT);
    link_close(&link);
}
END_TEST

START_TEST(test_queue_limit)
{
    _cleanup_free_ uint8_t *bulk = bulk_new();
    struct link link;

    link_open(&link, "ipc");
    stream_pause(link.server.stream);
    ck_assert_int_eq(stream_send(link.client.stream, bulk, BULK_BYTES), 0);
    ck_assert_int_eq(stream_send(link.client.stream, bulk, BULK_BYTES), 0);
    ck_assert_int_eq(stream_send(link.client.stream, bulk, BULK_BYTES), -ENOBUFS);
    stream_resume(link.server.stream);
    link.server.count_only = true;
    TURN_UNTIL(link.loop, link.client.drained == 1);
    TURN_UNTIL(link.loop, link.server.discard == 2 * (size_t)BULK_BYTES);
    ck_assert_int_eq(stream_send(link.client.stream, bulk, BULK_BYTES), 0);
    link_close(&link);
}
END_TEST

START_TEST(test_peer_leaves)
{
    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
        struct link link;

        link_open(&link, schemes[i]);
        stream_free(take_ptr(link.client.stream));
        TURN_UNTIL(link.loop, link.server.closed);
        ck_assert_int_eq(link.server.error, 0);
        turn_for(link.loop, 20);
        ck_assert_uint_eq(link.server.closed, 1);
        link_close(&link);
    }
}
END_TEST

/* A peer that leaves while we write to it has still said its last words. */
START_TEST(test_last_words)
{
    _cleanup_free_ uint8_t *bulk = bulk_new();
    struct link link;
    int fd;

    link_listen(&link, "ipc");
    fd = link_connect_raw(&link);
    TURN_UNTIL(link.loop, link.server.stream);
    ck_assert_int_eq(stream_send(link.server.stream, bulk, PART_BYTES), 0);
    turn_for(link.loop, 20); /* the socket is full, unread by the peer */
    ck_assert_int_eq(send(fd, "bye", 3, MSG_NOSIGNAL), 3);
    closep(&fd);
    TURN_UNTIL(link.loop, link.server.closed);
    ck_assert_str_eq(buf_text(&link.server.got), "bye");
    link_close(&link);
}
END_TEST

START_TEST(test_half_closed_reader)
{
    struct link link;
    int fd;

    link_listen(&link, "ipc");
    fd = link_connect_raw(&link);
    TURN_UNTIL(link.loop, link.server.stream);
    ck_assert_int_eq(shutdown(fd, SHUT_RD), 0); /* our writes fail, our reads never end */
    ck_assert_int_eq(stream_send(link.server.stream, "x", 1), 0);
    TURN_UNTIL(link.loop, link.server.closed);
    ck_assert_int_eq(link.server.error, -EPIPE);
    closep(&fd);
    link_close(&link);
}
END_TEST

/* A peer that has said all may still read our answer to its end. */
START_TEST(test_finish_to_half_closed_writer)
{
    _cleanup_free_ uint8_t *bulk = bulk_new();
    _cleanup_free_ uint8_t *got = malloc(PART_BYTES);
    struct link link;
    size_t size = 0;
    int fd;

    link_listen(&link, "ipc");
    fd = link_connect_raw(&link);
    TURN_UNTIL(link.loop, link.server.stream);
    ck_assert_int_eq(stream_send(link.server.stream, bulk, PART_BYTES), 0);
    stream_finish(link.server.stream, 10000);
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    while (!link.server.closed) {
        ssize_t part = recv(fd, got + size, PART_BYTES - size, MSG_DONTWAIT);

        size += part > 0 ? (size_t)part : 0;
        ck_assert_int_eq(loop_turn(link.loop, part > 0 ? 0 : 1), 0);
    }
    ck_assert_int_eq(link.server.error, 0);
    for (ssize_t part = 1; part > 0; size += (size_t)part)
        part = recv(fd, got + size, PART_BYTES - size, 0);
    ck_assert_uint_eq(size, PART_BYTES);
    ck_assert(memcmp(got, bulk, PART_BYTES) == 0);
    closep(&fd);
    link_close(&link);
}
END_TEST

START_TEST(test_peer_uid)
{
    struct link link;
    uid_t uid = 12345;

    link_open(&link, "ipc");
    ck_assert_int_eq(stream_peer_uid(link.server.stream, &uid), 0);
    ck_assert_uint_eq(uid, getuid());
    link_close(&link);
    link_open(&link, "tcp");
    ck_assert_int_eq(stream_peer_uid(link.server.stream, &uid), -ENOTSUP);
    link_close(&link);
}
END_TEST

START_TEST(test_free_from_own_callbacks)
{
    _cleanup_free_ uint8_t *bulk = bulk_new();
    struct link link;

    link_open(&link, "ipc");
    link.server.free_on_data = true;
    ck_assert_int_eq(stream_send(link.client.stream, bulk, PART_BYTES), 0);
    TURN_UNTIL(link.loop, link.client.closed); /* its own free is in link_closed() */
    ck_assert_ptr_null(link.server.stream);
    ck_assert_uint_eq(link.server.closed, 0);
    ck_assert_uint_eq(link.server.chunks, 1);
    link_close(&link);

    link_open(&link, "ipc");
    link.client.free_on_drained = true;
    ck_assert_int_eq(stream_send(link.client.stream, bulk, PART_BYTES), 0);
    TURN_UNTIL(link.loop, link.server.closed);
    ck_assert_uint_eq(link.client.drained, 1);
    ck_assert_uint_eq(link.client.closed, 0);
    link_close(&link);
}
END_TEST

/* Freed with a read and a write under way, and with bytes held back. */
START_TEST(test_free_at_any_time)
{
    _cleanup_free_ uint8_t *bulk = bulk_new();

    for (int turns = 0; turns < 30; turns++) {
        struct link link;

        link_open(&link, turns % 2 ? "tcp" : "ipc");
        ck_assert_int_eq(stream_send(link.client.stream, bulk, 1 << 20), 0);
        ck_assert_int_eq(stream_send(link.server.stream, bulk, 1 << 20), 0);
        if (turns % 3 == 0)
            stream_pause(link.server.stream);
        for (int i = 0; i < turns; i++)
            ck_assert_int_eq(loop_turn(link.loop, 0), 0);
        link_close(&link);
    }
}
END_TEST

UNIT_MAIN("stream", test_both_ways, test_partial_sends, test_big_sends_do_not_wait,
          test_reads_what_is_there, test_small_sends_of_a_turn_go_together,
          test_pause_and_resume, test_pause_inside_data, test_finish_sends_all,
          test_finish_of_an_empty_queue, test_finish_gives_up, test_queue_limit,
          test_peer_leaves, test_last_words, test_half_closed_reader,
          test_finish_to_half_closed_writer, test_peer_uid, test_free_from_own_callbacks,
          test_free_at_any_time)
