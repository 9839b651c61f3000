/* serve.c - see serve.h. */
#include "serve.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "configure.h"
#include "exec.h"
#include "frames.h"
#include "job.h"
#include "log.h"

#define FINISH_TIMEOUT_MS 100

static void serve_set_state(struct serve *serve, enum serve_state state)
{
    static const char *const names[] = { "greeting", "rehearsing", "ready", "over" };
    _Static_assert(ARRAY_SIZE(names) == SERVE_STATE_MAX, "a name for each state");

    assert(state > serve->state);
    /* The console costs a clone some of its first milliseconds. */
    log_event(state == SERVE_OVER ? LOG_INFO : LOG_DEBUG, "serve_state",
              log_text("from", names[serve->state]), log_text("to", names[state]));
    serve->state = state;
}

static void serve_stop(struct serve *serve, int code)
{
    if (serve->state == SERVE_OVER)
        return;
    serve_set_state(serve, SERVE_OVER);
    loop_stop(serve->loop, code);
}

struct buf *serve_queue(struct serve *serve)
{
    return link_queue(serve->link);
}

int serve_append(struct serve *serve, struct buf *frames)
{
    return link_append(serve->link, frames);
}

bool serve_full(struct serve *serve)
{
    return link_full(serve->link);
}

void serve_queued(struct serve *serve, int result)
{
    if (result < 0) {
        log_event(LOG_ERROR, "frame_not_queued", log_text("error", strerror(-result)));
        serve_stop(serve, 1);
        return;
    }
    link_flush(serve->link);
}

void serve_send(struct serve *serve)
{
    link_finish(serve->link,
                0); /* the rest goes in the next turn; where it is gone, we are over */
}

static void serve_send_error(struct serve *serve, uint64_t id, struct sandbox_error *err)
{
    serve_queued(serve, frames_error(serve_queue(serve), id, err));
    sandbox_error_done(err);
}

/* Calls. */

void serve_begin(struct serve *serve, struct call *call, uint64_t id,
                 const struct call_ops *ops)
{
    *call = (struct call){ .id = id, .ops = ops, .serve = serve };
    list_append(&serve->list, &call->node);
    if (table_put(serve->calls, id, call) < 0)
        serve_stop(serve, 1);
}

void serve_end(struct serve *serve, struct call *call)
{
    (void)table_remove(serve->calls, call->id);
    list_remove(&call->node);
}

/* Powers off when the answer is on its way. */
static void serve_poweroff(struct serve *serve, uint64_t id)
{
    const struct guest_empty reply = { 0 };

    serve_queued(serve, frames_map(serve_queue(serve), AGENT_FRAME_REPLY, id, &type_guest_empty,
                                   &reply));
    link_finish(serve->link, FINISH_TIMEOUT_MS);
    serve_stop(serve, 0);
}

static int serve_refuse(struct serve *serve, const struct agent_frame *frame,
                        enum sandbox_code code, const char *text)
{
    struct sandbox_error err = { 0 };

    (void)sandbox_error_set(&err, code, "%.*s: %s", (int)(frame->text.size % 128),
                            frame->text.data, text);
    serve_send_error(serve, frame->id, &err);
    return 0;
}

static int serve_exec(struct serve *serve, const struct agent_frame *frame)
{
    struct guest_exec request;

    if (codec_decode_msgpack(&type_guest_exec, (const uint8_t *)frame->body.data,
                             frame->body.size, &request) < 0)
        return -EPROTO;
    exec_begin(serve, frame->id, &request);
    codec_free(&type_guest_exec, &request);
    return 0;
}

/* Answers at once. */
static int serve_nothing(struct serve *serve, const struct agent_frame *frame)
{
    const struct guest_empty reply = { 0 };

    serve_queued(serve, frames_map(serve_queue(serve), AGENT_FRAME_REPLY, frame->id,
                                   &type_guest_empty, &reply));
    return 0;
}

/* Of an exec that is over by now the signal is dropped. */
static int serve_signal(struct serve *serve, const struct agent_frame *frame)
{
    struct guest_signal request;
    struct call *call;

    if (codec_decode_msgpack(&type_guest_signal, (const uint8_t *)frame->body.data,
                             frame->body.size, &request) < 0)
        return -EPROTO;
    call = table_get(serve->calls, request.call);
    if (call && !exec_signal(call, (int)request.number))
        return serve_refuse(serve, frame, S216, "the call is no exec");
    return serve_nothing(serve, frame);
}

static int serve_call(struct serve *serve, const struct agent_frame *frame)
{
    const struct guest_operation *operation = guest_operation_find(frame->text.data,
                                                                   frame->text.size);

    if (table_get(serve->calls, frame->id))
        return -EPROTO;
    if (!operation)
        return serve_refuse(serve, frame, S219, "this supervisor does not support it");
    if (table_count(serve->calls) == SERVE_CALLS_MAX)
        return serve_refuse(serve, frame, operation->id == GUEST_exec ? S300 : S216,
                            "too many calls at once in this sandbox (1024)");
    if (operation->id == GUEST_exec)
        return serve_exec(serve, frame);
    if (operation->id == GUEST_sync && !serve->machine)
        return serve_nothing(serve, frame); /* whoever made the container owns its disk */
    if (operation->id == GUEST_signal)
        return serve_signal(serve, frame);
    if (operation->id == GUEST_poweroff) {
        serve_poweroff(serve, frame->id);
        return 0;
    }
    return job_begin(serve, frame->id, operation, frame->body);
}

/* The mailbox. */

void serve_return_slots(struct serve *serve, bool force)
{
    const uint32_t slots = mailbox_take_owed(&serve->mailbox, force);

    if (slots != 0)
        serve_queued(serve, frames_return(serve_queue(serve), slots));
}

static int serve_slot(struct serve *serve, const struct agent_frame *frame)
{
    struct call *call = table_get(serve->calls, frame->id);
    int result = mailbox_claim(&serve->mailbox, frame->slot);

    if (result == 0 && call)
        result = call->ops->slot(call, frame->stream, frame->slot, frame->size);
    serve_return_slots(serve, false);
    return result;
}

static int serve_return(struct serve *serve, const struct agent_frame *frame)
{
    int result = mailbox_returned(&serve->mailbox, frame->slots, frame->idle);

    if (frame->idle)
        serve_return_slots(serve, true);
    return result;
}

/* Frames of a call that is over crossed its REPLY on the way and are dropped. */
static int serve_call_frame(struct serve *serve, const struct agent_frame *frame)
{
    struct call *call = table_get(serve->calls, frame->id);

    if (!call)
        return 0;
    switch (frame->kind) {
    case AGENT_FRAME_DATA:
        return call->ops->data(call, frame->stream, frame->body);
    case AGENT_FRAME_END:
        return call->ops->end(call, frame->stream, frame->text);
    case AGENT_FRAME_CREDIT:
        return call->ops->credit(call, frame->stream, frame->credit);
    default:
        call->ops->cancel(call);
        return 0;
    }
}

static bool serve_takes_calls(const struct serve *serve)
{
    return serve->state == SERVE_REHEARSING || serve->state == SERVE_READY;
}

/* CONFIGURE. */

/* Calls of a rehearsal are over before a user comes. */
static bool serve_awaits_configure(const struct serve *serve)
{
    return serve->state == SERVE_GREETING ||
           (serve->state == SERVE_REHEARSING && table_count(serve->calls) == 0);
}

static int64_t monotonic_ns(void)
{
    struct timespec now = { 0 };

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* What the last CONFIGURE has left to do, if anything. */
static void serve_carry_out(struct serve *serve)
{
    if (!serve->owes)
        return;
    serve->owes = false;
    if (serve->configure.realtime_ns > 0)
        serve->configure.realtime_ns += monotonic_ns() - serve->configured_ns;
    configure_apply(&serve->configure, serve->machine);
    codec_free(&type_guest_configure, &serve->configure);
}

/* The answer goes out first. What a create need not wait for is put off until the host says
 * anything else: whoever starts many machines says it when no other one is waited for. A
 * rehearsal is there to do it. */
static int serve_configure(struct serve *serve, const struct agent_frame *frame)
{
    const struct guest_ready ready = { 0 };
    struct guest_configure *configure = &serve->configure;

    if (codec_decode_msgpack(&type_guest_configure, (const uint8_t *)frame->body.data,
                             frame->body.size, configure) < 0)
        return -EPROTO;
    serve->owes = true;
    serve->configured_ns = monotonic_ns();
    text_list_done(&serve->environment);
    serve->environment = configure->env;
    configure->env = (struct text_list){ 0 };
    if (configure->workdir && *configure->workdir) {
        free(serve->workdir);
        serve->workdir = take_ptr(configure->workdir);
    }
    serve_queued(serve, frames_map(serve_queue(serve), AGENT_FRAME_READY, frame->id,
                                   &type_guest_ready, &ready));
    serve_send(serve);
    if (serve->state < SERVE_READY && !configure->rehearsal)
        serve_set_state(serve, SERVE_READY);
    else if (serve->state == SERVE_GREETING)
        serve_set_state(serve, SERVE_REHEARSING);
    mailbox_turn(&serve->mailbox, configure->mailbox);
    if (configure->rehearsal)
        serve_carry_out(serve);
    return 0;
}

static int serve_frame(void *ctx, const struct agent_frame *frame)
{
    struct serve *serve = ctx;

    serve_carry_out(serve);
    switch (frame->kind) {
    case AGENT_FRAME_PING:
        serve_queued(serve, frames_pong(serve_queue(serve), frame->id));
        return 0;
    case AGENT_FRAME_PONG:
        return 0;
    case AGENT_FRAME_CONFIGURE:
        return serve_awaits_configure(serve) ? serve_configure(serve, frame) : -EPROTO;
    case AGENT_FRAME_CALL:
        return serve_takes_calls(serve) ? serve_call(serve, frame) : -EPROTO;
    case AGENT_FRAME_CANCEL:
    case AGENT_FRAME_DATA:
    case AGENT_FRAME_CREDIT:
    case AGENT_FRAME_END:
        return serve_takes_calls(serve) ? serve_call_frame(serve, frame) : -EPROTO;
    case AGENT_FRAME_SLOT:
        return serve_takes_calls(serve) ? serve_slot(serve, frame) : -EPROTO;
    case AGENT_FRAME_RETURN:
        return serve_takes_calls(serve) ? serve_return(serve, frame) : -EPROTO;
    default:
        return -EPROTO; /* only the agent sends these */
    }
}

static void serve_drained(void *ctx)
{
    struct serve *serve = ctx;

    LIST_FOREACH(node, &serve->list)
    {
        struct call *call = LIST_ENTRY(node, struct call, node);

        call->ops->resume(call);
    }
}

static void serve_closed(void *ctx, const char *reason)
{
    log_event(LOG_INFO, "channel_closed", log_text("reason", reason));
    serve_stop(ctx, 0);
}

static const struct link_events serve_link_events = {
    .frame = serve_frame,
    .drained = serve_drained,
    .closed = serve_closed,
};

static void serve_hello(struct serve *serve)
{
    char *names[GUEST_MAX];
    const struct guest_hello hello = {
        .has_protocol_major = true,
        .protocol_major = AGENT_PROTOCOL_MAJOR,
        .has_protocol_minor = true,
        .protocol_minor = AGENT_PROTOCOL_MINOR,
        .has_agent_version = true,
        .agent_version = (char *)(uintptr_t)SANDBOX_VERSION,
        .has_operations = true,
        .operations = { .count = GUEST_MAX, .items = names },
        .has_mailbox_slots = serve->mailbox.fd >= 0,
        .mailbox_slots = AGENT_MAILBOX_SLOTS,
        .has_mailbox_slot_bytes = serve->mailbox.fd >= 0,
        .mailbox_slot_bytes = AGENT_MAILBOX_SLOT_BYTES,
    };

    for (int i = 0; i < GUEST_MAX; i++)
        names[i] = (char *)(uintptr_t)guest_operations[i].name;
    serve_queued(
        serve, frames_map(serve_queue(serve), AGENT_FRAME_HELLO, 0, &type_guest_hello, &hello));
}

int serve_init(struct serve *serve, struct loop *loop, struct serve_fds own_fds,
               struct trees *trees, bool machine)
{
    _cleanup_close_ int fd = own_fds.channel;
    int result;

    *serve = (struct serve){
        .loop = loop,
        .trees = trees,
        .machine = machine,
        .workdir = strdup("/"),
        .null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
    };
    mailbox_init(&serve->mailbox, own_fds.mailbox);
    list_init(&serve->list);
    if (serve->null_fd < 0)
        return -errno;
    if (!serve->workdir)
        return -ENOMEM;
    result = work_init(&serve->work);
    if (result == 0)
        result = table_new(&serve->calls);
    if (result == 0)
        result = link_new(loop, take_fd(&fd), &serve_link_events, serve, &serve->link);
    if (result == 0)
        serve_hello(serve);
    return result;
}
