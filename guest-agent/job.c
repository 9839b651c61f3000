/* job.c - see job.h. */
#include "job.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "frames.h"
#include "fs.h"
#include "pace.h"

#define WRITE_STREAM 0u
#define READ_STREAM 1u
#define GRANT_FROM_BYTES (64u * 1024) /* a short body costs no CREDIT */
/* A write to the disk and a CREDIT cost an emulated guest as much as copying half a MiB. */
#define LARGE_BLOCK_BYTES (2u * 1024 * 1024)
#define LARGE_BLOCKS_MAX 2u /* writes at once that have such; the others two windows */

/* How the host ended the stream of a fs::write. */
enum job_input { INPUT_OPEN, INPUT_ENDED, INPUT_ABORTED };

/* Bytes of the host: one block is filled by the loop while the thread has the other. What is
 * granted always fits: size + in_window <= capacity. */
struct job_blocks {
    uint8_t *data; /* two of `capacity`, of whole pages; NULL: nothing came yet */
    size_t capacity;
    unsigned filling;  /* 0 or 1 */
    size_t size;       /* of what is in it */
    uint64_t heard_ms; /* when something came last, or the thread began to wait */
};

struct job {
    struct call call;
    const struct guest_operation *operation;
    void *request; /* struct of the operation's request type */
    struct work_item work;
    struct buf file; /* the thread's own: frames that are being filled from a file */
    uint8_t *pages;  /* the same: what goes into a slot of the mailbox; NULL: nothing did */
    struct loop_notice progress; /* thread -> loop: look at `out` and `done` */
    atomic_bool cancelled;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    struct buf out; /* frames to be sent */
    bool done;      /* the last frame is in `out`, the thread is through */
    struct job_blocks in;
    enum job_input input;
    char *input_reason;
    uint64_t in_window;  /* what the host may still send */
    uint64_t out_window; /* what the thread may still send */
    bool head_sent;      /* a stream was begun: it has to be ended */
};

static struct job *job_of(struct call *call)
{
    return CONTAINER_OF(call, struct job, call);
}

static void blocks_free(struct job *job)
{
    if (!job->in.data)
        return;
    (void)munmap(job->in.data, 2 * job->in.capacity); /* it is ours */
    job->call.serve->large_blocks -= job->in.capacity == LARGE_BLOCK_BYTES;
}

static void job_free(struct job *job)
{
    if (!job)
        return;
    loop_notice_cancel(job->call.serve->loop, &job->progress);
    if (job->request)
        codec_free(job->operation->request, job->request);
    free(job->request);
    buf_done(&job->out);
    buf_done(&job->file);
    if (job->pages)
        (void)munmap(job->pages, AGENT_MAILBOX_SLOT_BYTES); /* they are ours */
    blocks_free(job);
    free(job->input_reason);
    (void)pthread_cond_destroy(&job->changed);
    (void)pthread_mutex_destroy(&job->lock);
    free(job);
}

/* Loop's side. */

static void job_flush(void *ctx)
{
    struct job *job = ctx;
    struct serve *serve = job->call.serve;
    bool done;

    if (serve_full(serve))
        return; /* job_resume() comes */
    (void)pthread_mutex_lock(&job->lock);
    done = job->done;
    if (job->out.size > 0) {
        serve_queued(serve, serve_append(serve, &job->out));
        serve_return_slots(serve, true);
    } else if (done)
        serve_queued(serve, -ENOMEM); /* the answer cannot be told */
    (void)pthread_mutex_unlock(&job->lock);
    if (!done)
        return;
    serve_end(serve, &job->call);
    job_free(job);
}

static uint64_t clock_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint8_t *blocks_filling(const struct job_blocks *blocks)
{
    return blocks->data + blocks->filling * blocks->capacity;
}

/* So many bytes are worth the thread's while, and a CREDIT; as many may come meanwhile. */
static size_t blocks_step(const struct job_blocks *blocks)
{
    return blocks->capacity / 2;
}

static int blocks_make(struct job *job)
{
    struct serve *serve = job->call.serve;
    const bool large = serve->large_blocks < LARGE_BLOCKS_MAX;
    const size_t capacity = large ? LARGE_BLOCK_BYTES : AGENT_WINDOW_BYTES;
    void *data = mmap(NULL, 2 * capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);

    if (data == MAP_FAILED)
        return -ENOMEM;
    serve->large_blocks += large;
    job->in.data = data;
    job->in.capacity = capacity;
    return 0;
}

/* The host may send more as there is room for it. The lock is held. */
static void job_grant(struct job *job)
{
    const size_t grant = job->in.capacity - job->in.size - (size_t)job->in_window;

    if (grant < blocks_step(&job->in) || job->input != INPUT_OPEN ||
        frames_credit(&job->out, job->call.id, WRITE_STREAM, grant) < 0)
        return;
    job->in_window += grant;
    loop_notify(job->call.serve->loop, &job->progress);
}

/* What came: bytes, or (DATA is NULL) a slot of the mailbox. */
struct job_bytes {
    const void *data;
    unsigned slot;
    size_t size;
};

static int job_take_bytes(struct job *job, const struct job_bytes *bytes)
{
    struct mailbox *mailbox = &job->call.serve->mailbox;
    uint8_t *to;
    int result = 0;

    if (job->input != INPUT_OPEN || bytes->size > job->in_window)
        return -EPROTO;
    if (job->done)
        return 0; /* it crossed the answer, behind which no CREDIT may come */
    if (!job->in.data && blocks_make(job) < 0)
        return -ENOMEM;
    job->in_window -= bytes->size;
    to = blocks_filling(&job->in) + job->in.size;
    if (bytes->data)
        memcpy(to, bytes->data, bytes->size);
    else
        result = mailbox_get(mailbox, bytes->slot, bytes->size, to,
                             job->in.capacity - job->in.size);
    if (result < 0)
        return result;
    job->in.size += bytes->size;
    job->in.heard_ms = clock_ms();
    if (job->in.size >= GRANT_FROM_BYTES)
        job_grant(job);
    return 0;
}

static int job_bytes_came(struct call *call, unsigned stream, const struct job_bytes *bytes)
{
    struct job *job = job_of(call);
    int result;

    if (stream != WRITE_STREAM || job->operation->id != GUEST_fs_write)
        return -EPROTO;
    (void)pthread_mutex_lock(&job->lock);
    result = job_take_bytes(job, bytes);
    if (result == 0 && job->in.size >= blocks_step(&job->in))
        (void)pthread_cond_signal(&job->changed);
    (void)pthread_mutex_unlock(&job->lock);
    return result;
}

static int job_data(struct call *call, unsigned stream, struct span bytes)
{
    return job_bytes_came(call, stream,
                          &(struct job_bytes){ .data = bytes.data, .size = bytes.size });
}

static int job_slot(struct call *call, unsigned stream, unsigned slot, size_t size)
{
    return job_bytes_came(call, stream, &(struct job_bytes){ .slot = slot, .size = size });
}

static int job_end(struct call *call, unsigned stream, struct span reason)
{
    struct job *job = job_of(call);
    int result = -EPROTO;

    if (stream != WRITE_STREAM || job->operation->id != GUEST_fs_write)
        return -EPROTO;
    (void)pthread_mutex_lock(&job->lock);
    if (job->input == INPUT_OPEN) {
        job->input = reason.data ? INPUT_ABORTED : INPUT_ENDED;
        job->input_reason = reason.data ? strndup(reason.data, reason.size) : NULL;
        result = 0;
    }
    (void)pthread_cond_signal(&job->changed);
    (void)pthread_mutex_unlock(&job->lock);
    return result;
}

static int job_credit(struct call *call, unsigned stream, uint64_t size)
{
    struct job *job = job_of(call);
    int result = -EPROTO;

    if (stream != READ_STREAM || job->operation->id != GUEST_fs_read)
        return -EPROTO;
    (void)pthread_mutex_lock(&job->lock);
    if (size <= AGENT_WIDE_WINDOW_BYTES && job->out_window + size <= AGENT_WIDE_WINDOW_BYTES) {
        job->out_window += size;
        result = 0;
    }
    (void)pthread_cond_signal(&job->changed);
    (void)pthread_mutex_unlock(&job->lock);
    return result;
}

static void job_cancel(struct call *call)
{
    struct job *job = job_of(call);

    atomic_store(&job->cancelled, true);
    (void)pthread_mutex_lock(&job->lock);
    (void)pthread_cond_signal(&job->changed);
    (void)pthread_mutex_unlock(&job->lock);
}

static void job_resume(struct call *call)
{
    job_flush(job_of(call));
}

static const struct call_ops job_ops = {
    .data = job_data,
    .slot = job_slot,
    .end = job_end,
    .credit = job_credit,
    .cancel = job_cancel,
    .resume = job_resume,
};

/* Thread's side. */

bool job_cancelled(struct job *job)
{
    return job && atomic_load(&job->cancelled);
}

/* The lock is held. False: nothing has come for too long. */
static bool job_wait_input(struct job *job)
{
    const uint64_t until_ms = job->in.heard_ms + JOB_SILENCE_MS;
    const struct timespec until = {
        .tv_sec = (time_t)(until_ms / 1000),
        .tv_nsec = (long)(until_ms % 1000) * 1000000,
    };

    return pthread_cond_timedwait(&job->changed, &job->lock, &until) != ETIMEDOUT ||
           job->in.heard_ms + JOB_SILENCE_MS > until_ms;
}

/* Waits for a block, or what there is at the end. -1: there will be none. The lock is held. */
static int job_await_input(struct job *job, struct sandbox_error *err)
{
    job->in.heard_ms = clock_ms();
    while (job->input == INPUT_OPEN &&
           (!job->in.data || job->in.size < blocks_step(&job->in))) {
        if (job_cancelled(job))
            return sandbox_error_set(err, S218, "the call was cancelled");
        if (!job_wait_input(job))
            return sandbox_error_set(err, S218, "no data came for %u s", JOB_SILENCE_MS / 1000);
    }
    if (job->input == INPUT_ABORTED)
        return sandbox_error_set(err, S218, "the stream was aborted: %s",
                                 job->input_reason ? job->input_reason : "no memory");
    return 0;
}

/* The other block begins with what is no whole page yet. */
static size_t job_take_input(struct job *job, const uint8_t **ret_data)
{
    const size_t rest = job->input == INPUT_OPEN ? job->in.size % JOB_ALIGN_BYTES : 0;
    const size_t size = job->in.size - rest;

    if (size == 0)
        return 0;
    *ret_data = blocks_filling(&job->in);
    job->in.filling = 1 - job->in.filling;
    memcpy(blocks_filling(&job->in), *ret_data + size, rest);
    job->in.size = rest;
    job_grant(job);
    return size;
}

ssize_t job_receive(struct job *job, const uint8_t **ret_data, struct sandbox_error *err)
{
    ssize_t result;

    (void)pthread_mutex_lock(&job->lock);
    result = job_await_input(job, err);
    if (result == 0)
        result = (ssize_t)job_take_input(job, ret_data);
    (void)pthread_mutex_unlock(&job->lock);
    return result;
}

static int job_queued(struct job *job, int result, struct sandbox_error *err)
{
    if (result < 0)
        return sandbox_error_set(err, S216, "no memory for the answer: %s", strerror(-result));
    loop_notify(job->call.serve->loop, &job->progress);
    return 0;
}

int job_send_head(struct job *job, const struct type *type, const void *value,
                  struct sandbox_error *err)
{
    int result;

    (void)pthread_mutex_lock(&job->lock);
    result = frames_map(&job->out, AGENT_FRAME_HEAD, job->call.id, type, value);
    job->head_sent = result == 0;
    result = job_queued(job, result, err);
    (void)pthread_mutex_unlock(&job->lock);
    return result;
}

/* What is in `file` is on its way. */
static int job_send_file_frames(struct job *job, struct sandbox_error *err)
{
    int result = 0;

    (void)pthread_mutex_lock(&job->lock);
    if (job->out.size == 0) {
        struct buf empty = job->out;

        job->out = job->file;
        job->file = empty;
    } else {
        result = buf_append(&job->out, job->file.data, job->file.size);
        job->file.size = 0;
    }
    result = job_queued(job, result, err);
    (void)pthread_mutex_unlock(&job->lock);
    return result;
}

/* How many bytes may be sent now. -1: the call was cancelled. */
static ssize_t job_file_room(struct job *job, struct sandbox_error *err)
{
    ssize_t result;

    (void)pthread_mutex_lock(&job->lock);
    while (job->out_window == 0 && !job_cancelled(job))
        (void)pthread_cond_wait(&job->changed, &job->lock);
    result = (ssize_t)job->out_window;
    if (job_cancelled(job))
        result = sandbox_error_set(err, S218, "the call was cancelled");
    (void)pthread_mutex_unlock(&job->lock);
    return result;
}

/* Past the page cache, or (again) through it. False: it is so already, or cannot be chosen. */
static bool file_set_direct(int fd, bool direct)
{
    const int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && !(flags & O_DIRECT) == direct &&
           fcntl(fd, F_SETFL, flags ^ O_DIRECT) == 0;
}

/* A file system may refuse to read past the page cache, and does where a buffer is not aligned.
 */
static ssize_t file_read(int fd, void *to, size_t size, int *ret_error)
{
    ssize_t got;

    do
        got = read(fd, to, size);
    while (got < 0 && (errno == EINTR || (errno == EINVAL && file_set_direct(fd, false))));
    *ret_error = got < 0 ? errno : 0;
    return got;
}

static void job_sent(struct job *job, size_t size)
{
    (void)pthread_mutex_lock(&job->lock);
    job->out_window -= size;
    (void)pthread_mutex_unlock(&job->lock);
}

/* A frame of at most ROOM bytes. How many it read, 0 at the end of the file; *ret_error is
 * errno when the file gave one. */
static ssize_t job_read_data(struct job *job, int fd, size_t room, int *ret_error,
                             struct sandbox_error *err)
{
    ssize_t size;
    size_t start;

    if (room > AGENT_DATA_MAX_BYTES)
        room = AGENT_DATA_MAX_BYTES;
    if (agent_frame_data_begin(job->call.id, READ_STREAM, room, &job->file, &start) < 0)
        return job_queued(job, -ENOMEM, err);
    size = file_read(fd, job->file.data + job->file.size, room, ret_error);
    agent_frame_data_finish(&job->file, start, size > 0 ? (size_t)size : 0);
    return size;
}

/* SIZE bytes of the job's pages, in SLOT or, if that fails, in DATA. 0 or -errno. */
static int job_send_pages(struct job *job, int slot, size_t size)
{
    struct mailbox *mailbox = &job->call.serve->mailbox;
    int result = 0;

    if (size >= AGENT_MAILBOX_MIN_BYTES && mailbox_put(mailbox, slot, job->pages, size) == 0)
        return frames_slot(&job->file, job->call.id, READ_STREAM, (unsigned)slot, size);
    mailbox_slot_give(mailbox, slot);
    for (size_t at = 0, part; result == 0 && at < size; at += part) {
        part = size - at < AGENT_DATA_MAX_BYTES ? size - at : AGENT_DATA_MAX_BYTES;
        result = frames_data(&job->file, job->call.id, READ_STREAM, job->pages + at, part);
    }
    return result;
}

/* The same as job_read_data(), of a slot. */
static ssize_t job_read_slot(struct job *job, int fd, size_t room, int slot, int *ret_error,
                             struct sandbox_error *err)
{
    ssize_t size;

    room = room > AGENT_MAILBOX_SLOT_BYTES ? AGENT_MAILBOX_SLOT_BYTES
                                           : room - room % JOB_ALIGN_BYTES;
    size = file_read(fd, job->pages, room, ret_error);
    if (size <= 0)
        mailbox_slot_give(&job->call.serve->mailbox, slot);
    else if (job_send_pages(job, slot, (size_t)size) < 0)
        return job_queued(job, -ENOMEM, err);
    return size;
}

/* A slot to read into, and pages for it. -1: as DATA. */
static int job_slot_take(struct job *job, size_t room)
{
    int slot = room < AGENT_MAILBOX_MIN_BYTES ? -1
                                              : mailbox_slot_take(&job->call.serve->mailbox);

    if (slot < 0 || job->pages)
        return slot;
    job->pages = mmap(NULL, AGENT_MAILBOX_SLOT_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (job->pages != MAP_FAILED)
        return slot;
    job->pages = NULL;
    mailbox_slot_give(&job->call.serve->mailbox, slot);
    return -1;
}

/* LARGE: it has shown to be worth a slot. */
static ssize_t job_read_file(struct job *job, int fd, bool large, int *ret_error,
                             struct sandbox_error *err)
{
    ssize_t size, room = job_file_room(job, err);
    int slot;

    if (room < 0)
        return -1;
    slot = large ? job_slot_take(job, (size_t)room) : -1;
    size = slot < 0 ? job_read_data(job, fd, (size_t)room, ret_error, err)
                    : job_read_slot(job, fd, (size_t)room, slot, ret_error, err);
    if (size > 0)
        job_sent(job, (size_t)size);
    return size;
}

int job_send_file(struct job *job, int fd, int *ret_error, struct sandbox_error *err)
{
    bool large = false;
    ssize_t size;

    *ret_error = 0;
    do {
        size = job_read_file(job, fd, large, ret_error, err);
        if (!large && size == (ssize_t)AGENT_DATA_MAX_BYTES) {
            large = true;
            (void)file_set_direct(fd, mailbox_on(&job->call.serve->mailbox));
        }
        if (job->file.size > 0 && job_send_file_frames(job, err) < 0)
            return -1;
    } while (size > 0);
    return size < 0 ? -1 : 0;
}

/* The last frames. A reply that does not fit becomes an error. The lock is held. */
static void job_answer(struct job *job, int result, const void *reply,
                       struct sandbox_error *err)
{
    const uint64_t id = job->call.id;

    if (job->head_sent)
        (void)frames_end(&job->out, id, READ_STREAM, result < 0 ? err->message : NULL);
    if (result == 0)
        result = frames_map(&job->out, AGENT_FRAME_REPLY, id, job->operation->reply, reply);
    if (result == -EMSGSIZE)
        (void)sandbox_error_set(err, S216, "the answer is larger than a message may be");
    else if (result < 0)
        (void)sandbox_error_set(err, S216, "no memory for the answer");
    if (result < 0)
        (void)frames_error(&job->out, id, err); /* job_flush() sees when there is no frame */
}

static void job_work(void *ctx)
{
    struct job *job = ctx;
    _cleanup_(sandbox_error_done)
    struct sandbox_error err = { 0 };
    const struct type *type = job->operation->reply;
    void *reply = calloc(1, type->size);
    int result = -1;

    if (reply)
        result = fs_operation(job->operation->id)(job, job->request, reply, &err);
    (void)pthread_mutex_lock(&job->lock);
    job_answer(job, result, reply, &err);
    job->done = true;
    loop_notify(job->call.serve->loop, &job->progress); /* afterwards the job may be gone */
    (void)pthread_mutex_unlock(&job->lock);
    if (reply)
        codec_free(type, reply);
    free(reply);
}

static int job_new(struct serve *serve, const struct guest_operation *operation,
                   struct job **ret_job)
{
    struct job *job = calloc(1, sizeof(*job));
    pthread_condattr_t attributes;

    if (!job)
        return -ENOMEM;
    job->call.serve = serve;
    job->operation = operation;
    job->in_window = AGENT_WINDOW_BYTES;
    job->out_window = AGENT_WINDOW_BYTES;
    job->work = (struct work_item){ .fn = job_work, .ctx = job };
    loop_notice_init(&job->progress, job_flush, job);
    (void)pthread_mutex_init(&job->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&job->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    job->request = calloc(1, operation->request->size);
    if (!job->request) {
        job_free(job);
        return -ENOMEM;
    }
    *ret_job = job;
    return 0;
}

int job_begin(struct serve *serve, uint64_t id, const struct guest_operation *operation,
              struct span body)
{
    struct job *job;
    int result = job_new(serve, operation, &job);

    if (result < 0)
        return result;
    result = codec_decode_msgpack(operation->request, (const uint8_t *)body.data, body.size,
                                  job->request);
    if (result < 0) {
        job_free(job);
        return result;
    }
    serve_begin(serve, &job->call, id, &job_ops);
    pace_set(PACE_PROMPT); /* a new thread inherits it */
    if (work_run(&serve->work, &job->work) < 0) {
        struct sandbox_error err = { 0 };

        (void)sandbox_error_set(&err, S216, "%s: no thread can be started", operation->name);
        serve_queued(serve, frames_error(serve_queue(serve), id, &err));
        sandbox_error_done(&err);
        serve_end(serve, &job->call);
        job_free(job);
    }
    return 0;
}
