/* exec.c - programs in a running sandbox: what a caller waits for, against what the guest
 * itself needs and one exchange with its agent, in turn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare_machine.h"

#define ROUNDS 10
#define WARM_UP 10
#define FLOOR "exec.floor"

/* The guest's own time for COUNT starts and ends of a program, in ms, the first left out: a
 * loop inside one program. WORDS are python's. */
static int spawn_in_guest(struct native_client *client, const char *id, const char *words,
                          int count, struct samples *samples)
{
    _cleanup_(buf_done)
    struct buf reply = { 0 };
    char body[BENCH_BODY_MAX], argv[1024], text[BENCH_BODY_MAX];
    char *save = NULL;
    int index = 0;
    snprintf(argv, sizeof(argv),
             "\"python3\",\"-c\",\"import os,time\\na=[%s]\\n"
             "for i in range(%d):\\n"
             " t=time.monotonic();p=os.posix_spawn(a[0],a,os.environ);os.waitpid(p,0);"
             "print((time.monotonic()-t)*1000)\"",
             words, count + 1);
    if (bench_exec_body(body, id, argv) < 0 ||
        bench_call(client, "sandbox::exec", body, NULL, &reply) < 0 ||
        bench_text(&reply, "stdout", text, sizeof(text)) < 0)
        return -1;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (index++ > 0 && samples_add(samples, strtod(line, NULL)) < 0)
            return -1;
    }
    return index == count + 1 ? 0 : -1;
}

static int measure_calls(struct native_client *client, const char *function, const char *body,
                         int count, struct samples *samples)
{
    double ms;
    for (int i = 0; i < count; i++) {
        if (bench_call(client, function, body, &ms, NULL) < 0 || samples_add(samples, ms) < 0)
            return -1;
    }
    return 0;
}

static int measure_pings(struct bare *bare, int count, struct samples *samples)
{
    for (int i = 0; bare && i < count; i++) {
        double ms = bare_ping(bare);
        if (ms < 0 || samples_add(samples, ms) < 0)
            return -1;
    }
    return 0;
}

struct execs {
    struct native_client *client;
    struct bare *bare; /* NULL: none can be had */
    char id[64];
    struct samples spawn, ping, stat, run;
};

static int measure_execs(struct execs *execs, int rounds, int count)
{
    char body[BENCH_BODY_MAX], stat_body[256];
    struct samples warm_up = { 0 };
    int ret = bench_exec_body(body, execs->id, "\"/bin/true\"");
    snprintf(stat_body, sizeof(stat_body), "{\"sandbox_id\":\"%s\",\"path\":\"/\"}", execs->id);
    if (ret == 0)
        ret = measure_calls(execs->client, "sandbox::exec", body, WARM_UP, &warm_up);
    if (ret == 0)
        ret = measure_pings(execs->bare, WARM_UP, &warm_up);
    for (int round = 0; round < rounds && ret == 0; round++) {
        ret = spawn_in_guest(execs->client, execs->id, "'/bin/true'", count, &execs->spawn);
        if (ret == 0)
            ret = measure_calls(execs->client, "sandbox::exec", body, count, &execs->run);
        if (ret == 0)
            ret = measure_pings(execs->bare, count, &execs->ping);
        if (ret == 0)
            ret = measure_calls(execs->client, "sandbox::fs::stat", stat_body, count,
                                &execs->stat);
    }
    samples_done(&warm_up);
    return ret;
}

int bench_exec(struct bench *bench)
{
    _cleanup_(subject_stopp)
    struct subject *subject = NULL;
    struct report *report = &bench->report;
    struct execs execs = { 0 };
    double ms;
    if (bench_subject(bench, bench->adapter, BENCH_SECTION_RESTORE, &subject) < 0)
        return -1;
    execs.client = subject_client(subject);
    int ret = bench_create_one(bench, execs.client, NULL, execs.id);
    if (ret == 0 && bare_possible(bench, BARE_ALONE))
        ret = bare_start(bench, BARE_ALONE, &ms, &execs.bare);
    if (ret == 0)
        ret = measure_execs(&execs, bench_repetitions(bench, ROUNDS), 20);
    double floor = samples_percentile(&execs.spawn, 50) + samples_percentile(&execs.ping, 50);
    report_add(report, "exec.spawn_in_guest", &execs.spawn, "ms", NULL);
    report_add(report, "exec.ping", &execs.ping, "ms", NULL);
    report_add(report, "fs.stat", &execs.stat, "ms", "exec.ping");
    report_add_value(report, FLOOR, floor, "ms", NULL);
    report_add(report, "exec.true", &execs.run, "ms", FLOOR);
    bare_stop(execs.bare);
    samples_done(&execs.spawn);
    samples_done(&execs.ping);
    samples_done(&execs.stat);
    samples_done(&execs.run);
    return ret;
}

int bench_run(struct bench *bench)
{
    _cleanup_(subject_stopp)
    struct subject *subject = NULL;
    struct samples interpreter = { 0 }, run = { 0 };
    char id[64], body[256];
    if (bench_subject(bench, bench->adapter, BENCH_SECTION_POOL, &subject) < 0)
        return -1;
    struct native_client *client = subject_client(subject);
    int ret = bench_create_one(bench, client, NULL, id);
    if (ret == 0) /* translates */
        ret = spawn_in_guest(client, id, "'/usr/bin/python3','-c','pass'", 2, &run);
    samples_done(&run);
    snprintf(body, sizeof(body),
             "{\"image\":\"%s\",\"lang\":\"python\",\"code\":\"print(2+2)\"}", bench->image);
    for (int i = 0; i < bench_repetitions(bench, 30) && ret == 0; i++) {
        bench_settle(client, 2500); /* a place in the pool is filled again */
        ret = spawn_in_guest(client, id, "'/usr/bin/python3','-c','pass'", 1, &interpreter);
        if (ret == 0)
            ret = measure_calls(client, "sandbox::run", body, 1, &run);
    }
    report_add(&bench->report, "run.interpreter", &interpreter, "ms", NULL);
    report_add(&bench->report, "run.python", &run, "ms", "run.interpreter");
    samples_done(&interpreter);
    samples_done(&run);
    return ret;
}
