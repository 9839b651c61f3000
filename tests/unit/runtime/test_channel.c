/* test_channel.c - the adapter's ends of data channels (contract 9). */
#include "channel.h"
#include "fixture.h"
#include "serve.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

/* What one channel has told. */
struct end {
    struct channel *channel;
    size_t bytes;
    unsigned writable, closed, ready;
    bool clean, refused;
    char reason[128];
    char reader_id[64], reader_key[64];
};

static void on_data(void *ctx, const uint8_t *data, size_t size)
{
    struct end *end = ctx;

    end->bytes += size;
}

static void on_writable(void *ctx)
{
    struct end *end = ctx;

    end->writable++;
}

static void on_closed(void *ctx, bool clean, const char *reason)
{
    struct end *end = ctx;

    end->closed++;
    end->clean = clean;
    (void)snprintf(end->reason, sizeof(end->reason), "%s", reason ? reason : "");
}

static void on_made(void *ctx, const struct channel_ref *reader, struct sandbox_error *err)
{
    struct end *end = ctx;

    end->ready++;
    end->refused = err;
    if (!reader)
        return;
    (void)snprintf(end->reader_id, sizeof(end->reader_id), "%s", reader->channel_id);
    (void)snprintf(end->reader_key, sizeof(end->reader_key), "%s", reader->access_key);
    ck_assert_str_eq(reader->direction, "read");
}

static const struct channel_events events = {
    .data = on_data,
    .writable = on_writable,
    .closed = on_closed,
};

static struct channel_ref ref = { .channel_id = "c1", .access_key = "k1", .direction = "read" };

static void read_from(struct end *end, uint64_t *ret_id)
{
    struct sandbox_error err = { 0 };
    struct message *open;

    ck_assert_int_eq(
        channel_open_reader(fixture.adapter, &ref, &events, end, &end->channel, &err), 0);
    open = fixture_next(ENVELOPE_OPEN);
    ck_assert(span_equals(open->envelope.channel_id, "c1"));
    ck_assert(span_equals(open->envelope.access_key, "k1"));
    ck_assert(!open->envelope.write);
    *ret_id = open->envelope.id;
    free(open);
}

static void begin_writer(struct end *end)
{
    struct sandbox_error err = { 0 };

    ck_assert_int_eq(
        channel_create_writer(fixture.adapter, &events, end, on_made, &end->channel, &err), 0);
}

static void answer_create(const char *body)
{
    struct message *call = fixture_next(ENVELOPE_CALL);

    ck_assert(span_equals(call->envelope.operation, "engine::channels::create"));
    fixture_send(&(struct envelope){
        .kind = ENVELOPE_REPLY, .id = call->envelope.id, .body = span_of_text(body) });
    free(call);
}

#define CREATED                                                                                \
    "{\"writer\":{\"channel_id\":\"w\",\"access_key\":\"wk\",\"direction\":\"write\"},"        \
    "\"reader\":{\"channel_id\":\"w\",\"access_key\":\"rk\",\"direction\":\"read\"}}"

static void write_to(struct end *end, uint64_t *ret_id)
{
    struct message *open;

    begin_writer(end);
    answer_create(CREATED);
    open = fixture_next(ENVELOPE_OPEN);
    ck_assert(span_equals(open->envelope.channel_id, "w"));
    ck_assert(span_equals(open->envelope.access_key, "wk"));
    ck_assert(open->envelope.write);
    *ret_id = open->envelope.id;
    free(open);
    ck_assert_uint_eq(end->ready, 1);
    ck_assert(!end->refused);
}

static void send_credit(uint64_t id, uint64_t credit)
{
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CREDIT, .id = id, .credit = credit });
}

static void send_data(uint64_t id, size_t size)
{
    static const char bytes[ENVELOPE_DATA_MAX_BYTES];

    fixture_send(
        &(struct envelope){ .kind = ENVELOPE_DATA, .id = id, .body = { bytes, size } });
}

static void send_close(uint64_t id, const char *code, const char *message)
{
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CLOSE,
                                     .id = id,
                                     .code = span_of_text(code),
                                     .message = span_of_text(message) });
}

START_TEST(test_reader_takes_and_grants)
{
    struct end end = { 0 };
    struct message *credit;
    uint64_t id;

    fixture_open("");
    read_from(&end, &id);
    for (int i = 0; i < 4; i++)
        send_data(id, ENVELOPE_DATA_MAX_BYTES);
    TURN_UNTIL(fixture.loop, end.bytes == ENVELOPE_WINDOW_BYTES);
    fixture_expect_none(ENVELOPE_CREDIT);
    channel_grant(end.channel, 1000);
    channel_grant(end.channel, ENVELOPE_WINDOW_BYTES / 2 - 1001);
    fixture_expect_none(ENVELOPE_CREDIT);
    channel_grant(end.channel, 1);
    credit = fixture_next(ENVELOPE_CREDIT);
    ck_assert_uint_eq(credit->envelope.id, id);
    ck_assert_uint_eq(credit->envelope.credit, ENVELOPE_WINDOW_BYTES / 2);
    free(credit);
    send_data(id, 50000);
    send_close(id, NULL, NULL);
    TURN_UNTIL(fixture.loop, end.closed == 1);
    ck_assert(end.clean);
    ck_assert_uint_eq(end.bytes, ENVELOPE_WINDOW_BYTES + 50000);
    channel_free(end.channel);
    fixture_close();
}
END_TEST

START_TEST(test_data_beyond_the_window)
{
    struct end end = { 0 };
    uint64_t id;

    fixture_open("");
    read_from(&end, &id);
    for (int i = 0; i < 4; i++)
        send_data(id, ENVELOPE_DATA_MAX_BYTES);
    send_data(id, 1);
    TURN_UNTIL(fixture.loop, end.closed == 1);
    ck_assert(!end.clean);
    ck_assert_uint_eq(end.bytes, ENVELOPE_WINDOW_BYTES);
    ck_assert_uint_eq(serve_link(adapter_serve(fixture.adapter)), 0);
    channel_free(end.channel);
    fixture_close();
}
END_TEST

START_TEST(test_reader_is_refused_or_aborted)
{
    struct end end = { 0 };
    uint64_t id;

    fixture_open("");
    read_from(&end, &id);
    send_close(id, "S218", "Channel not found");
    TURN_UNTIL(fixture.loop, end.closed == 1);
    ck_assert(!end.clean);
    ck_assert_str_eq(end.reason, "Channel not found");
    send_data(id, 10); /* crosses: no breach */
    channel_free(end.channel);
    turn_for(fixture.loop, 50);
    ck_assert_ptr_nonnull(fixture.link);
    fixture_expect_none(ENVELOPE_CLOSE);
    fixture_close();
}
END_TEST

START_TEST(test_freed_reader_tells_the_router)
{
    struct end end = { 0 };
    struct message *close;
    uint64_t id;

    fixture_open("");
    read_from(&end, &id);
    channel_free(end.channel);
    close = fixture_next(ENVELOPE_CLOSE);
    ck_assert_uint_eq(close->envelope.id, id);
    ck_assert(span_equals(close->envelope.code, "S218"));
    free(close);
    ck_assert_uint_eq(end.closed, 0);
    fixture_close();
}
END_TEST

START_TEST(test_writer_waits_for_its_reader)
{
    static const uint8_t bytes[200000];
    struct end end = { 0 };
    size_t got = 0;
    uint64_t id;

    fixture_open("");
    write_to(&end, &id);
    ck_assert_str_eq(end.reader_id, "w");
    ck_assert_str_eq(end.reader_key, "rk");
    ck_assert_uint_eq(channel_window(end.channel), 0);
    ck_assert_uint_eq(channel_write(end.channel, bytes, 1), 0);
    send_credit(id, 150000);
    TURN_UNTIL(fixture.loop, end.writable == 1);
    ck_assert_uint_eq(channel_window(end.channel), 150000);
    ck_assert_uint_eq(channel_write(end.channel, bytes, sizeof(bytes)), 150000);
    while (got < 150000) {
        struct message *data = fixture_next(ENVELOPE_DATA);

        ck_assert_uint_eq(data->envelope.id, id);
        ck_assert_uint_le(data->envelope.body.size, ENVELOPE_DATA_MAX_BYTES);
        got += data->envelope.body.size;
        free(data);
    }
    send_credit(id, 50000);
    TURN_UNTIL(fixture.loop, end.writable == 2);
    ck_assert_uint_eq(channel_write(end.channel, bytes, 50000), 50000);
    channel_end(end.channel);
    ck_assert_uint_eq(channel_window(end.channel), 0);
    struct message *close = fixture_next(ENVELOPE_CLOSE);

    ck_assert_ptr_null(close->envelope.code.data);
    free(close);
    channel_free(end.channel);
    turn_for(fixture.loop, 20);
    fixture_expect_none(ENVELOPE_CLOSE);
    ck_assert_uint_eq(end.closed, 0);
    fixture_close();
}
END_TEST

START_TEST(test_writer_is_told_only_when_it_waits)
{
    struct end end = { 0 };
    uint64_t id;

    fixture_open("");
    write_to(&end, &id);
    send_credit(id, 1000);
    TURN_UNTIL(fixture.loop, end.writable == 1);
    send_credit(id, 1000);
    TURN_UNTIL(fixture.loop, channel_window(end.channel) == 2000);
    ck_assert_uint_eq(end.writable, 1);
    send_credit(id, UINT64_MAX);
    TURN_UNTIL(fixture.loop, end.closed == 1); /* a breach */
    channel_free(end.channel);
    fixture_close();
}
END_TEST

START_TEST(test_writer_aborts_with_a_reason)
{
    struct end end = { 0 };
    struct message *close;
    uint64_t id;

    fixture_open("");
    write_to(&end, &id);
    channel_abort(end.channel, S218, "gone");
    close = fixture_next(ENVELOPE_CLOSE);
    ck_assert(span_equals(close->envelope.code, "S218"));
    ck_assert(span_equals(close->envelope.message, "gone"));
    free(close);
    channel_free(end.channel);
    fixture_close();
}
END_TEST

static const char *const no_channels[] = {
    "{}",
    "[]",
    "nonsense",
    "{\"writer\":{},\"reader\":{}}",
    "{\"writer\":{\"channel_id\":1,\"access_key\":\"a\"},\"reader\":{\"access_key\":\"b\"}}",
};

START_TEST(test_no_channel_is_made)
{
    fixture_open("");
    for (size_t i = 0; i < ARRAY_SIZE(no_channels); i++) {
        struct end end = { 0 };

        begin_writer(&end);
        answer_create(no_channels[i]);
        TURN_UNTIL(fixture.loop, end.ready == 1);
        ck_assert(end.refused);
        channel_free(end.channel);
    }
    fixture_close();
}
END_TEST

START_TEST(test_router_refuses_to_make_one)
{
    struct end end = { 0 };
    struct message *call;

    fixture_open("");
    begin_writer(&end);
    call = fixture_next(ENVELOPE_CALL);
    fixture_send(&(struct envelope){
        .kind = ENVELOPE_ERROR, .id = call->envelope.id, .body = span_of_text("{}") });
    free(call);
    TURN_UNTIL(fixture.loop, end.ready == 1);
    ck_assert(end.refused);
    channel_free(end.channel);
    fixture_close();
}
END_TEST

START_TEST(test_link_loss_ends_all)
{
    struct end reader = { 0 }, writer = { 0 }, unborn = { 0 }, without = { 0 };
    struct sandbox_error err = { 0 };
    uint64_t id;

    fixture_open("");
    read_from(&reader, &id);
    write_to(&writer, &id);
    begin_writer(&unborn);
    fixture_drop_link();
    TURN_UNTIL(fixture.loop, reader.closed && writer.closed && unborn.ready);
    ck_assert(!reader.clean && !writer.clean && unborn.refused);
    ck_assert_int_eq(channel_create_writer(fixture.adapter, &events, &without, on_made,
                                           &without.channel, &err),
                     -1);
    ck_assert_int_eq(err.code, S216);
    ck_assert_int_eq(
        channel_open_reader(fixture.adapter, &ref, &events, &without, &without.channel, &err),
        0);
    ck_assert_uint_eq(without.closed, 0);
    TURN_UNTIL(fixture.loop, without.closed == 1);
    channel_free(reader.channel);
    channel_free(writer.channel);
    channel_free(unborn.channel);
    channel_free(without.channel);
    fixture_close();
}
END_TEST

START_TEST(test_freed_while_it_is_made)
{
    struct end end = { 0 };

    fixture_open("");
    begin_writer(&end);
    channel_free(end.channel);
    answer_create(CREATED);
    turn_for(fixture.loop, 50);
    ck_assert_uint_eq(end.ready, 0);
    fixture_expect_none(ENVELOPE_OPEN);
    ck_assert_ptr_nonnull(fixture.link);
    fixture_close();
}
END_TEST

START_TEST(test_oldest_unattached_is_dropped)
{
    static struct end ends[CHANNELS_UNATTACHED_MAX + 2];
    uint64_t ids[CHANNELS_UNATTACHED_MAX + 2];
    struct message *close;

    fixture_open("");
    for (size_t i = 0; i < CHANNELS_UNATTACHED_MAX; i++)
        write_to(&ends[i], &ids[i]);
    send_credit(ids[0], 1); /* attached: no more the oldest that waits */
    TURN_UNTIL(fixture.loop, ends[0].writable == 1);
    write_to(&ends[CHANNELS_UNATTACHED_MAX], &ids[CHANNELS_UNATTACHED_MAX]);
    turn_for(fixture.loop, 20);
    fixture_expect_none(ENVELOPE_CLOSE);
    write_to(&ends[CHANNELS_UNATTACHED_MAX + 1], &ids[CHANNELS_UNATTACHED_MAX + 1]);
    TURN_UNTIL(fixture.loop, ends[1].closed == 1);
    close = fixture_next(ENVELOPE_CLOSE);
    ck_assert_uint_eq(close->envelope.id, ids[1]);
    free(close);
    ck_assert_uint_eq(ends[0].closed + ends[2].closed, 0);
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        channel_free(ends[i].channel);
    fixture_close();
}
END_TEST

UNIT_MAIN("channel", test_reader_takes_and_grants, test_data_beyond_the_window,
          test_reader_is_refused_or_aborted, test_freed_reader_tells_the_router,
          test_writer_waits_for_its_reader, test_writer_is_told_only_when_it_waits,
          test_writer_aborts_with_a_reason, test_no_channel_is_made,
          test_router_refuses_to_make_one, test_link_loss_ends_all, test_freed_while_it_is_made,
          test_oldest_unattached_is_dropped)
