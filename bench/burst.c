/* burst.c - creates at once, pool off: latency of a burst against one after the other, plain
 * work in the same way for comparison, and whether any of many fails. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "plain_work.h"

#define BURST 8
#define ROUNDS 25
#define MANY 200
#define MANY_IN_FLIGHT 10
#define WAIT_MS 120000

/* Creates under way, and their sandboxes. */
struct burst {
    struct bench *bench;
    struct native_client *client;
    struct native_call *calls[MANY_IN_FLIGHT];
    double starts[MANY_IN_FLIGHT];
    char ids[BURST][64]; /* kept until the end of a burst */
    size_t id_count;
    size_t failed;
    unsigned repetitions; /* of the work that takes as long as a create */
};

static void begin_one(struct burst *burst, size_t slot)
{
    char body[256];
    int size = snprintf(body, sizeof(body), "{\"image\":\"%s\"}", burst->bench->image);
    burst->starts[slot] = bench_now_ms();
    if (native_call_start(burst->client, "sandbox::create", body, (size_t)size,
                          &burst->calls[slot]) < 0)
        burst->failed++;
}

/* The answer is there: its latency, and its sandbox kept or stopped. */
static void end_one(struct burst *burst, size_t slot, bool keep, struct samples *samples)
{
    _cleanup_(native_call_freep)
    struct native_call *call = take_ptr(burst->calls[slot]);
    struct buf body = { 0 };
    size_t size;
    const char *text = native_call_body(call, &size);
    char id[64];
    (void)samples_add(samples, bench_now_ms() - burst->starts[slot]); /* fewer at worst */
    if (!native_call_ok(call) || buf_append(&body, text, size) < 0 ||
        bench_text(&body, "sandbox_id", id, sizeof(id)) < 0)
        burst->failed++;
    else if (keep)
        memcpy(burst->ids[burst->id_count++], id, sizeof(id));
    else
        burst->failed += bench_stop_one(burst->client, id) < 0;
    buf_done(&body);
}

/* COUNT creates, at most IN_FLIGHT at once. */
static int create_many(struct burst *burst, size_t count, size_t in_flight, bool keep,
                       struct samples *samples)
{
    size_t begun = 0, done = 0;
    while (done < count) {
        for (size_t i = 0; i < in_flight; i++) {
            if (burst->calls[i] && native_call_done(burst->calls[i])) {
                end_one(burst, i, keep, samples);
                done++;
            }
            if (!burst->calls[i] && begun < count) {
                begin_one(burst, i);
                begun++;
                done += !burst->calls[i];
            }
        }
        if (done < count && loop_turn(native_client_loop(burst->client), WAIT_MS) < 0)
            return -1;
    }
    return 0;
}

static int stop_kept(struct burst *burst)
{
    int ret = 0;
    for (size_t i = 0; i < burst->id_count && ret == 0; i++)
        ret = bench_stop_one(burst->client, burst->ids[i]);
    burst->id_count = 0;
    return ret;
}

/* All stay until the last is there, also where they come one after the other. */
static int create_round(struct burst *burst, size_t in_flight, struct rounds *rounds)
{
    struct samples round = { 0 };
    int ret = create_many(burst, BURST, in_flight, true, &round);
    if (ret == 0)
        ret = stop_kept(burst);
    if (ret == 0)
        ret = rounds_add(rounds, &round);
    samples_done(&round);
    return ret;
}

static unsigned processors(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : (unsigned)count;
}

static int work_round(unsigned repetitions, unsigned lanes, struct rounds *rounds)
{
    struct samples round = { 0 };
    int ret = work_run(repetitions, BURST, lanes, &round);
    if (ret == 0)
        ret = rounds_add(rounds, &round);
    samples_done(&round);
    return ret;
}

struct bursts {
    struct rounds sequential, at_once;
    struct rounds work_sequential, work_at_once; /* as much work as a create is, without one */
};

/* What the end of eight machines leaves to do to the kernel falls into plain work, one piece
 * after the other, whose median does not mind. */
static int measure_round(struct burst *burst, struct bursts *bursts)
{
    unsigned repetitions = burst->repetitions;
    int ret = create_round(burst, 1, &bursts->sequential);
    if (ret == 0)
        ret = work_round(repetitions, 1, &bursts->work_sequential);
    if (ret == 0)
        ret = create_round(burst, BURST, &bursts->at_once);
    if (ret == 0)
        ret = work_round(repetitions, 1, &bursts->work_sequential);
    if (ret == 0)
        ret = work_round(repetitions, processors(), &bursts->work_at_once);
    return ret;
}

/* How much work a create is, by the first eight. */
static int measure_work(struct burst *burst)
{
    struct samples creates = { 0 };
    int ret = create_many(burst, BURST, 1, true, &creates);
    if (ret == 0)
        ret = stop_kept(burst);
    burst->repetitions = work_repetitions(samples_percentile(&creates, 50));
    samples_done(&creates);
    return ret;
}

static int measure_bursts(struct burst *burst, struct bursts *bursts)
{
    int count = burst->bench->quick ? 1 : ROUNDS, ret = measure_work(burst);
    for (int i = 0; i < count && ret == 0; i++)
        ret = measure_round(burst, bursts);
    return ret;
}

int bench_burst(struct bench *bench)
{
    _cleanup_(subject_stopp)
    struct subject *subject = NULL;
    struct bursts bursts = { 0 };
    struct samples many = { 0 };
    struct burst burst = { .bench = bench };
    char id[64];
    if (bench_subject(bench, bench->adapter, BENCH_SECTION_RESTORE, &subject) < 0)
        return -1;
    burst.client = subject_client(subject);
    int ret = bench_create_one(bench, burst.client, NULL, id); /* makes the template */
    if (ret == 0)
        ret = measure_bursts(&burst, &bursts);
    report_add_rounds(&bench->report, "burst.sequential", &bursts.sequential, "ms", NULL);
    report_add_rounds(&bench->report, "burst.create8", &bursts.at_once, "ms",
                      "burst.sequential");
    report_add_rounds(&bench->report, "burst.work", &bursts.work_sequential, "ms", NULL);
    report_add_rounds(&bench->report, "burst.work8", &bursts.work_at_once, "ms", "burst.work");
    burst.failed = 0;
    if (ret == 0)
        ret = create_many(&burst, (size_t)bench_repetitions(bench, MANY), MANY_IN_FLIGHT, false,
                          &many);
    if (ret == 0)
        report_add_value(&bench->report, "create.failures", (double)burst.failed,
                         bench->quick ? "of 20" : "of 200", NULL);
    rounds_done(&bursts.sequential);
    rounds_done(&bursts.at_once);
    rounds_done(&bursts.work_sequential);
    rounds_done(&bursts.work_at_once);
    samples_done(&many);
    return ret;
}
