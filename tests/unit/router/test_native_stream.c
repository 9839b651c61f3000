/* test_native_stream.c - channels between native peers: windows, ends, and readers that never
 * read. */
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "unit.h"

struct scene {
    struct fixture fixture;
    struct peer writer;
    struct peer reader;
    struct channel_refs refs;
};

static void scene_open(struct scene *scene)
{
    fixture_open(&scene->fixture, "  adapter: mock\n", NULL);
    peer_as_adapter(&scene->writer, &scene->fixture, "mock");
    peer_as_caller(&scene->reader, &scene->fixture);
    ck_assert_int_eq(channel_create(scene->fixture.router.channels, 0, &scene->refs), 0);
}

static void scene_close(struct scene *scene)
{
    peer_close(&scene->reader);
    peer_close(&scene->writer);
    fixture_close(&scene->fixture);
}

static void open_stream(struct peer *peer, const struct channel_refs *refs, uint64_t id,
                        bool write)
{
    peer_send(peer, &(struct envelope){ .kind = ENVELOPE_OPEN,
                                        .id = id,
                                        .channel_id = span_of_text(refs->channel_id),
                                        .access_key = span_of_text(refs->access_key),
                                        .write = write });
}

static void send_data(struct peer *peer, uint64_t id, const void *data, size_t size)
{
    peer_send(peer, &(struct envelope){ .kind = ENVELOPE_DATA,
                                        .id = id,
                                        .body = { .data = data, .size = size } });
}

static void send_close(struct peer *peer, uint64_t id, const char *code, const char *message)
{
    peer_send(peer, &(struct envelope){ .kind = ENVELOPE_CLOSE,
                                        .id = id,
                                        .code = span_of_text(code),
                                        .message = span_of_text(message) });
}

static uint64_t take_credit(struct peer *peer, uint64_t id)
{
    struct received *received = peer_take(peer, ENVELOPE_CREDIT);
    uint64_t credit = received->envelope.credit;

    ck_assert_uint_eq(received->envelope.id, id);
    free(received);
    return credit;
}

static void expect_close(struct peer *peer, uint64_t id, const char *code)
{
    struct received *received = peer_take(peer, ENVELOPE_CLOSE);

    ck_assert_uint_eq(received->envelope.id, id);
    if (code)
        ck_assert(span_equals(received->envelope.code, code));
    else
        ck_assert_ptr_null(received->envelope.code.data);
    free(received);
}

START_TEST(test_round)
{
    struct scene scene;
    struct received *data;

    scene_open(&scene);
    open_stream(&scene.writer, &scene.refs, 7, true);
    open_stream(&scene.reader, &scene.refs, 9, false);
    ck_assert_uint_eq(take_credit(&scene.writer, 7), ENVELOPE_WINDOW_BYTES);
    send_data(&scene.writer, 7, "hello", 5);
    data = peer_take(&scene.reader, ENVELOPE_DATA);
    ck_assert_uint_eq(data->envelope.id, 9);
    ck_assert(span_equals(data->envelope.body, "hello"));
    free(data);
    send_data(&scene.writer, 7, "!", 1);
    send_close(&scene.writer, 7, NULL, NULL);
    peer_expect(&scene.reader, ENVELOPE_DATA);
    expect_close(&scene.reader, 9, NULL);
    ck_assert_uint_eq(channel_set_count(scene.fixture.router.channels), 0);

    /* What was under way when the stream closed disturbs nobody. */
    peer_send(&scene.reader,
              &(struct envelope){ .kind = ENVELOPE_CREDIT, .id = 9, .credit = 6 });
    send_close(&scene.reader, 9, NULL, NULL);
    peer_call(&scene.reader, 1, "sandbox::adapter::info", "{}");
    peer_answer(&scene.writer, ENVELOPE_REPLY, peer_expect_call(&scene.writer, "adapter::info"),
                "{}");
    peer_expect(&scene.reader, ENVELOPE_REPLY);
    scene_close(&scene);
}
END_TEST

START_TEST(test_refused_opens)
{
    struct scene scene;
    struct channel_refs wrong;

    scene_open(&scene);
    wrong = scene.refs;
    wrong.access_key[3] ^= 1;
    open_stream(&scene.reader, &wrong, 1, false);
    expect_close(&scene.reader, 1, "S218");
    open_stream(&scene.reader, &scene.refs, 2, false);
    open_stream(&scene.reader, &scene.refs, 3, false); /* taken */
    expect_close(&scene.reader, 3, "S218");
    open_stream(&scene.reader, &scene.refs, 2, true); /* an id in use: a breach */
    TURN_UNTIL(scene.fixture.loop, scene.reader.closed);
    ck_assert_uint_eq(channel_set_count(scene.fixture.router.channels), 0);
    scene_close(&scene);
}
END_TEST

/* What was on its way when the channel broke may come before the end. */
static void skip_credits(struct peer *peer)
{
    for (;;) {
        struct received *received;

        TURN_UNTIL(peer->fixture->loop, !list_empty(&peer->received) || peer->closed);
        if (list_empty(&peer->received))
            return;
        received = LIST_ENTRY(peer->received.next, struct received, node);
        if (received->envelope.kind != ENVELOPE_CREDIT)
            return;
        free(peer_take(peer, ENVELOPE_CREDIT));
    }
}

START_TEST(test_breaches)
{
    static uint8_t block[ENVELOPE_DATA_MAX_BYTES];
    struct scene scene;

    scene_open(&scene);
    open_stream(&scene.writer, &scene.refs, 1, true);
    send_data(&scene.writer, 1, "x", 1); /* before any credit */
    TURN_UNTIL(scene.fixture.loop, scene.writer.closed);
    scene_close(&scene);

    scene_open(&scene);
    open_stream(&scene.reader, &scene.refs, 2, false);
    open_stream(&scene.writer, &scene.refs, 1, true);
    ck_assert_uint_eq(take_credit(&scene.writer, 1), ENVELOPE_WINDOW_BYTES);
    for (unsigned i = 0; i < 4; i++)
        send_data(&scene.writer, 1, block, sizeof(block));
    send_data(&scene.reader, 2, "x", 1); /* a reader that writes */
    TURN_UNTIL(scene.fixture.loop, scene.reader.closed);
    skip_credits(&scene.writer);
    expect_close(&scene.writer, 1, "S218");
    scene_close(&scene);

    scene_open(&scene);
    open_stream(&scene.writer, &scene.refs, 1, true);
    peer_send(&scene.writer,
              &(struct envelope){ .kind = ENVELOPE_CREDIT, .id = 1, .credit = 1 });
    TURN_UNTIL(scene.fixture.loop, scene.writer.closed); /* a writer that grants */
    scene_close(&scene);
}
END_TEST

/* Sends on stream 1 whatever is granted, until nothing more is for a while. How much that was.
 */
static uint64_t send_all_that_is_granted(struct scene *scene)
{
    static uint8_t block[ENVELOPE_DATA_MAX_BYTES];
    uint64_t window = take_credit(&scene->writer, 1);
    uint64_t sent = 0;

    while (sent < window) {
        while (sent < window) {
            uint64_t left = window - sent;
            size_t size = left < sizeof(block) ? left : sizeof(block);

            send_data(&scene->writer, 1, block, size);
            sent += size;
        }
        turn_for(scene->fixture.loop, 50);
        while (!list_empty(&scene->writer.received))
            window += take_credit(&scene->writer, 1);
    }
    return sent;
}

/* A reader that takes nothing: the writer gets what fits and no more, other streams go on. */
START_TEST(test_reader_that_never_reads)
{
    struct scene scene;
    struct peer lively;
    struct channel_refs other;

    scene_open(&scene);
    peer_as_caller(&lively, &scene.fixture);
    ck_assert_int_eq(channel_create(scene.fixture.router.channels, 0, &other), 0);
    open_stream(&scene.reader, &scene.refs, 1, false); /* and grants nothing more */
    open_stream(&scene.writer, &scene.refs, 1, true);
    ck_assert_uint_eq(send_all_that_is_granted(&scene),
                      ENVELOPE_WINDOW_BYTES + CHANNEL_HELD_BYTES);
    ck_assert_uint_eq(channel_set_held_bytes(scene.fixture.router.channels),
                      CHANNEL_HELD_BYTES);

    open_stream(&lively, &other, 5, false);
    open_stream(&scene.writer, &other, 2, true);
    TURN_UNTIL(scene.fixture.loop, !list_empty(&scene.writer.received));
    (void)take_credit(&scene.writer, 2);
    send_data(&scene.writer, 2, "lively", 6);
    send_close(&scene.writer, 2, NULL, NULL);
    peer_expect(&lively, ENVELOPE_DATA);
    expect_close(&lively, 5, NULL);
    peer_close(&lively);
    scene_close(&scene);
}
END_TEST

/* A reader that grants without end and reads nothing of its socket: the router holds little. */
START_TEST(test_endless_credit)
{
    struct scene scene;
    uint64_t sent;
    size_t taken = 0;

    scene_open(&scene);
    open_stream(&scene.reader, &scene.refs, 1, false);
    peer_send(&scene.reader,
              &(struct envelope){ .kind = ENVELOPE_CREDIT, .id = 1, .credit = UINT64_MAX });
    open_stream(&scene.writer, &scene.refs, 1, true);
    turn_for(scene.fixture.loop, 50);
    sp_pause(scene.reader.sp);
    sent = send_all_that_is_granted(&scene);
    /* Its socket, two chunks on their way, the queue and the channel. */
    ck_assert_uint_le(sent,
                      STREAM_HIGH_WATER_BYTES + 4 * ENVELOPE_WINDOW_BYTES + CHANNEL_HELD_BYTES);
    send_close(&scene.writer, 1, NULL, NULL);
    sp_resume(scene.reader.sp); /* it reads after all: all comes */
    while (taken < sent) {
        struct received *data = peer_take(&scene.reader, ENVELOPE_DATA);

        taken += data->envelope.body.size;
        free(data);
    }
    expect_close(&scene.reader, 1, NULL);
    scene_close(&scene);
}
END_TEST

START_TEST(test_lost_ends)
{
    struct scene scene;

    scene_open(&scene);
    open_stream(&scene.reader, &scene.refs, 2, false);
    open_stream(&scene.writer, &scene.refs, 1, true);
    (void)take_credit(&scene.writer, 1);
    send_data(&scene.writer, 1, "half", 4);
    peer_expect(&scene.reader, ENVELOPE_DATA);
    peer_close(&scene.writer); /* without a close: an abort */
    expect_close(&scene.reader, 2, "S218");
    scene_close(&scene);

    scene_open(&scene);
    open_stream(&scene.reader, &scene.refs, 2, false);
    open_stream(&scene.writer, &scene.refs, 1, true);
    (void)take_credit(&scene.writer, 1);
    peer_close(&scene.reader);
    expect_close(&scene.writer, 1, "S218");
    scene_close(&scene);

    scene_open(&scene); /* both ends of one connection */
    open_stream(&scene.reader, &scene.refs, 1, false);
    open_stream(&scene.reader, &scene.refs, 2, true);
    (void)take_credit(&scene.reader, 2);
    peer_close(&scene.reader);
    TURN_UNTIL(scene.fixture.loop, channel_set_count(scene.fixture.router.channels) == 0);
    scene_close(&scene);
}
END_TEST

START_TEST(test_reasons_pass)
{
    struct scene scene;
    struct received *close;

    scene_open(&scene);
    open_stream(&scene.reader, &scene.refs, 2, false);
    open_stream(&scene.writer, &scene.refs, 1, true);
    (void)take_credit(&scene.writer, 1);
    send_close(&scene.writer, 1, "S218", "fs::read /x: sandbox stopped");
    close = peer_take(&scene.reader, ENVELOPE_CLOSE);
    ck_assert(span_equals(close->envelope.code, "S218"));
    ck_assert(span_equals(close->envelope.message, "fs::read /x: sandbox stopped"));
    free(close);
    scene_close(&scene);
}
END_TEST

UNIT_MAIN("router.native_stream", test_round, test_refused_opens, test_breaches,
          test_reader_that_never_reads, test_endless_credit, test_lost_ends, test_reasons_pass)
