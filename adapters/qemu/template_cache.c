/* template_cache.c - see template_cache.h. Each job owns copies of all it needs; the thread
 * hands it back to the loop, which tells and frees it. */
#include "template_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec.h"
#include "log.h"
#include "template_prune.h"
#include "work.h"

#define NAME_MAX_BYTES 96

struct template_cache {
    struct loop *loop;
    char *folder;
    struct work work;
    struct list jobs; /* struct job */
    atomic_bool cancel;
};

/* What lookups and keepings share. */
struct job {
    struct list node; /* in cache->jobs */
    struct template_cache *cache;
    char name[NAME_MAX_BYTES];
    char key[HASH_SHA256_HEX_BYTES]; /* "": not known */
    struct work_item item;
    struct loop_notice end;
    struct template_parts parts;
    int result;
    const char *reason;
    void (*done)(struct job *job);
    void (*release)(struct job *job);
};

struct template_lookup {
    struct job job;
    struct template_key_spec spec;
    char *program, *command_line, *image_digest, *scratch; /* what spec points at */
    template_found_fn fn;                                  /* NULL: cancelled */
    void *ctx;
};

struct keeping {
    struct job job;
    uint64_t max_bytes;
};

/* Jobs. */

static void job_free(struct job *job)
{
    list_remove(&job->node);
    template_parts_done(&job->parts);
    job->release(job);
    free(job);
}

static void on_job_end(void *ctx)
{
    struct job *job = ctx;

    job->done(job);
    job_free(job);
}

static void job_hand_back(struct job *job)
{
    loop_notify(job->cache->loop, &job->end);
}

static void job_init(struct job *job, struct template_cache *cache, const char *name,
                     void (*fn)(void *ctx))
{
    job->cache = cache;
    job->parts = TEMPLATE_NO_PARTS;
    job->item = (struct work_item){ .fn = fn, .ctx = job };
    (void)snprintf(job->name, sizeof(job->name), "%s", name); /* cut is fine in the log */
    list_init(&job->item.node);
    loop_notice_init(&job->end, on_job_end, job);
    list_append(&cache->jobs, &job->node);
}

static int copy_fd(int fd, int *ret_fd)
{
    *ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return *ret_fd < 0 ? -errno : 0;
}

/* Looking up. */

static uint64_t mebibytes(uint32_t count)
{
    return (uint64_t)count << 20;
}

static void lookup_work(void *ctx)
{
    struct template_lookup *lookup = ctx;
    const struct qemu_shape *shape = &lookup->spec.args.shape;
    struct job *job = &lookup->job;
    char key[HASH_SHA256_HEX_BYTES];

    job->result = template_key(&lookup->spec, key);
    job->reason = "its key cannot be told";
    if (job->result == 0) {
        memcpy(job->key, key, sizeof(key));
        job->result = template_file_read(job->cache->folder, key, mebibytes(shape->memory_mb),
                                         mebibytes(shape->disk_mb), lookup->scratch,
                                         &job->cache->cancel, &job->parts, &job->reason);
    }
    job_hand_back(job);
}

/* A file that was refused is of no use to anybody. */
static void lookup_refused(const struct job *job)
{
    char path[4096];

    log_event(LOG_WARN, "template_refused", log_text("template", job->name),
              log_text("key", job->key), log_text("why", job->reason),
              log_text("error", strerror(-job->result)));
    if (job->key[0] &&
        snprintf(path, sizeof(path), "%s/%s", job->cache->folder, job->key) < (int)sizeof(path))
        (void)unlink(path); /* the next one is renamed over it */
}

static void lookup_done(struct job *job)
{
    struct template_lookup *lookup = CONTAINER_OF(job, struct template_lookup, job);

    if (job->result < 0 && job->result != -ENOENT && job->result != -ECANCELED)
        lookup_refused(job);
    if (job->result == 0)
        log_event(LOG_INFO, "template_found", log_text("template", job->name),
                  log_text("key", job->key));
    if (lookup->fn)
        lookup->fn(lookup->ctx, job->key, job->result == 0 ? &job->parts : NULL);
}

static void lookup_release(struct job *job)
{
    struct template_lookup *lookup = CONTAINER_OF(job, struct template_lookup, job);

    free(lookup->program);
    free(lookup->command_line);
    free(lookup->image_digest);
    free(lookup->scratch);
    closep(&lookup->spec.kernel_fd);
    closep(&lookup->spec.initrd_fd);
}

static int lookup_copy(struct template_lookup *lookup, const struct template_key_spec *spec,
                       const char *scratch)
{
    lookup->spec = *spec;
    lookup->spec.kernel_fd = lookup->spec.initrd_fd = -1;
    lookup->spec.args.program = lookup->program = strdup(spec->args.program);
    lookup->spec.image_digest = lookup->image_digest = strdup(spec->image_digest);
    lookup->scratch = strdup(scratch);
    if (spec->args.command_line)
        lookup->command_line = strdup(spec->args.command_line);
    lookup->spec.args.command_line = lookup->command_line;
    if (!lookup->program || !lookup->image_digest || !lookup->scratch ||
        (spec->args.command_line && !lookup->command_line))
        return -ENOMEM;
    if (copy_fd(spec->kernel_fd, &lookup->spec.kernel_fd) < 0)
        return -EMFILE;
    return copy_fd(spec->initrd_fd, &lookup->spec.initrd_fd);
}

int template_cache_find(struct template_cache *cache, const char *name,
                        const struct template_key_spec *spec, const char *scratch,
                        template_found_fn fn, void *ctx, struct template_lookup **ret_lookup)
{
    struct template_lookup *lookup = calloc(1, sizeof(*lookup));
    int result;

    if (!lookup)
        return -ENOMEM;
    job_init(&lookup->job, cache, name, lookup_work);
    lookup->job.done = lookup_done;
    lookup->job.release = lookup_release;
    lookup->fn = fn;
    lookup->ctx = ctx;
    result = lookup_copy(lookup, spec, scratch);
    if (result == 0)
        result = work_run(&cache->work, &lookup->job.item);
    if (result < 0) {
        job_free(&lookup->job);
        return result;
    }
    *ret_lookup = lookup;
    return 0;
}

void template_lookup_cancel(struct template_lookup *lookup)
{
    if (lookup)
        lookup->fn = NULL;
}

/* Keeping. */

static void keeping_work(void *ctx)
{
    struct job *job = ctx;
    struct keeping *keeping = CONTAINER_OF(job, struct keeping, job);

    job->result = template_file_write(job->cache->folder, job->key, &job->parts,
                                      &job->cache->cancel);
    template_prune(job->cache->folder, keeping->max_bytes);
    job_hand_back(job);
}

static void keeping_done(struct job *job)
{
    if (job->result == 0)
        log_event(LOG_INFO, "template_kept", log_text("template", job->name),
                  log_text("key", job->key));
    else if (job->result != -ECANCELED)
        log_event(LOG_WARN, "template_not_kept", log_text("template", job->name),
                  log_text("error", strerror(-job->result)));
}

static void keeping_release(struct job *job)
{
}

static int parts_copy(const struct template_parts *parts, struct template_parts *ret_parts)
{
    int result = copy_fd(parts->memory_fd, &ret_parts->memory_fd);

    if (result == 0)
        result = copy_fd(parts->state_fd, &ret_parts->state_fd);
    if (result == 0)
        result = copy_fd(parts->disk_fd, &ret_parts->disk_fd);
    return result < 0 ? result
                      : buf_append(&ret_parts->hello, parts->hello.data, parts->hello.size);
}

void template_cache_keep(struct template_cache *cache, const char *name, const char *key,
                         const struct template_parts *parts, uint32_t max_mb)
{
    struct keeping *keeping;

    if (!key[0] || max_mb == 0)
        return;
    keeping = calloc(1, sizeof(*keeping));
    if (!keeping)
        return;
    job_init(&keeping->job, cache, name, keeping_work);
    keeping->job.done = keeping_done;
    keeping->job.release = keeping_release;
    keeping->max_bytes = mebibytes(max_mb);
    (void)snprintf(keeping->job.key, sizeof(keeping->job.key), "%s", key);
    if (parts_copy(parts, &keeping->job.parts) < 0 ||
        work_run(&cache->work, &keeping->job.item) < 0)
        job_free(&keeping->job); /* it is made again next time */
}

/* Life. */

int template_cache_new(struct loop *loop, const char *cache_directory,
                       struct template_cache **ret_cache)
{
    struct template_cache *cache = calloc(1, sizeof(*cache));
    int result;

    if (!cache)
        return -ENOMEM;
    cache->loop = loop;
    list_init(&cache->jobs);
    if (asprintf(&cache->folder, "%s/templates", cache_directory) < 0) {
        free(cache);
        return -ENOMEM;
    }
    if (mkdir(cache->folder, 0700) < 0 && errno != EEXIST)
        result = -errno;
    else
        result = work_init(&cache->work);
    if (result < 0) {
        free(cache->folder);
        free(cache);
        return result;
    }
    *ret_cache = cache;
    return 0;
}

void template_cache_free(struct template_cache *cache)
{
    if (!cache)
        return;
    atomic_store(&cache->cancel, true);
    work_done(&cache->work);
    LIST_FOREACH(node, &cache->jobs)
    {
        struct job *job = LIST_ENTRY(node, struct job, node);

        (void)loop_notice_cancel(cache->loop, &job->end);
        job_free(job);
    }
    free(cache->folder);
    free(cache);
}
