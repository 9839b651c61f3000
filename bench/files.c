/* files.c - bytes in and out of a sandbox: files both ways, an exec's stdout, each in MiB/s. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "bare_machine.h"

#define WAIT_MS 120000

static uint8_t chunk[64u * 1024];

static int open_reader(struct native_client *client, const struct buf *reply,
                       struct native_stream **ret_stream)
{
    json_t *value = json_loadb((const char *)reply->data, reply->size, 0, NULL);
    json_t *ref = json_object_get(value, "content");
    const char *id = json_string_value(json_object_get(ref, "channel_id"));
    const char *key = json_string_value(json_object_get(ref, "access_key"));
    int ret = id && key ? native_stream_open(client, id, key, false, ret_stream) : -1;
    json_decref(value);
    return ret;
}

/* fs::write from a channel of the same client; MiB/s. */
static double upload(struct native_client *client, const char *id, size_t total)
{
    _cleanup_(buf_done)
    struct buf refs = { 0 };
    _cleanup_(native_call_freep)
    struct native_call *call = NULL;
    _cleanup_(native_stream_freep)
    struct native_stream *stream = NULL;
    char body[1024];
    if (bench_call(client, "engine::channels::create", "{}", NULL, &refs) < 0)
        return 0;
    json_t *value = json_loadb((const char *)refs.data, refs.size, 0, NULL);
    json_t *ref = json_object_get(value, "reader");
    char *text = json_dumps(ref, JSON_COMPACT);
    int size = snprintf(body, sizeof(body),
                        "{\"sandbox_id\":\"%s\",\"path\":\"/tmp/bench\",\"content\":%s}", id,
                        text);
    double start = bench_now_ms();
    bool begun = size > 0 && size < (int)sizeof(body) &&
                 native_call_start(client, "sandbox::fs::write", body, (size_t)size, &call) ==
                     0 &&
                 native_stream_open(
                     client, json_string_value(json_object_get(ref, "channel_id")),
                     json_string_value(json_object_get(ref, "access_key")), true, &stream) == 0;
    free(text);
    json_decref(value);
    for (size_t sent = 0; begun && sent < total; sent += sizeof(chunk))
        begun = native_stream_write(stream, chunk, sizeof(chunk), WAIT_MS) == 0;
    if (!begun || native_stream_close(stream) < 0 || native_call_wait(call, WAIT_MS) < 0 ||
        !native_call_ok(call))
        return 0;
    return (double)total / 1048576 / (bench_now_ms() - start) * 1000;
}

static double download(struct native_client *client, const char *id, size_t total)
{
    _cleanup_(buf_done)
    struct buf reply = { 0 };
    _cleanup_(native_stream_freep)
    struct native_stream *stream = NULL;
    char body[256];
    snprintf(body, sizeof(body), "{\"sandbox_id\":\"%s\",\"path\":\"/tmp/bench\"}", id);
    double start = bench_now_ms();
    if (bench_call(client, "sandbox::fs::read", body, NULL, &reply) < 0 ||
        open_reader(client, &reply, &stream) < 0)
        return 0;
    size_t got = 0;
    ssize_t count;
    while ((count = native_stream_read(stream, chunk, sizeof(chunk), WAIT_MS)) > 0)
        got += (size_t)count;
    return got == total ? (double)total / 1048576 / (bench_now_ms() - start) * 1000 : 0;
}

/* What a program makes of TOTAL bytes in the guest; REST is behind it in the shell's words. */
static double program_rate(struct native_client *client, const char *id, size_t total,
                           const char *rest)
{
    char body[512];
    double ms;
    snprintf(body, sizeof(body),
             "{\"sandbox_id\":\"%s\",\"argv\":[\"/bin/sh\",\"-c\","
             "\"dd if=/dev/zero bs=64k count=%zu 2>/dev/null%s\"]}",
             id, total / 65536, rest);
    if (bench_call(client, "sandbox::exec", body, &ms, NULL) < 0)
        return 0;
    return (double)total / 1048576 / ms * 1000;
}

static int add_rate(struct samples *samples, double rate)
{
    return rate > 0 ? samples_add(samples, rate) : -1;
}

struct rates {
    struct samples channel, pipe, write, up, down, out;
};

static void rates_done(struct rates *rates)
{
    samples_done(&rates->channel);
    samples_done(&rates->pipe);
    samples_done(&rates->write);
    samples_done(&rates->up);
    samples_done(&rates->down);
    samples_done(&rates->out);
}

/* In turn; the raw channel twice as long, for it is the quickest. */
static int measure_rates(struct rates *rates, struct native_client *client, const char *id,
                         struct bare *bare, size_t total)
{
    int ret = bare ? add_rate(&rates->channel, bare_channel(bare, 2 * total)) : 0;
    if (ret == 0)
        ret = add_rate(&rates->up, upload(client, id, total));
    if (ret == 0)
        ret = add_rate(&rates->down, download(client, id, total));
    if (ret == 0)
        ret = add_rate(&rates->out, program_rate(client, id, total, ""));
    if (ret == 0)
        ret = add_rate(&rates->pipe, program_rate(client, id, total, " | cat >/dev/null"));
    if (ret == 0)
        ret = add_rate(&rates->write, program_rate(client, id, total, " >/tmp/bench"));
    return ret;
}

int bench_files(struct bench *bench)
{
    _cleanup_(subject_stopp)
    struct subject *subject = NULL;
    struct rates rates = { 0 }, warm_up = { 0 };
    struct bare *bare = NULL;
    size_t total = (bench->quick ? 16u : 32u) * 1024 * 1024;
    char id[64];
    double ms;
    if (bench_subject(bench, bench->adapter, BENCH_SECTION_RESTORE, &subject) < 0)
        return -1;
    struct native_client *client = subject_client(subject);
    int ret = bench_create_one(bench, client, NULL, id);
    if (ret == 0 && bare_possible(bench, BARE_ALONE))
        ret = bare_start(bench, BARE_ALONE, &ms, &bare);
    if (ret == 0)
        ret = measure_rates(&warm_up, client, id, bare, total / 4);
    for (int round = 0; round < bench_repetitions(bench, 10) && ret == 0; round++)
        ret = measure_rates(&rates, client, id, bare, total);
    report_add(&bench->report, "channel.raw", &rates.channel, "MiB/s", NULL);
    report_add(&bench->report, "guest.pipe", &rates.pipe, "MiB/s", "channel.raw");
    report_add(&bench->report, "guest.write", &rates.write, "MiB/s", "channel.raw");
    report_add(&bench->report, "files.up", &rates.up, "MiB/s", "channel.raw");
    report_add(&bench->report, "files.down", &rates.down, "MiB/s", "channel.raw");
    report_add(&bench->report, "exec.stdout", &rates.out, "MiB/s", "channel.raw");
    bare_stop(bare);
    rates_done(&rates);
    rates_done(&warm_up);
    return ret;
}
