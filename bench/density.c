/* density.c - what an idle sandbox costs: memory as PSS, processor time. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define ALIVE 50
#define ALIVE_QUICK 4
#define SETTLE_MS 10000
#define WATCH_MS 10000
#define MACHINE "qemu-system" /* how its processes' names begin */

/* What all machines of one router take together. */
struct usage {
    int count;
    double pss_mb;
    double cpu_ms;
};

/* Parent and processor time of PID. -1: it is gone. */
static int read_stat(pid_t pid, pid_t *ret_parent, double *ret_cpu_ms, char ret_name[32])
{
    char path[64], line[1024];
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    bool read = file && fgets(line, sizeof(line), file);
    if (file)
        (void)fclose(file); /* read only */
    char *name = read ? strchr(line, '(') : NULL, *end = read ? strrchr(line, ')') : NULL;
    if (!name || !end)
        return -1;
    *end = '\0';
    snprintf(ret_name, 32, "%s", name + 1);
    if (sscanf(end + 2, "%*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", ret_parent, &user,
               &system) != 3)
        return -1;
    *ret_cpu_ms = (double)(user + system) * 1000 / (double)sysconf(_SC_CLK_TCK);
    return 0;
}

static bool is_below(pid_t pid, pid_t ancestor)
{
    char name[32];
    double cpu_ms;
    while (pid > 1 && pid != ancestor)
        if (read_stat(pid, &pid, &cpu_ms, name) < 0)
            return false;
    return pid == ancestor;
}

static double read_pss_mb(pid_t pid)
{
    char path[64], line[256];
    long kb = 0;
    snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file) && sscanf(line, "Pss: %ld kB", &kb) != 1)
        ;
    if (file)
        (void)fclose(file); /* read only */
    return (double)kb / 1024;
}

static struct usage usage_of(pid_t router)
{
    struct usage usage = { 0 };
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        pid_t pid = (pid_t)atoi(entry->d_name), parent;
        char name[32];
        double cpu_ms;
        if (pid <= 0 || read_stat(pid, &parent, &cpu_ms, name) < 0 ||
            strncmp(name, MACHINE, strlen(MACHINE)) != 0 || !is_below(parent, router))
            continue;
        usage.count++;
        usage.cpu_ms += cpu_ms;
        usage.pss_mb += read_pss_mb(pid);
    }
    if (proc)
        (void)closedir(proc); /* read only */
    return usage;
}

static int measure(struct bench *bench, struct subject *subject)
{
    struct native_client *client = subject_client(subject);
    pid_t router = subject_router_pid(subject);
    int alive = bench->quick ? ALIVE_QUICK : ALIVE;
    char id[64];
    if (bench_create_one(bench, client, NULL, id) < 0)
        return -1;
    bench_settle(client, SETTLE_MS);
    struct usage first = usage_of(router);
    for (int i = 1; i < alive; i++)
        if (bench_create_one(bench, client, NULL, id) < 0)
            return -1;
    bench_settle(client, SETTLE_MS);
    struct usage all = usage_of(router);
    if (all.count <= first.count)
        return -1;
    bench_settle(client, WATCH_MS);
    struct usage later = usage_of(router);
    report_add_value(&bench->report, "density.alive", all.count, "VMs", NULL);
    report_add_value(&bench->report, "density.pss_mb",
                     (all.pss_mb - first.pss_mb) / (all.count - first.count), "MiB", NULL);
    report_add_value(&bench->report, "density.idle_cpu",
                     (later.cpu_ms - all.cpu_ms) / WATCH_MS * 100 / all.count, "% of a core",
                     NULL);
    return 0;
}

int bench_density(struct bench *bench)
{
    _cleanup_(subject_stopp)
    struct subject *subject = NULL;
    if (bench_subject(bench, bench->adapter, BENCH_SECTION_RESTORE, &subject) < 0)
        return -1;
    return measure(bench, subject);
}
