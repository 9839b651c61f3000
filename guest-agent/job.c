/* job.c - see job.h. */
#include "job.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "frames.h"
#include "fs.h"

#define WRITE_STREAM 0u
#define READ_STREAM 1u
#define CREDIT_STEP_BYTES (64u * 1024)

/* How the host ended the stream of a fs::write. */
enum job_input { INPUT_OPEN, INPUT_ENDED, INPUT_ABORTED };

struct job {
    struct call call;
    const struct guest_operation *operation;
    void *request; /* struct of the operation's request type */
    struct work_item work;
    struct loop_notice progress; /* thread -> loop: look at `out` and `done` */
    atomic_bool cancelled;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    struct buf out; /* frames to be sent */
    bool done;      /* the last frame is in `out`, the thread is through */
    struct buf in;  /* bytes of the host that the thread did not take yet */
    enum job_input input;
    char *input_reason;
    uint64_t in_window;  /* what the host may still send */
    uint64_t in_taken;   /* since the last CREDIT */
    uint64_t out_window; /* what the thread may still send */
    bool head_sent;      /* a stream was begun: it has to be ended */
};

static struct job *job_of(struct call *call)
{
    return CONTAINER_OF(call, struct job, call);
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
    buf_done(&job->in);
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
    struct buf out;
    bool done;

    if (serve_full(serve))
        return; /* job_resume() comes */
    (void)pthread_mutex_lock(&job->lock);
    out = job->out;
    job->out = (struct buf){ 0 };
    done = job->done;
    (void)pthread_mutex_unlock(&job->lock);
    if (out.size > 0)
        serve_queued(serve, buf_append(serve_queue(serve), out.data, out.size));
    else if (done)
        serve_queued(serve, -ENOMEM); /* the answer cannot be told */
    buf_done(&out);
    if (!done)
        return;
    serve_end(serve, &job->call);
    job_free(job);
}

static int job_take_data(struct job *job, struct span bytes)
{
    if (job->input != INPUT_OPEN || bytes.size > job->in_window)
        return -EPROTO;
    job->in_window -= bytes.size;
    return buf_append(&job->in, bytes.data, bytes.size);
}

static int job_data(struct call *call, unsigned stream, struct span bytes)
{
    struct job *job = job_of(call);
    int result;

    if (stream != WRITE_STREAM || job->operation->id != GUEST_fs_write)
        return -EPROTO;
    (void)pthread_mutex_lock(&job->lock);
    result = job_take_data(job, bytes);
    (void)pthread_cond_signal(&job->changed);
    (void)pthread_mutex_unlock(&job->lock);
    return result;
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
    if (size <= AGENT_WINDOW_BYTES && job->out_window + size <= AGENT_WINDOW_BYTES) {
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

/* The lock is held. False: the time is up. */
static bool job_wait(struct job *job, const struct timespec *until)
{
    if (!until)
        return pthread_cond_wait(&job->changed, &job->lock) == 0;
    return pthread_cond_timedwait(&job->changed, &job->lock, until) != ETIMEDOUT;
}

/* Waits until there is something to take. -1: there will be nothing. The lock is held. */
static int job_await_input(struct job *job, struct sandbox_error *err)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += JOB_SILENCE_MS / 1000;
    while (job->in.size == 0 && job->input == INPUT_OPEN) {
        if (job_cancelled(job))
            return sandbox_error_set(err, S218, "the call was cancelled");
        if (!job_wait(job, &until))
            return sandbox_error_set(err, S218, "no data came for %u s", JOB_SILENCE_MS / 1000);
    }
    if (job->input == INPUT_ABORTED)
        return sandbox_error_set(err, S218, "the stream was aborted: %s",
                                 job->input_reason ? job->input_reason : "no memory");
    return 0;
}

static size_t job_take_input(struct job *job, void *ret_data, size_t size)
{
    if (size > job->in.size)
        size = job->in.size;
    if (size == 0)
        return 0;
    memcpy(ret_data, job->in.data, size);
    buf_consume(&job->in, size);
    job->in_taken += size;
    if (job->in_taken >= CREDIT_STEP_BYTES && job->input == INPUT_OPEN &&
        frames_credit(&job->out, job->call.id, WRITE_STREAM, job->in_taken) == 0) {
        job->in_window += job->in_taken;
        job->in_taken = 0;
        loop_notify(job->call.serve->loop, &job->progress);
    }
    return size;
}

ssize_t job_receive(struct job *job, void *ret_data, size_t size, struct sandbox_error *err)
{
    ssize_t result;

    (void)pthread_mutex_lock(&job->lock);
    result = job_await_input(job, err);
    if (result == 0)
        result = (ssize_t)job_take_input(job, ret_data, size);
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

/* As much of it as the window allows. The lock is held. */
static int job_send_some(struct job *job, const uint8_t *data, size_t size, size_t *ret_sent,
                         struct sandbox_error *err)
{
    while (job->out_window == 0 && !job_cancelled(job))
        (void)job_wait(job, NULL);
    if (job_cancelled(job))
        return sandbox_error_set(err, S218, "the call was cancelled");
    if (size > job->out_window)
        size = (size_t)job->out_window;
    if (size > AGENT_DATA_MAX_BYTES)
        size = AGENT_DATA_MAX_BYTES;
    job->out_window -= size;
    *ret_sent = size;
    return job_queued(job, frames_data(&job->out, job->call.id, READ_STREAM, data, size), err);
}

int job_send(struct job *job, const void *data, size_t size, struct sandbox_error *err)
{
    const uint8_t *at = data;
    int result = 0;

    (void)pthread_mutex_lock(&job->lock);
    while (result == 0 && size > 0) {
        size_t sent = 0;

        result = job_send_some(job, at, size, &sent, err);
        at += sent;
        size -= sent;
    }
    (void)pthread_mutex_unlock(&job->lock);
    return result;
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
