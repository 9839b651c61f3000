/* create.c - how long a caller waits for a sandbox: cold, restored, from the pool, in turn, so
 * that the machine's mood hits all; against a bare QEMU, and against bwrap. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "bare_machine.h"
#include "proc.h"

#define ROUNDS 10
#define RESTORES_A_ROUND 3
#define POOL_REFILL_MS 2500 /* two machines that rehearse */

enum way { WAY_COLD, WAY_RESTORE, WAY_POOL, WAY_MAX };

static const struct {
    const char *section;
    int a_round;
} ways[] = {
    [WAY_COLD] = { BENCH_SECTION_COLD, 1 },
    [WAY_RESTORE] = { BENCH_SECTION_RESTORE, RESTORES_A_ROUND },
    [WAY_POOL] = { BENCH_SECTION_POOL, 2 },
};

struct creates {
    struct bench *bench;
    struct subject *subjects[WAY_MAX];
    struct samples ms[WAY_MAX];
    struct samples floor_ms;
    struct samples bwrap_ms;
};

/* Creates and stops one after the other. */
static int measure_way(struct creates *creates, enum way way)
{
    struct native_client *client = subject_client(creates->subjects[way]);
    char ids[RESTORES_A_ROUND][64];
    double ms;
    for (int i = 0; i < ways[way].a_round; i++) {
        if (bench_create_one(creates->bench, client, &ms, ids[i]) < 0 ||
            samples_add(&creates->ms[way], ms) < 0)
            return -1;
    }
    for (int i = 0; i < ways[way].a_round; i++) {
        if (bench_stop_one(client, ids[i]) < 0)
            return -1;
    }
    return 0;
}

static int measure_floor(struct creates *creates)
{
    double ms;
    if (!bare_possible(creates->bench, BARE_ALONE))
        return 0;
    for (int i = 0; i < RESTORES_A_ROUND; i++) {
        _cleanup_(bare_stopp)
        struct bare *bare = NULL;
        if (bare_start(creates->bench, BARE_ALONE, &ms, &bare) < 0 ||
            samples_add(&creates->floor_ms, ms) < 0)
            return -1;
    }
    return 0;
}

/* Where there is no bwrap, there is no row. */
static void measure_bwrap(struct creates *creates)
{
    static const char *const argv[] = { "bwrap", "--unshare-all", "--ro-bind", "/",
                                        "/",     "/bin/true",     NULL };
    for (int i = 0; i < RESTORES_A_ROUND; i++) {
        pid_t pid;
        int pidfd, status = -1;
        double start = bench_now_ms();
        if (proc_spawn(&(struct proc_spec){ .program = "bwrap", .argv = argv }, &pid, &pidfd) <
            0)
            return;
        (void)waitpid(pid, &status, 0); /* our child */
        closep(&pidfd);
        if (status == 0)
            (void)samples_add(&creates->bwrap_ms, bench_now_ms() - start); /* fewer at worst */
    }
}

/* The first one makes what is cached (image, template): not what is measured. */
static int begin_way(struct creates *creates, enum way way)
{
    char id[64];
    if (bench_subject(creates->bench, creates->bench->adapter, ways[way].section,
                      &creates->subjects[way]) < 0)
        return -1;
    struct native_client *client = subject_client(creates->subjects[way]);
    if (bench_create_one(creates->bench, client, NULL, id) < 0)
        return -1;
    return bench_stop_one(client, id);
}

static int measure_rounds(struct creates *creates)
{
    struct native_client *pool = subject_client(creates->subjects[WAY_POOL]);
    for (int round = 0; round < bench_repetitions(creates->bench, ROUNDS); round++) {
        bench_settle(pool, POOL_REFILL_MS);
        if (measure_way(creates, WAY_POOL) < 0)
            return -1;
        measure_bwrap(creates);
        bench_settle(pool, POOL_REFILL_MS); /* refilling is not to be in the others' way */
        if (measure_floor(creates) < 0 || measure_way(creates, WAY_RESTORE) < 0 ||
            measure_way(creates, WAY_COLD) < 0)
            return -1;
    }
    return 0;
}

int bench_create(struct bench *bench)
{
    struct creates creates = { .bench = bench };
    struct report *report = &bench->report;
    int ret = 0;
    for (enum way way = 0; way < WAY_MAX && ret == 0; way++)
        ret = begin_way(&creates, way);
    if (ret == 0)
        ret = measure_rounds(&creates);
    report_add(report, "create.floor", &creates.floor_ms, "ms", NULL);
    report_add(report, "create.restore", &creates.ms[WAY_RESTORE], "ms", "create.floor");
    report_add(report, "create.cold", &creates.ms[WAY_COLD], "ms", "create.restore");
    report_add(report, "host.bwrap", &creates.bwrap_ms, "ms", NULL);
    report_add(report, "create.pool", &creates.ms[WAY_POOL], "ms", "host.bwrap");
    for (enum way way = 0; way < WAY_MAX; way++) {
        subject_stop(creates.subjects[way]);
        samples_done(&creates.ms[way]);
    }
    samples_done(&creates.floor_ms);
    samples_done(&creates.bwrap_ms);
    return ret;
}
