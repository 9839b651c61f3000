/* router.c - what the router costs: the mock behind it, and the same mock called directly, turn
 * by turn in one run. Streams are in stream.c. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "bench.h"
#include "proc.h"

#define ROUNDS 10
#define WAIT_MS 60000

/* The mock without a router in between. */
struct direct {
    struct native_client *client;
    pid_t pid;
    int pidfd;
    char folder[64];
};

static void direct_stop(struct direct *direct)
{
    char path[128];
    if (direct->pid > 0) {
        struct pollfd end = { .fd = direct->pidfd, .events = POLLIN };
        (void)proc_pidfd_signal(direct->pidfd, SIGTERM); /* it may have ended by itself */
        if (poll(&end, 1, WAIT_MS) != 1)
            (void)proc_pidfd_signal(direct->pidfd, SIGKILL); /* the same */
        (void)waitpid(direct->pid, NULL, 0);                 /* our child, it has ended */
    }
    closep(&direct->pidfd);
    native_client_free(direct->client);
    snprintf(path, sizeof(path), "%s/config.yaml", direct->folder);
    (void)unlink(path); /* left in /tmp at worst */
    snprintf(path, sizeof(path), "%s/router.sock", direct->folder);
    (void)unlink(path);          /* the same */
    (void)rmdir(direct->folder); /* the same */
}

static int write_config(const struct direct *direct, const struct bench *bench)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/config.yaml", direct->folder);
    FILE *file = fopen(path, "we");
    if (!file)
        return -errno;
    fprintf(file,
            "sandbox:\n  adapter: sandbox-mock\n  runtime_dir: %s\n  settings:\n"
            "    image_allowlist: [%s]\n",
            direct->folder, bench->image);
    return fclose(file) == 0 ? 0 : -errno;
}

static int direct_start(const struct bench *bench, struct direct *direct)
{
    char url[128], config[128];
    *direct = (struct direct){ .pidfd = -1, .folder = "/tmp/bench.XXXXXX" };
    if (!mkdtemp(direct->folder) || write_config(direct, bench) < 0)
        return -1;
    snprintf(url, sizeof(url), "ipc://%s/router.sock", direct->folder);
    snprintf(config, sizeof(config), "%s/config.yaml", direct->folder);
    if (native_client_new_router(url, &direct->client) < 0)
        return -1;
    const char *const argv[] = { bench->mock, "--config", config, "--router", url, NULL };
    if (proc_spawn(&(struct proc_spec){ .program = bench->mock,
                                        .argv = argv,
                                        .die_with_parent = true },
                   &direct->pid, &direct->pidfd) < 0)
        return -1;
    return native_client_wait_adapter(direct->client, WAIT_MS) < 0 ? -1 : 0;
}

/* COUNT calls with IN_FLIGHT at once: each call's latency to SAMPLES, calls/s to RATES. */
static int load(struct native_client *client, const char *function, size_t in_flight,
                size_t count, struct samples *samples, struct samples *rates)
{
    _cleanup_free_ struct native_call **calls = calloc(in_flight, sizeof(*calls));
    _cleanup_free_ double *starts = calloc(in_flight, sizeof(*starts));
    size_t begun = 0, done = 0;
    double start = bench_now_ms();
    if (!calls || !starts)
        return -1;
    while (done < count) {
        for (size_t i = 0; i < in_flight; i++) {
            if (calls[i] && native_call_done(calls[i])) {
                (void)samples_add(samples,
                                  (bench_now_ms() - starts[i]) * 1000); /* fewer at worst */
                native_call_free(take_ptr(calls[i]));
                done++;
            }
            if (!calls[i] && begun < count) {
                starts[i] = bench_now_ms();
                if (native_call_start(client, function, "{}", 2, &calls[i]) < 0)
                    return -1;
                begun++;
            }
        }
        if (done < count && loop_turn(native_client_loop(client), WAIT_MS) < 0)
            return -1;
    }
    (void)samples_add(rates,
                      (double)count / (bench_now_ms() - start) * 1000); /* fewer at worst */
    return 0;
}

/* Direct and hop in turn, so that the machine's mood hits both. */
static int compare_calls(struct bench *bench, struct native_client *direct,
                         struct native_client *hop, size_t in_flight)
{
    struct samples direct_us = { 0 }, hop_us = { 0 }, direct_rate = { 0 }, hop_rate = { 0 };
    char name[64], against[64];
    size_t count = bench->quick ? 200 : in_flight == 1 ? 1000 : 10000;
    int ret = 0;
    for (int round = 0; round < (bench->quick ? 2 : ROUNDS) && ret == 0; round++) {
        ret = load(direct, "list", in_flight, count, &direct_us, &direct_rate);
        if (ret == 0)
            ret = load(hop, "sandbox::list", in_flight, count, &hop_us, &hop_rate);
    }
    snprintf(against, sizeof(against), "router.direct.%zu", in_flight);
    snprintf(name, sizeof(name), "router.hop.%zu", in_flight);
    report_add(&bench->report, against, &direct_us, "us", NULL);
    report_add(&bench->report, name, &hop_us, "us", against);
    snprintf(against, sizeof(against), "router.direct.%zu.rate", in_flight);
    snprintf(name, sizeof(name), "router.hop.%zu.rate", in_flight);
    report_add(&bench->report, against, &direct_rate, "calls/s", NULL);
    report_add(&bench->report, name, &hop_rate, "calls/s", against);
    samples_done(&direct_us);
    samples_done(&hop_us);
    samples_done(&direct_rate);
    samples_done(&hop_rate);
    return ret;
}

static double rss_mb(pid_t pid)
{
    char path[64], line[256];
    long kb = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "VmRSS: %ld kB", &kb) == 1)
            break;
    }
    if (file)
        (void)fclose(file); /* read only */
    return (double)kb / 1024;
}

int bench_router(struct bench *bench)
{
    static const size_t in_flight[] = { 1, 8, 16, 64, 256 };
    _cleanup_(subject_stopp)
    struct subject *subject = NULL;
    struct direct direct;
    int ret = bench_subject(bench, bench->mock, NULL, &subject);
    if (ret < 0)
        return ret;
    report_add_value(&bench->report, "router.rss_idle", rss_mb(subject_router_pid(subject)),
                     "MiB", NULL);
    ret = direct_start(bench, &direct);
    for (size_t i = 0; i < ARRAY_SIZE(in_flight) && ret == 0; i++)
        ret = compare_calls(bench, direct.client, subject_client(subject), in_flight[i]);
    direct_stop(&direct);
    if (ret == 0)
        ret = bench_stream_rows(bench, subject);
    report_add_value(&bench->report, "router.rss_after", rss_mb(subject_router_pid(subject)),
                     "MiB", NULL);
    return ret;
}

int bench_calls(struct bench *bench)
{
    _cleanup_(subject_stopp)
    struct subject *subject = NULL;
    struct samples latency = { 0 }, rates = { 0 };
    int ret = bench_subject(bench, bench->mock, NULL, &subject);
    if (ret == 0)
        ret = load(subject_client(subject), "sandbox::list", 16, bench->count, &latency,
                   &rates);
    samples_done(&latency);
    samples_done(&rates);
    return ret;
}
