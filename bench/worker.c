/* worker.c - how long a caller waits for a prepared worker, against a sandbox of the same size
 * that boots as cold, in turn. */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "bench.h"

#define ROUNDS 10
#define FOLDER_BYTES 64

struct workers_bench {
    struct bench *bench;
    struct native_client *client;
    char folder[FOLDER_BYTES]; /* the worker's source */
    struct samples create_ms, start_ms;
};

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    return remove(path);
}

/* 0 or -errno. */
static int make_source(const struct workers_bench *self)
{
    char path[FOLDER_BYTES + 32];
    FILE *file;
    bool written;

    snprintf(path, sizeof(path), "%s/iii.worker.yaml", self->folder);
    file = fopen(path, "we");
    if (!file)
        return -errno;
    written = fprintf(file,
                      "name: bench\n"
                      "runtime: { base_image: %s }\n"
                      "resources: { cpus: 1, memory: %u }\n"
                      "scripts: { start: exec sleep 1000 }\n",
                      self->bench->image, BENCH_MEMORY_MB) > 0;
    return fclose(file) != 0 || !written ? -EIO : 0;
}

static int measure_create(struct workers_bench *self)
{
    char id[64];
    double ms;

    if (bench_create_one(self->bench, self->client, &ms, id) < 0 ||
        samples_add(&self->create_ms, ms) < 0)
        return -1;
    return bench_stop_one(self->client, id);
}

/* RET_MS may be NULL. */
static int start_and_stop(struct workers_bench *self, double *ret_ms)
{
    _cleanup_(buf_done)
    struct buf reply = { 0 };
    char body[512], id[64];

    snprintf(body, sizeof(body),
             "{\"source\":{\"host_path\":\"%s\"},\"state_key\":\"bench\",\"instance\":\"i\","
             "\"auth_token\":\"t\",\"network\":false}",
             self->folder);
    if (bench_call(self->client, "sandbox::worker::start", body, ret_ms, &reply) < 0 ||
        bench_text(&reply, "vm_id", id, sizeof(id)) < 0)
        return -1;
    snprintf(body, sizeof(body),
             "{\"vm_id\":\"%s\",\"instance\":\"i\",\"auth_token\":\"t\",\"timeout_ms\":0}", id);
    return bench_call(self->client, "sandbox::worker::stop", body, NULL, NULL);
}

static int measure_start(struct workers_bench *self)
{
    double ms;

    return start_and_stop(self, &ms) < 0 || samples_add(&self->start_ms, ms) < 0 ? -1 : 0;
}

static int measure_rounds(struct workers_bench *self)
{
    int ret = start_and_stop(self, NULL); /* makes the state, and what is cached */

    for (int i = 0; ret == 0 && i < bench_repetitions(self->bench, ROUNDS); i++) {
        ret = measure_create(self);
        if (ret == 0)
            ret = measure_start(self);
    }
    return ret;
}

static int run(struct workers_bench *self)
{
    struct bench *bench = self->bench;
    const char *settings = bench->settings;
    struct subject *subject = NULL;
    char own[256];
    int ret = make_source(self);

    if (ret < 0)
        return -1;
    snprintf(own, sizeof(own), "    allowed_roots: [%s]\n", self->folder);
    bench->settings = own;
    ret = bench_subject(bench, bench->adapter, BENCH_SECTION_COLD, &subject);
    bench->settings = settings;
    if (ret < 0)
        return -1;
    self->client = subject_client(subject);
    ret = measure_rounds(self);
    report_add(&bench->report, "worker.create", &self->create_ms, "ms", NULL);
    report_add(&bench->report, "worker.start", &self->start_ms, "ms", "worker.create");
    subject_stop(subject);
    return ret;
}

int bench_worker(struct bench *bench)
{
    struct workers_bench self = { .bench = bench, .folder = "/tmp/bench-worker-XXXXXX" };
    int ret;

    if (!mkdtemp(self.folder)) {
        fprintf(stderr, "sandbox-bench: %s: %s\n", self.folder, strerror(errno));
        return -1;
    }
    ret = run(&self);
    samples_done(&self.create_ms);
    samples_done(&self.start_ms);
    (void)nftw(self.folder, remove_one, 8, FTW_DEPTH | FTW_PHYS); /* else left in /tmp */
    return ret;
}
