/* What a guest may send, whatever it is, over a link with calls in flight: each call ends
 * exactly once, nothing comes after the end. The first byte tells how far the greeting is and
 * where the rest is torn in two. */
#include <stdlib.h>
#include <sys/socket.h>

#include "agent_frame.h"
#include "agent_link.h"
#include "codec.h"
#include "mailbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX (128u * 1024)

struct call {
    struct agent_call *call;
    unsigned ended;
};

struct stage {
    struct loop *loop;
    struct agent_link *link;
    int guest_fd;
    bool greeted;
    bool ready;
    bool closed;
    struct call calls[3];
};

static void need(bool condition)
{
    if (!condition)
        abort();
}

static void on_greeted(void *ctx, const struct guest_hello *hello)
{
    struct stage *stage = ctx;
    const struct guest_configure configure = { .seed = "", .hostname = "", .machine_id = "" };

    need(!stage->greeted && !stage->closed);
    stage->greeted = true;
    agent_link_configure(stage->link, &configure);
}

static void on_ready(void *ctx)
{
    struct stage *stage = ctx;

    need(stage->greeted && !stage->ready && !stage->closed);
    stage->ready = true;
}

static void on_nothing(void *ctx)
{
}

static void on_closed(void *ctx, const char *reason)
{
    struct stage *stage = ctx;

    need(!stage->closed && reason[0]);
    for (unsigned i = 0; i < 3; i++)
        need(!stage->calls[i].call);
    stage->closed = true;
}

static void on_data(void *ctx, unsigned stream, const uint8_t *data, size_t size)
{
    struct call *call = ctx;

    need(call->call && size > 0 && size <= AGENT_MAILBOX_SLOT_BYTES);
    agent_call_grant(call->call, stream, size);
}

static void on_ended(void *ctx, const void *reply, struct sandbox_error *err, bool lost)
{
    struct call *call = ctx;

    need(call->ended++ == 0 && (reply != NULL) != (err != NULL));
    call->call = NULL;
}

static void turn(struct stage *stage)
{
    for (unsigned i = 0; i < 4; i++)
        need(loop_turn(stage->loop, 0) == 0);
}

static void feed(struct stage *stage, const uint8_t *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(stage->guest_fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);

        turn(stage);
        if (stage->closed)
            return;
        if (sent > 0) {
            data += sent;
            size -= (size_t)sent;
        }
    }
}

static void feed_map(struct stage *stage, enum agent_frame_kind kind, const struct type *type,
                     const void *value)
{
    struct buf frame = { 0 };
    size_t start;

    need(agent_frame_begin(kind, 0, NULL, &frame, &start) == 0);
    need(codec_encode_msgpack(type, value, &frame) == 0);
    need(agent_frame_finish(&frame, start) == 0);
    feed(stage, frame.data, frame.size);
    buf_done(&frame);
}

static void begin_calls(struct stage *stage)
{
    static const struct agent_call_events events = { .data = on_data, .ended = on_ended };
    char *words[] = { "a" };
    const struct guest_exec exec = { .argv = { 1, words }, .has_stdin = true };
    const struct fs_read_request read = { .sandbox_id = "", .path = "/" };
    const struct fs_write_request write = { .sandbox_id = "", .path = "/", .mode = "0" };
    static const enum guest_operation_id operations[] = { GUEST_exec, GUEST_fs_read,
                                                          GUEST_fs_write };
    const void *const requests[] = { &exec, &read, &write };
    struct sandbox_error err = { 0 };

    for (unsigned i = 0; i < 3; i++)
        need(agent_call(stage->link, operations[i], requests[i], &events, &stage->calls[i],
                        &stage->calls[i].call, &err) == 0);
}

/* As far as the input's first byte wants it. */
static void greet(struct stage *stage, uint8_t how_far)
{
    const struct guest_hello hello = { .protocol_major = 1,
                                       .agent_version = "",
                                       .has_mailbox_slots = true,
                                       .mailbox_slots = AGENT_MAILBOX_SLOTS,
                                       .has_mailbox_slot_bytes = true,
                                       .mailbox_slot_bytes = AGENT_MAILBOX_SLOT_BYTES };

    if (how_far == 0)
        return;
    feed_map(stage, AGENT_FRAME_HELLO, &type_guest_hello, &hello);
    if (how_far == 1)
        return;
    feed_map(stage, AGENT_FRAME_READY, &type_guest_ready, &(struct guest_ready){ 0 });
    need(stage->ready);
    begin_calls(stage);
}

static void stage_open(struct stage *stage)
{
    static const struct agent_link_events events = { .greeted = on_greeted,
                                                     .ready = on_ready,
                                                     .silent = on_nothing,
                                                     .awake = on_nothing,
                                                     .closed = on_closed };
    int fds[2];

    need(loop_new(&stage->loop) == 0);
    need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    stage->guest_fd = fds[0];
    need(agent_link_new(stage->loop, fds[1], &events, stage, &stage->link) == 0);
    agent_link_set_mailbox(stage->link, mailbox_memory_new());
}

static void stage_close(struct stage *stage)
{
    agent_link_free(stage->link);
    for (unsigned i = 0; i < 3; i++)
        need(!stage->calls[i].call);
    closep(&stage->guest_fd);
    loop_free(stage->loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stage stage = { 0 };
    size_t first;

    if (size < 1 || size > INPUT_MAX)
        return 0;
    stage_open(&stage);
    greet(&stage, data[0] % 4);
    first = (size - 1) * (data[0] / 4) / 64;
    feed(&stage, data + 1, first);
    if (!stage.closed)
        feed(&stage, data + 1 + first, size - 1 - first);
    stage_close(&stage);
    return 0;
}
