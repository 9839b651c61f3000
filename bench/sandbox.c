/* sandbox.c - what a caller waits for: create, exec, run, files, and what a sandbox costs. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

#define BODY_MAX 4096

static int repetitions(const struct bench *bench, int full)
{
    return bench->quick ? (full + 9) / 10 : full;
}

static int create(struct bench *bench, struct native_client *client, double *ret_ms,
                  char id[64])
{
    _cleanup_(buf_done)
    struct buf reply = { 0 };
    char body[256];
    snprintf(body, sizeof(body), "{\"image\":\"%s\"}", bench->image);
    if (bench_call(client, "sandbox::create", body, ret_ms, &reply) < 0)
        return -1;
    return bench_text(&reply, "sandbox_id", id, 64);
}

static int stop(struct native_client *client, const char *id)
{
    char body[128];
    snprintf(body, sizeof(body), "{\"sandbox_id\":\"%s\",\"wait\":true}", id);
    return bench_call(client, "sandbox::stop", body, NULL, NULL);
}

/* Creates and stops one after the other; PAUSE_MS lets a warm pool refill. */
static int measure_creates(struct bench *bench, struct native_client *client, int count,
                           uint32_t pause_ms, struct samples *samples)
{
    char id[64];
    double ms;
    for (int i = 0; i < count; i++) {
        if (create(bench, client, &ms, id) < 0 || samples_add(samples, ms) < 0 ||
            stop(client, id) < 0)
            return -1;
        if (pause_ms > 0)
            bench_settle(client, pause_ms);
    }
    return 0;
}

static int create_row(struct bench *bench, const char *name, const char *section, int count,
                      uint32_t pause_ms, const char *against)
{
    _cleanup_(subject_stopp)
    struct subject *subject = NULL;
    struct samples samples = { 0 };
    char id[64];
    if (bench_subject(bench, bench->adapter, section, &subject) < 0)
        return -1;
    struct native_client *client = subject_client(subject);
    /* The first one makes what is cached (image, template): not what is measured. */
    int ret = create(bench, client, NULL, id);
    if (ret == 0)
        ret = stop(client, id);
    if (ret == 0 && strcmp(name, "create.cold") != 0)
        bench_settle(client, bench->quick ? 5000 : 15000);
    if (ret == 0)
        ret = measure_creates(bench, client, repetitions(bench, count), pause_ms, &samples);
    report_add(&bench->report, name, &samples, "ms", against);
    samples_done(&samples);
    return ret;
}

int bench_create(struct bench *bench)
{
    if (create_row(bench, "create.cold", BENCH_SECTION_COLD, 10, 0, NULL) < 0 ||
        create_row(bench, "create.restore", BENCH_SECTION_RESTORE, 30, 0, "create.cold") < 0)
        return -1;
    return create_row(bench, "create.pool", BENCH_SECTION_POOL, 30, 1500, "create.restore");
}

static int exec_body(char body[BODY_MAX], const char *id, const char *argv)
{
    int size = snprintf(body, BODY_MAX, "{\"sandbox_id\":\"%s\",\"argv\":[%s]}", id, argv);
    return size > 0 && size < BODY_MAX ? 0 : -1;
}

/* The guest's own time for a spawn and wait of /bin/true, in ms: a loop inside one program. */
static int spawn_in_guest(struct native_client *client, const char *id, struct samples *samples)
{
    static const char program[] =
        "\"python3\",\"-c\",\"import os,time\\n"
        "for i in range(60):\\n"
        " t=time.monotonic();p=os.posix_spawn('/bin/true',['true'],{});os.waitpid(p,0);"
        "print((time.monotonic()-t)*1000)\"";
    _cleanup_(buf_done)
    struct buf reply = { 0 };
    char body[BODY_MAX], text[4096];
    if (exec_body(body, id, program) < 0 ||
        bench_call(client, "sandbox::exec", body, NULL, &reply) < 0 ||
        bench_text(&reply, "stdout", text, sizeof(text)) < 0)
        return -1;
    char *save = NULL;
    int index = 0;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (index++ >= 10 &&
            samples_add(samples, strtod(line, NULL)) < 0) /* the first warm up */
            return -1;
    }
    return samples->count > 0 ? 0 : -1;
}

static int repeat(struct native_client *client, const char *function, const char *body,
                  int count, struct samples *samples)
{
    double ms;
    for (int i = 0; i < count + 10; i++) {
        if (bench_call(client, function, body, &ms, NULL) < 0)
            return -1;
        if (i >= 10 && samples_add(samples, ms) < 0) /* the first warm up */
            return -1;
    }
    return 0;
}

int bench_exec(struct bench *bench)
{
    _cleanup_(subject_stopp)
    struct subject *subject = NULL;
    struct samples spawn = { 0 }, ping = { 0 }, exec = { 0 };
    char id[64], body[BODY_MAX];
    if (bench_subject(bench, bench->adapter, NULL, &subject) < 0)
        return -1;
    struct native_client *client = subject_client(subject);
    int count = repetitions(bench, 200);
    int ret = create(bench, client, NULL, id);
    if (ret == 0)
        ret = spawn_in_guest(client, id, &spawn);
    snprintf(body, sizeof(body), "{\"sandbox_id\":\"%s\",\"path\":\"/\"}", id);
    if (ret == 0)
        ret = repeat(client, "sandbox::fs::stat", body, count, &ping);
    if (ret == 0)
        ret = exec_body(body, id, "\"/bin/true\"");
    if (ret == 0)
        ret = repeat(client, "sandbox::exec", body, count, &exec);
    report_add(&bench->report, "exec.spawn_in_guest", &spawn, "ms", NULL);
    report_add(&bench->report, "exec.ping", &ping, "ms", NULL);
    report_add(&bench->report, "exec.true", &exec, "ms", "exec.spawn_in_guest");
    double floor = samples_percentile(&spawn, 50) + samples_percentile(&ping, 50);
    report_add_value(&bench->report, "exec.floor", floor, "ms", NULL);
    report_add_value(&bench->report, "exec.true_p50", samples_percentile(&exec, 50), "ms",
                     "exec.floor");
    samples_done(&spawn);
    samples_done(&ping);
    samples_done(&exec);
    return ret;
}

int bench_run(struct bench *bench)
{
    _cleanup_(subject_stopp)
    struct subject *subject = NULL;
    struct samples interpreter = { 0 }, run = { 0 };
    char id[64], body[BODY_MAX];
    double ms;
    if (bench_subject(bench, bench->adapter, BENCH_SECTION_POOL, &subject) < 0)
        return -1;
    struct native_client *client = subject_client(subject);
    int ret = create(bench, client, NULL, id);
    if (ret == 0)
        ret = exec_body(body, id, "\"python3\",\"-c\",\"print(2+2)\"");
    for (int i = 0; i < repetitions(bench, 20) && ret == 0; i++) {
        ret = bench_call(client, "sandbox::exec", body, &ms, NULL);
        if (ret == 0 && i > 0)
            ret = samples_add(&interpreter, ms);
    }
    snprintf(body, sizeof(body),
             "{\"image\":\"%s\",\"lang\":\"python\",\"code\":\"print(2+2)\"}", bench->image);
    for (int i = 0; i < repetitions(bench, 20) && ret == 0; i++) {
        bench_settle(client, 2000);
        ret = bench_call(client, "sandbox::run", body, &ms, NULL);
        if (ret == 0)
            ret = samples_add(&run, ms);
    }
    report_add(&bench->report, "run.interpreter", &interpreter, "ms", NULL);
    report_add(&bench->report, "run.python", &run, "ms", "run.interpreter");
    samples_done(&interpreter);
    samples_done(&run);
    return ret;
}

/* PSS in MiB of all processes of that name, by their smaps_rollup; and how many there are. */
static double pss_of(const char *name, int *ret_count)
{
    double total = 0;
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    *ret_count = 0;
    while (proc && (entry = readdir(proc))) {
        char path[300], comm[64] = "", line[256];
        long kb;
        snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
        FILE *file = fopen(path, "re");
        if (!file)
            continue;
        bool ours = fgets(comm, sizeof(comm), file) && strncmp(comm, name, strlen(name)) == 0;
        (void)fclose(file); /* read only */
        snprintf(path, sizeof(path), "/proc/%s/smaps_rollup", entry->d_name);
        file = ours ? fopen(path, "re") : NULL;
        while (file && fgets(line, sizeof(line), file)) {
            if (sscanf(line, "Pss: %ld kB", &kb) == 1) {
                total += (double)kb / 1024;
                (*ret_count)++;
            }
        }
        if (file)
            (void)fclose(file); /* read only */
    }
    if (proc)
        (void)closedir(proc); /* read only */
    return total;
}

int bench_density(struct bench *bench)
{
    _cleanup_(subject_stopp)
    struct subject *subject = NULL;
    char id[64];
    int first, all, count = bench->quick ? 4 : 50;
    if (bench_subject(bench, bench->adapter, BENCH_SECTION_RESTORE, &subject) < 0)
        return -1;
    struct native_client *client = subject_client(subject);
    if (create(bench, client, NULL, id) < 0)
        return -1;
    bench_settle(client, 10000);
    double before = pss_of("qemu-system", &first);
    for (int i = 0; i < count; i++) {
        if (create(bench, client, NULL, id) < 0)
            return -1;
    }
    bench_settle(client, 3000);
    double after = pss_of("qemu-system", &all);
    if (all <= first)
        return -1;
    report_add_value(&bench->report, "density.alive", count + 1, "VMs", NULL);
    report_add_value(&bench->report, "density.pss_mb", (after - before) / (all - first), "MiB",
                     NULL);
    return 0;
}
