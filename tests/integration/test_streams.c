/* test_streams.c - channels through the real router (contract 9): a GiB each way in constant
 * memory, readers that do not read, and aborts. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "trial.h"
#include "unit.h"

#define STREAM_BYTES ((TRIAL_SANITIZED ? 32ull : 1024ull) << 20)
#define RSS_GROWTH_MAX (8u << 20)
#define SAMPLE_BYTES (32ull << 20)

struct channel_text {
    char id[64];
    char key[64];
};

static void copy_member(const char *text, const char *name, char to[64])
{
    const char *at = strstr(text, name);

    ck_assert_msg(at != NULL, "no %s in %s", name, text);
    at += strlen(name);
    ck_assert_uint_lt(strcspn(at, "\""), 64);
    (void)snprintf(to, 64, "%.*s", (int)strcspn(at, "\""), at);
}

static struct channel_text channel_make(struct trial *trial)
{
    struct channel_text channel;
    bool ok;
    _cleanup_free_ char *text = trial_call(trial, "engine::channels::create", "{}", &ok);

    ck_assert_msg(ok, "%s", text);
    copy_member(text, "\"channel_id\":\"", channel.id);
    copy_member(text, "\"access_key\":\"", channel.key);
    return channel;
}

static struct native_stream *attach(struct native_client *client,
                                    const struct channel_text *channel, bool write)
{
    struct native_stream *stream;

    ck_assert_int_eq(native_stream_open(client, channel->id, channel->key, write, &stream), 0);
    return stream;
}

/* What stands at OFFSET of every stream. */
static void fill(uint8_t *block, size_t size, uint64_t offset)
{
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = (offset + i) * 0x9e3779b97f4a7c15ull;

        memcpy(block + i, &word, sizeof(word));
    }
}

struct flow {
    struct trial *trial;
    struct native_stream *writer;
    struct native_stream *reader;
    uint64_t sent;
    uint64_t taken;
    uint64_t next_sample;
    size_t rss_before;
};

static void flow_sample(struct flow *flow)
{
    size_t rss;

    if (flow->taken < flow->next_sample)
        return;
    flow->next_sample += SAMPLE_BYTES;
    rss = router_process_rss_bytes(flow->trial->router);
    if (!TRIAL_SANITIZED && rss > flow->rss_before + RSS_GROWTH_MAX)
        ck_abort_msg("router grew from %zu to %zu KiB", flow->rss_before >> 10, rss >> 10);
}

static void flow_send(struct flow *flow)
{
    static uint8_t block[ENVELOPE_DATA_MAX_BYTES];

    while (flow->sent < STREAM_BYTES && native_stream_credit(flow->writer) >= sizeof(block)) {
        fill(block, sizeof(block), flow->sent);
        ck_assert_int_eq(native_stream_write(flow->writer, block, sizeof(block), TRIAL_WAIT_MS),
                         0);
        flow->sent += sizeof(block);
    }
}

/* Each word where it belongs; what comes in pieces is looked at whole. */
static void flow_take(struct flow *flow)
{
    static uint8_t got[ENVELOPE_DATA_MAX_BYTES], wanted[ENVELOPE_DATA_MAX_BYTES];

    while (native_stream_waiting(flow->reader) > 0) {
        ssize_t size = native_stream_read(flow->reader, got, sizeof(got), TRIAL_WAIT_MS);
        uint64_t skew = flow->taken % 8;

        ck_assert_int_gt(size, 0);
        if (skew == 0 && size % 8 == 0) {
            fill(wanted, (size_t)size, flow->taken);
            ck_assert_int_eq(memcmp(got, wanted, (size_t)size), 0);
        }
        flow->taken += (uint64_t)size;
        flow_sample(flow);
    }
}

/* All of it, from WRITING to READING. */
static void flow_run(struct trial *trial, struct native_client *writing,
                     struct native_client *reading)
{
    struct channel_text channel = channel_make(trial);
    struct flow flow = { .trial = trial, .next_sample = SAMPLE_BYTES };
    uint8_t byte;

    flow.writer = attach(writing, &channel, true);
    flow.reader = attach(reading, &channel, false);
    flow.rss_before = router_process_rss_bytes(trial->router);
    while (flow.taken < STREAM_BYTES) {
        flow_send(&flow);
        flow_take(&flow);
        ck_assert(!native_stream_ended(flow.writer) && !native_stream_ended(flow.reader));
        if (flow.taken < STREAM_BYTES && native_stream_waiting(flow.reader) == 0)
            ck_assert_int_eq(loop_turn(trial->loop, TRIAL_WAIT_MS), 0);
    }
    ck_assert_int_eq(native_stream_close(flow.writer), 0);
    ck_assert_int_eq(native_stream_read(flow.reader, &byte, 1, TRIAL_WAIT_MS), 0);
    native_stream_free(flow.writer);
    native_stream_free(flow.reader);
    ck_assert_int_eq(trial_metric(trial, "sandbox_channels"), 0);
}

START_TEST(test_a_gib_each_way)
{
    struct trial trial;
    struct played_adapter *adapter;
    struct native_client *played;

    trial_open(&trial, trial_unmanaged("one"));
    adapter = trial_adapter(&trial, "one", NULL, NULL);
    played = played_adapter_client(adapter);
    flow_run(&trial, trial.caller, trial.caller);
    flow_run(&trial, trial.caller, played);
    flow_run(&trial, played, trial.caller);
    played_adapter_free(adapter);
    trial_close(&trial);
}
END_TEST

/* The same through a sandbox: fs::write from a channel, fs::read into one. */

static void copy_sandbox(struct trial *trial, char id[64])
{
    bool ok;
    _cleanup_free_ char *text = trial_call(trial, "sandbox::create", "{\"image\":\"python\"}",
                                           &ok);

    ck_assert_msg(ok, "%s", text);
    copy_member(text, "\"sandbox_id\":\"", id);
}

static void run_write(struct trial *trial, const char *id)
{
    struct channel_text channel = channel_make(trial);
    struct flow flow = { .trial = trial };
    struct native_call *call;
    char body[512], wanted[64];

    (void)snprintf(body, sizeof(body),
                   "{\"sandbox_id\":\"%s\",\"path\":\"/tmp/big\",\"content\":{"
                   "\"channel_id\":\"%s\",\"access_key\":\"%s\",\"direction\":\"read\"}}",
                   id, channel.id, channel.key);
    flow.writer = attach(trial->caller, &channel, true);
    flow.rss_before = router_process_rss_bytes(trial->router);
    call = trial_start(trial, "sandbox::fs::write", body);
    while (flow.sent < STREAM_BYTES) {
        flow_send(&flow);
        ck_assert_msg(!native_call_done(call), "%s", native_call_body(call, NULL));
        if (flow.sent < STREAM_BYTES)
            ck_assert_int_eq(loop_turn(trial->loop, TRIAL_WAIT_MS), 0);
        flow.taken = flow.sent;
        flow_sample(&flow);
    }
    ck_assert_int_eq(native_stream_close(flow.writer), 0);
    (void)snprintf(wanted, sizeof(wanted), "\"bytes_written\":%llu", STREAM_BYTES);
    ck_assert_ptr_nonnull(strstr(trial_reply(call), wanted));
    native_stream_free(flow.writer);
    native_call_free(call);
}

static void run_read(struct trial *trial, const char *id)
{
    struct flow flow = { .trial = trial };
    struct channel_text channel;
    char body[256];
    bool ok;
    uint8_t byte;

    (void)snprintf(body, sizeof(body), "{\"sandbox_id\":\"%s\",\"path\":\"/tmp/big\"}", id);
    _cleanup_free_ char *text = trial_call(trial, "sandbox::fs::read", body, &ok);
    ck_assert_msg(ok, "%s", text);
    copy_member(text, "\"channel_id\":\"", channel.id);
    copy_member(text, "\"access_key\":\"", channel.key);
    flow.rss_before = router_process_rss_bytes(trial->router);
    flow.reader = attach(trial->caller, &channel, false);
    while (flow.taken < STREAM_BYTES) {
        ck_assert(!native_stream_ended(flow.reader) || native_stream_waiting(flow.reader) > 0);
        flow_take(&flow);
        if (flow.taken < STREAM_BYTES && native_stream_waiting(flow.reader) == 0)
            ck_assert_int_eq(loop_turn(trial->loop, TRIAL_WAIT_MS), 0);
    }
    ck_assert_uint_eq(flow.taken, STREAM_BYTES);
    ck_assert_int_eq(native_stream_read(flow.reader, &byte, 1, TRIAL_WAIT_MS), 0);
    native_stream_free(flow.reader);
}

START_TEST(test_a_gib_in_a_file)
{
    struct trial trial;
    char id[64];

    trial_open(&trial, "  adapter: sandbox-mock\n"
                       "  settings:\n    image_allowlist: [python]\n");
    router_process_await_bound(trial.router, "sandbox-mock");
    copy_sandbox(&trial, id);
    run_write(&trial, id);
    run_read(&trial, id);
    trial_close(&trial);
}
END_TEST

#define IDLE_READERS 64

/* As much as WRITER may send while nobody reads; the number of bytes. What the router grants
 * for data is on its way before the answer to a PING behind that data. */
static uint64_t write_until_stopped(struct trial *trial, struct native_stream *writer)
{
    static const uint8_t block[16384];
    uint64_t sent = 0;

    while (native_stream_credit(writer) == 0)
        ck_assert_int_eq(loop_turn(trial->loop, TRIAL_WAIT_MS), 0);
    while (native_stream_credit(writer) > 0) {
        uint64_t credit = native_stream_credit(writer);
        size_t size = credit < sizeof(block) ? (size_t)credit : sizeof(block);

        ck_assert_int_eq(native_stream_write(writer, block, size, TRIAL_WAIT_MS), 0);
        sent += size;
        if (native_stream_credit(writer) == 0)
            ck_assert_int_eq(native_client_settle(trial->caller, TRIAL_WAIT_MS), 0);
    }
    return sent;
}

START_TEST(test_readers_that_never_read)
{
    struct native_stream *writers[IDLE_READERS], *readers[IDLE_READERS];
    struct trial trial;
    size_t rss_before;

    trial_open(&trial, "");
    rss_before = router_process_rss_bytes(trial.router);
    for (size_t i = 0; i < IDLE_READERS; i++) {
        struct channel_text channel = channel_make(&trial);
        uint64_t sent;

        readers[i] = attach(trial.caller, &channel, false);
        writers[i] = attach(trial.caller, &channel, true);
        sent = write_until_stopped(&trial, writers[i]);
        ck_assert_uint_ge(sent, ENVELOPE_WINDOW_BYTES);
        ck_assert_uint_le(sent, 3 * ENVELOPE_WINDOW_BYTES);
    }
    ck_assert_int_le(trial_metric(&trial, "sandbox_channel_held_bytes"),
                     (long)IDLE_READERS * ENVELOPE_WINDOW_BYTES);
    if (!TRIAL_SANITIZED)
        ck_assert_uint_le(router_process_rss_bytes(trial.router),
                          rss_before + IDLE_READERS * (size_t)ENVELOPE_WINDOW_BYTES +
                              RSS_GROWTH_MAX);
    for (size_t i = 0; i < IDLE_READERS; i++) {
        native_stream_free(writers[i]);
        native_stream_free(readers[i]);
    }
    trial_close(&trial);
}
END_TEST

START_TEST(test_aborts)
{
    struct trial trial;
    struct played_adapter *adapter;
    struct channel_text channel, other, wrong;
    struct native_stream *writer, *reader;
    uint8_t byte;

    trial_open(&trial, trial_unmanaged("one"));
    adapter = trial_adapter(&trial, "one", NULL, NULL);

    /* The writer lets go without a clean end. */
    channel = channel_make(&trial);
    reader = attach(trial.caller, &channel, false);
    writer = attach(played_adapter_client(adapter), &channel, true);
    ck_assert_int_eq(native_stream_write(writer, "x", 1, TRIAL_WAIT_MS), 0);
    ck_assert_int_eq(native_stream_read(reader, &byte, 1, TRIAL_WAIT_MS), 1);
    native_stream_free(writer);
    ck_assert_int_eq(native_stream_read(reader, &byte, 1, TRIAL_WAIT_MS), -ECONNRESET);
    ck_assert_str_eq(native_stream_code(reader), "S218");
    native_stream_free(reader);

    /* Its connection is gone. */
    other = channel_make(&trial);
    reader = attach(trial.caller, &other, false);
    writer = attach(played_adapter_client(adapter), &other, true);
    ck_assert_int_eq(native_stream_write(writer, "x", 1, TRIAL_WAIT_MS), 0);
    ck_assert_int_eq(native_stream_read(reader, &byte, 1, TRIAL_WAIT_MS), 1);
    played_adapter_free(adapter);
    ck_assert_int_eq(native_stream_read(reader, &byte, 1, TRIAL_WAIT_MS), -ECONNRESET);
    ck_assert_str_eq(native_stream_code(reader), "S218");
    native_stream_free(reader);

    /* The reader leaves; a wrong key; an end that is taken. */
    channel = channel_make(&trial);
    wrong = channel;
    wrong.key[0] = wrong.key[0] == '0' ? '1' : '0';
    writer = attach(trial.caller, &channel, true);
    reader = attach(trial.caller, &wrong, false);
    ck_assert_int_eq(native_stream_read(reader, &byte, 1, TRIAL_WAIT_MS), -ECONNRESET);
    ck_assert_str_eq(native_stream_code(reader), "S218");
    native_stream_free(reader);
    reader = attach(trial.caller, &channel, false);
    ck_assert_int_eq(native_stream_write(writer, "x", 1, TRIAL_WAIT_MS), 0);
    ck_assert_int_eq(native_stream_read(reader, &byte, 1, TRIAL_WAIT_MS), 1);
    native_stream_free(reader);
    TURN_UNTIL(trial.loop, native_stream_ended(writer));
    ck_assert_str_eq(native_stream_code(writer), "S218");
    native_stream_free(writer);
    trial_close(&trial);
}
END_TEST

UNIT_MAIN("streams", test_a_gib_each_way, test_a_gib_in_a_file, test_readers_that_never_read,
          test_aborts)
