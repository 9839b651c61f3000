/* test_channel.c - the relay between a writer and a reader, without any wire. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "channel.h"
#include "turn.h"
#include "unit.h"

/* What one end heard. */
struct ear {
    struct channel_end *end;
    struct buf bytes;
    struct buf texts;
    unsigned messages;
    size_t largest;
    uint64_t granted;
    unsigned grants;
    bool closed;
    enum channel_close close;
    char code[16];
    char message[128];
    uint64_t grant_back; /* in `data`, for each */
    bool leave_in_data;
};

static void on_data(void *ctx, const uint8_t *data, size_t size)
{
    struct ear *ear = ctx;

    ck_assert_int_eq(buf_append(&ear->bytes, data, size), 0);
    ear->messages++;
    if (size > ear->largest)
        ear->largest = size;
    if (ear->leave_in_data)
        channel_leave(take_ptr(ear->end));
    else if (ear->grant_back > 0)
        channel_grant(ear->end, ear->grant_back);
}

static void on_text(void *ctx, const uint8_t *text, size_t size)
{
    struct ear *ear = ctx;

    ck_assert_int_eq(buf_append(&ear->texts, text, size), 0);
    ck_assert_int_eq(buf_append_byte(&ear->texts, '|'), 0);
    ck_assert_int_eq(buf_append_byte(&ear->bytes, '#'), 0); /* where in the data it came */
}

static void on_grant(void *ctx, uint64_t bytes)
{
    struct ear *ear = ctx;

    ear->granted += bytes;
    ear->grants++;
}

static void copy(char *to, size_t size, struct span from)
{
    (void)snprintf(to, size, "%.*s", (int)from.size, from.data ? from.data : "");
}

static void on_closed(void *ctx, const struct channel_reason *reason)
{
    struct ear *ear = ctx;

    ck_assert(!ear->closed);
    ear->closed = true;
    ear->close = reason->close;
    copy(ear->code, sizeof(ear->code), reason->code);
    copy(ear->message, sizeof(ear->message), reason->message);
    ear->end = NULL;
}

static const struct channel_events ear_events = {
    .data = on_data, .text = on_text, .grant = on_grant, .closed = on_closed
};

struct scene {
    struct loop *loop;
    struct channel_set *set;
    struct channel_refs refs;
    struct ear reader;
    struct ear writer;
};

static void scene_open(struct scene *scene, uint32_t buffer)
{
    *scene = (struct scene){ 0 };
    ck_assert_int_eq(loop_new(&scene->loop), 0);
    ck_assert_int_eq(channel_set_new(scene->loop, &scene->set), 0);
    ck_assert_int_eq(channel_create(scene->set, buffer, &scene->refs), 0);
}

static void scene_close(struct scene *scene)
{
    channel_set_free(scene->set);
    loop_free(scene->loop);
    buf_done(&scene->reader.bytes);
    buf_done(&scene->reader.texts);
    buf_done(&scene->writer.bytes);
}

/* As an adapter is told: bytes alone. */
static const struct channel_events textless_events = { .data = on_data,
                                                       .grant = on_grant,
                                                       .closed = on_closed };

static int attach(struct scene *scene, enum channel_direction direction, bool native)
{
    struct ear *ear = direction == CHANNEL_READ ? &scene->reader : &scene->writer;
    struct channel_attach attach = {
        .channel_id = span_of_text(scene->refs.channel_id),
        .access_key = span_of_text(scene->refs.access_key),
        .direction = direction,
        .windowed = native,
        .whole_messages = !native,
        .events = native ? &textless_events : &ear_events,
        .ctx = ear,
    };

    return channel_attach(scene->set, &attach, &ear->end);
}

static int write_text(struct scene *scene, const char *text)
{
    return channel_write(scene->writer.end, (const uint8_t *)text, strlen(text));
}

START_TEST(test_attach)
{
    struct scene scene;
    struct channel_refs right;

    scene_open(&scene, 0);
    ck_assert_uint_eq(strlen(scene.refs.channel_id), CHANNEL_TEXT_SIZE - 1);
    ck_assert_str_ne(scene.refs.channel_id, scene.refs.access_key);
    right = scene.refs;
    scene.refs.access_key[0] ^= 1;
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, true), -ENOENT);
    scene.refs = right;
    scene.refs.channel_id[35] ^= 1;
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, true), -ENOENT);
    scene.refs.channel_id[35] = '\0';
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, true), -ENOENT);
    scene.refs = right;
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, true), 0); /* wrong ones took nothing */
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, true), -EBUSY);
    ck_assert_int_eq(attach(&scene, CHANNEL_WRITE, true), 0);
    ck_assert_int_eq(attach(&scene, CHANNEL_WRITE, true), -EBUSY);
    channel_leave(scene.reader.end);
    ck_assert(scene.writer.closed);
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, true), -ENOENT); /* gone with it */
    ck_assert_uint_eq(channel_set_count(scene.set), 0);
    scene_close(&scene);
}
END_TEST

START_TEST(test_clean_end)
{
    struct scene scene;

    scene_open(&scene, 0);
    ck_assert_int_eq(attach(&scene, CHANNEL_WRITE, false), 0); /* before any reader */
    ck_assert_int_eq(write_text(&scene, "one "), 0);
    ck_assert_int_eq(channel_write_text(scene.writer.end, (const uint8_t *)"note", 4), 0);
    ck_assert_int_eq(write_text(&scene, "two"), 0);
    channel_finish(scene.writer.end);
    ck_assert(!scene.writer.closed); /* it detached itself */
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, false), 0);
    ck_assert_uint_eq(scene.reader.messages, 0); /* nothing without a grant */
    channel_grant(scene.reader.end, 1000);
    ck_assert_str_eq(buf_text(&scene.reader.bytes), "one #two");
    ck_assert_str_eq(buf_text(&scene.reader.texts), "note|");
    ck_assert(scene.reader.closed);
    ck_assert_int_eq(scene.reader.close, CHANNEL_CLOSE_CLEAN);
    ck_assert_uint_eq(channel_set_count(scene.set), 0);
    scene_close(&scene);
}
END_TEST

START_TEST(test_empty_stream)
{
    struct scene scene;

    scene_open(&scene, 0);
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, true), 0);
    channel_grant(scene.reader.end, 10);
    ck_assert_int_eq(attach(&scene, CHANNEL_WRITE, true), 0);
    channel_finish(scene.writer.end);
    ck_assert(scene.reader.closed);
    ck_assert_int_eq(scene.reader.close, CHANNEL_CLOSE_CLEAN);
    scene_close(&scene);
}
END_TEST

START_TEST(test_abort)
{
    struct scene scene;

    scene_open(&scene, 0); /* the writer aborts */
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, true), 0);
    ck_assert_int_eq(attach(&scene, CHANNEL_WRITE, false), 0);
    ck_assert_int_eq(write_text(&scene, "held"), 0);
    channel_abort(scene.writer.end, span_of_text("S216"), span_of_text("disk gone"));
    ck_assert(scene.reader.closed);
    ck_assert_int_eq(scene.reader.close, CHANNEL_CLOSE_ABORTED);
    ck_assert_str_eq(scene.reader.code, "S216");
    ck_assert_str_eq(scene.reader.message, "disk gone");
    ck_assert_uint_eq(channel_set_held_bytes(scene.set), 0);
    scene_close(&scene);

    scene_open(&scene, 0); /* the reader leaves */
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, true), 0);
    ck_assert_int_eq(attach(&scene, CHANNEL_WRITE, true), 0);
    channel_leave(scene.reader.end);
    ck_assert(scene.writer.closed);
    ck_assert_str_eq(scene.writer.code, "S218");
    scene_close(&scene);

    scene_open(&scene, 0); /* from inside a delivery */
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, true), 0);
    ck_assert_int_eq(attach(&scene, CHANNEL_WRITE, false), 0);
    scene.reader.leave_in_data = true;
    channel_grant(scene.reader.end, 1000);
    ck_assert_int_eq(write_text(&scene, "last words"), 0);
    ck_assert(scene.writer.closed);
    ck_assert_uint_eq(channel_set_count(scene.set), 0);
    scene_close(&scene);
}
END_TEST

START_TEST(test_credit_is_kept)
{
    static uint8_t block[ENVELOPE_DATA_MAX_BYTES];
    struct scene scene;
    uint64_t sent = 0;

    scene_open(&scene, 0);
    ck_assert_int_eq(attach(&scene, CHANNEL_WRITE, true), 0);
    turn_for(scene.loop, 5);
    ck_assert_uint_eq(scene.writer.granted, 0); /* nobody reads: no window */
    ck_assert_int_eq(channel_write(scene.writer.end, block, 1), -EMSGSIZE);
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, true), 0);
    TURN_UNTIL(scene.loop, scene.writer.granted > 0);
    ck_assert_uint_eq(scene.writer.granted, CHANNEL_HELD_BYTES);

    while (sent < CHANNEL_HELD_BYTES) { /* the reader takes nothing yet */
        ck_assert_int_eq(channel_write(scene.writer.end, block, sizeof(block)), 0);
        sent += sizeof(block);
    }
    ck_assert_int_eq(channel_write(scene.writer.end, block, 1), -EMSGSIZE);
    ck_assert_uint_eq(channel_set_held_bytes(scene.set), CHANNEL_HELD_BYTES);
    ck_assert_uint_eq(scene.writer.granted, CHANNEL_HELD_BYTES);

    channel_grant(scene.reader.end, 1000);
    ck_assert_uint_eq(scene.reader.bytes.size, 1000);
    channel_grant(scene.reader.end, 100000);
    ck_assert_uint_eq(scene.reader.bytes.size, 101000);
    ck_assert_uint_le(scene.reader.largest, ENVELOPE_DATA_MAX_BYTES);
    ck_assert_uint_gt(scene.writer.granted, CHANNEL_HELD_BYTES);
    ck_assert_uint_le(scene.writer.granted, CHANNEL_HELD_BYTES + 101000);
    scene_close(&scene);
}
END_TEST

/* A reader that gives back what it takes: everything passes, in order, with little held. */
START_TEST(test_long_stream)
{
    enum { TOTAL = 20 * 1024 * 1024 };
    struct scene scene;
    uint64_t sent = 0;
    uint8_t block[1000];

    scene_open(&scene, 0);
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, true), 0);
    ck_assert_int_eq(attach(&scene, CHANNEL_WRITE, true), 0);
    TURN_UNTIL(scene.loop, scene.writer.granted > 0);
    channel_grant(scene.reader.end, ENVELOPE_WINDOW_BYTES);
    while (sent < TOTAL) {
        size_t size = sizeof(block);

        if (size > TOTAL - sent)
            size = TOTAL - sent;
        if (size > scene.writer.granted - sent)
            size = scene.writer.granted - sent;
        if (size == 0)
            ck_abort_msg("the window closed for ever");
        for (size_t i = 0; i < size; i++)
            block[i] = (uint8_t)((sent + i) * 31 >> 4);
        if (channel_write(scene.writer.end, block, size) != 0)
            ck_abort_msg("refused");
        sent += size;
        if (sent % 7 == 0) {
            uint64_t taken = scene.reader.bytes.size;

            channel_grant(scene.reader.end,
                          taken + ENVELOPE_WINDOW_BYTES > sent ? 7 * size : 1);
        }
        if (channel_set_held_bytes(scene.set) > CHANNEL_HELD_BYTES)
            ck_abort_msg("too much is held");
    }
    channel_finish(scene.writer.end);
    while (!scene.reader.closed)
        channel_grant(scene.reader.end, 5000);
    ck_assert_uint_eq(scene.reader.bytes.size, TOTAL);
    for (size_t i = 0; i < TOTAL; i++) {
        if (scene.reader.bytes.data[i] != (uint8_t)(i * 31 >> 4))
            ck_abort_msg("byte %zu is wrong", i);
    }
    scene_close(&scene);
}
END_TEST

START_TEST(test_writer_without_window)
{
    static uint8_t message[1024 * 1024];
    struct scene scene;
    unsigned taken = 0;
    int result;

    scene_open(&scene, 4); /* by messages */
    ck_assert_int_eq(attach(&scene, CHANNEL_WRITE, false), 0);
    while ((result = write_text(&scene, "x")) == 0)
        taken++;
    ck_assert_int_eq(result, 1);
    ck_assert_uint_eq(taken + 1, 4);
    ck_assert_uint_eq(scene.writer.grants, 0);
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, false), 0);
    channel_grant(scene.reader.end, 100);
    ck_assert_uint_eq(scene.writer.grants, 1); /* read on */
    ck_assert_str_eq(buf_text(&scene.reader.bytes), "xxxx");
    ck_assert_uint_eq(scene.reader.messages, 4); /* as they were sent */
    scene_close(&scene);

    scene_open(&scene, 1024); /* by bytes: one larger message */
    ck_assert_int_eq(attach(&scene, CHANNEL_WRITE, false), 0);
    ck_assert_int_eq(channel_write(scene.writer.end, message, sizeof(message)), 1);
    result = 1;
    for (unsigned i = 0; result == 1 && i < 100; i++)
        result = channel_write(scene.writer.end, message, sizeof(message) / 4);
    ck_assert_int_eq(result, -EMSGSIZE); /* told to pause, it went on and on */
    ck_assert_uint_le(channel_set_held_bytes(scene.set),
                      CHANNEL_HELD_BYTES + CHANNEL_OVERRUN_BYTES);
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, true), 0);
    channel_grant(scene.reader.end, UINT64_MAX);
    channel_grant(scene.reader.end, UINT64_MAX);                      /* saturates */
    ck_assert_uint_le(scene.reader.largest, ENVELOPE_DATA_MAX_BYTES); /* cut for a native one */
    ck_assert_uint_ge(scene.reader.bytes.size, sizeof(message));
    scene_close(&scene);
}
END_TEST

/* Many small pieces cost no more than their bytes. */
START_TEST(test_small_pieces_join)
{
    struct scene scene;
    uint8_t byte = 'b';

    scene_open(&scene, 1);
    ck_assert_int_eq(attach(&scene, CHANNEL_WRITE, true), 0);
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, true), 0);
    TURN_UNTIL(scene.loop, scene.writer.granted > 0);
    for (unsigned i = 0; i < CHANNEL_HELD_BYTES; i++) {
        if (channel_write(scene.writer.end, &byte, 1) != 0)
            ck_abort_msg("refused");
    }
    channel_grant(scene.reader.end, CHANNEL_HELD_BYTES);
    ck_assert_uint_eq(scene.reader.bytes.size, CHANNEL_HELD_BYTES);
    ck_assert_uint_le(scene.reader.messages, CHANNEL_HELD_BYTES / 4096 + 1);
    scene_close(&scene);
}
END_TEST

START_TEST(test_text_costs_an_adapter_nothing)
{
    static const uint8_t note[1000];
    struct scene scene;

    scene_open(&scene, 0);
    ck_assert_int_eq(attach(&scene, CHANNEL_WRITE, false), 0);
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, true), 0);
    for (int i = 0; i < 1000; i++) /* without any grant: none of it waits */
        ck_assert_int_eq(channel_write_text(scene.writer.end, note, sizeof(note)), 0);
    ck_assert_uint_eq(channel_set_held_bytes(scene.set), 0);
    channel_grant(scene.reader.end, 3);
    ck_assert_int_eq(channel_write_text(scene.writer.end, note, sizeof(note)), 0);
    ck_assert_int_eq(write_text(&scene, "abc"), 0);
    channel_finish(scene.writer.end);
    ck_assert_str_eq(buf_text(&scene.reader.bytes), "abc");
    ck_assert(scene.reader.closed);
    ck_assert_int_eq(scene.reader.close, CHANNEL_CLOSE_CLEAN);
    scene_close(&scene);
}
END_TEST

START_TEST(test_expiry)
{
    struct scene scene;

    scene_open(&scene, 0);
    channel_set_times(scene.set, 20, 10000);
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, true), 0);
    channel_leave(scene.reader.end);
    ck_assert_int_eq(channel_create(scene.set, 0, &scene.refs), 0); /* nobody comes */
    ck_assert_int_eq(channel_create(scene.set, 0, &scene.refs), 0); /* only one */
    ck_assert_int_eq(attach(&scene, CHANNEL_WRITE, false), 0);
    ck_assert_int_eq(write_text(&scene, "unread"), 0);
    TURN_UNTIL(scene.loop, channel_set_count(scene.set) == 0);
    ck_assert(scene.writer.closed);
    ck_assert_int_eq(scene.writer.close, CHANNEL_CLOSE_EXPIRED);
    ck_assert_str_eq(scene.writer.code, "S218");
    ck_assert_uint_eq(channel_set_held_bytes(scene.set), 0);
    scene_close(&scene);

    scene_open(&scene, 0); /* ended, and never read */
    channel_set_times(scene.set, 20, 10000);
    ck_assert_int_eq(channel_create(scene.set, 0, &scene.refs), 0);
    ck_assert_int_eq(attach(&scene, CHANNEL_WRITE, false), 0);
    ck_assert_int_eq(write_text(&scene, "unread"), 0);
    channel_finish(scene.writer.end);
    TURN_UNTIL(scene.loop, channel_set_held_bytes(scene.set) == 0);
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, true), -ENOENT);
    scene_close(&scene);
}
END_TEST

START_TEST(test_stall)
{
    struct scene scene;

    scene_open(&scene, 0);
    channel_set_times(scene.set, 10000, 40);
    ck_assert_int_eq(channel_create(scene.set, 0, &scene.refs), 0);
    ck_assert_int_eq(attach(&scene, CHANNEL_WRITE, false), 0);
    ck_assert_int_eq(attach(&scene, CHANNEL_READ, false), 0);
    turn_for(scene.loop, 100); /* nothing waits: no stall */
    ck_assert(!scene.reader.closed);
    ck_assert_int_eq(write_text(&scene, "waits"), 0);
    TURN_UNTIL(scene.loop, scene.reader.closed);
    ck_assert(scene.writer.closed);
    ck_assert_int_eq(scene.reader.close, CHANNEL_CLOSE_ABORTED);
    scene_close(&scene);
}
END_TEST

START_TEST(test_limit)
{
    struct scene scene;
    struct channel_refs refs;

    scene_open(&scene, CHANNEL_BUFFER_MAX);
    while (channel_set_count(scene.set) < CHANNELS_MAX)
        ck_assert_int_eq(channel_create(scene.set, 0, &refs), 0);
    ck_assert_int_eq(channel_create(scene.set, 0, &refs), -EMFILE);
    scene_close(&scene);
}
END_TEST

UNIT_MAIN("router.channel", test_attach, test_clean_end, test_empty_stream, test_abort,
          test_credit_is_kept, test_long_stream, test_writer_without_window,
          test_small_pieces_join, test_text_costs_an_adapter_nothing, test_expiry, test_stall,
          test_limit)
