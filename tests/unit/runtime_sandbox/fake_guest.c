/* fake_guest.c - see fake_guest.h. */
#include "fake_guest.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codec.h"

static void call_free(struct guest_call *call)
{
    const struct type *type = guest_operations[call->operation].request;

    list_remove(&call->node);
    codec_free(type, call->request);
    free(call->request);
    buf_done(&call->input);
    free(call->input_abort);
    free(call);
}

void fake_guest_close(struct fake_guest *guest)
{
    loop_io_free(take_ptr(guest->io));
    closep(&guest->fd);
}

void fake_guest_free(struct fake_guest *guest)
{
    if (!guest)
        return;
    fake_guest_close(guest);
    LIST_FOREACH(node, &guest->calls)
    {
        call_free(LIST_ENTRY(node, struct guest_call, node));
    }
    codec_free(&type_guest_configure, &guest->configure);
    buf_done(&guest->in);
    buf_done(&guest->out);
    free(guest);
}

/* Sending. */

static void flush(struct fake_guest *guest)
{
    ssize_t size = 1;

    while (guest->fd >= 0 && guest->out.size > 0 && size > 0) {
        size = send(guest->fd, guest->out.data, guest->out.size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (size > 0)
            buf_consume(&guest->out, (size_t)size);
    }
    if (guest->fd >= 0)
        (void)loop_io_set_events(guest->io, guest->out.size ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void fake_guest_raw(struct fake_guest *guest, const void *data, size_t size)
{
    ck_assert_int_eq(buf_append(&guest->out, data, size), 0);
    flush(guest);
}

void fake_guest_frame(struct fake_guest *guest, const struct agent_frame *frame)
{
    ck_assert_int_eq(agent_frame_encode(frame, &guest->out), 0);
    flush(guest);
}

void fake_guest_map(struct fake_guest *guest, enum agent_frame_kind kind, uint64_t id,
                    const struct type *type, const void *value)
{
    size_t start;

    ck_assert_int_eq(agent_frame_begin(kind, id, NULL, &guest->out, &start), 0);
    ck_assert_int_eq(codec_encode_msgpack(type, value, &guest->out), 0);
    ck_assert_int_eq(agent_frame_finish(&guest->out, start), 0);
    flush(guest);
}

void fake_guest_hello(struct fake_guest *guest, uint32_t major)
{
    fake_guest_hello_minor(guest, major, 0);
}

void fake_guest_hello_minor(struct fake_guest *guest, uint32_t major, uint32_t minor)
{
    const struct guest_hello hello = { .protocol_major = major,
                                       .protocol_minor = minor,
                                       .agent_version = "1.2.3" };

    fake_guest_map(guest, AGENT_FRAME_HELLO, 0, &type_guest_hello, &hello);
}

void fake_guest_hello_mailbox(struct fake_guest *guest, uint32_t slots, uint32_t slot_bytes)
{
    const struct guest_hello hello = { .protocol_major = 1,
                                       .protocol_minor = 4,
                                       .agent_version = "1.2.3",
                                       .has_mailbox_slots = true,
                                       .mailbox_slots = slots,
                                       .has_mailbox_slot_bytes = true,
                                       .mailbox_slot_bytes = slot_bytes };

    fake_guest_map(guest, AGENT_FRAME_HELLO, 0, &type_guest_hello, &hello);
}

void fake_guest_ready(struct fake_guest *guest)
{
    const struct guest_ready ready = { 0 };

    fake_guest_map(guest, AGENT_FRAME_READY, 0, &type_guest_ready, &ready);
}

/* Receiving. */

static struct guest_call *find_call(struct fake_guest *guest, uint64_t id)
{
    LIST_FOREACH(node, &guest->calls)
    {
        struct guest_call *call = LIST_ENTRY(node, struct guest_call, node);

        if (call->id == id)
            return call;
    }
    return NULL;
}

static void take_call(struct fake_guest *guest, const struct agent_frame *frame)
{
    const struct guest_operation *operation = guest_operation_find(frame->text.data,
                                                                   frame->text.size);
    struct guest_call *call = calloc(1, sizeof(*call));

    ck_assert_ptr_nonnull(operation);
    ck_assert_ptr_null(find_call(guest, frame->id));
    call->id = frame->id;
    call->operation = operation->id;
    call->request = calloc(1, operation->request->size);
    ck_assert_int_eq(codec_decode_msgpack(operation->request, (const uint8_t *)frame->body.data,
                                          frame->body.size, call->request),
                     0);
    list_append(&guest->calls, &call->node);
    if (operation->id == GUEST_poweroff && !guest->ignores_poweroff)
        guest_call_reply(guest, call, &(struct guest_empty){ 0 });
}

static void take_input(struct fake_guest *guest, const struct agent_frame *frame,
                       const void *data, size_t size)
{
    struct guest_call *call = find_call(guest, frame->id);

    ck_assert_ptr_nonnull(call);
    ck_assert_uint_eq(frame->stream, 0);
    ck_assert(!call->input_ended);
    ck_assert_int_eq(buf_append(&call->input, data, size), 0);
    if (!guest->gives_no_credit)
        fake_guest_frame(guest, &(struct agent_frame){ .kind = AGENT_FRAME_CREDIT,
                                                       .id = call->id,
                                                       .credit = size });
}

static void take_slot(struct fake_guest *guest, const struct agent_frame *frame)
{
    static uint8_t bytes[AGENT_MAILBOX_SLOT_BYTES];
    const off_t offset = (off_t)(AGENT_MAILBOX_SLOTS + frame->slot) * AGENT_MAILBOX_SLOT_BYTES;

    guest->slots++;
    ck_assert_int_eq(pread(guest->mailbox_fd, bytes, frame->size, offset), frame->size);
    take_input(guest, frame, bytes, frame->size);
    if (!guest->keeps_slots)
        fake_guest_frame(guest, &(struct agent_frame){ .kind = AGENT_FRAME_RETURN,
                                                       .slots = 1u << frame->slot });
}

static void take_input_end(struct fake_guest *guest, const struct agent_frame *frame)
{
    struct guest_call *call = find_call(guest, frame->id);

    if (!call)
        return; /* crossed our end of the call */
    call->input_ended = true;
    if (frame->text.data)
        call->input_abort = strndup(frame->text.data, frame->text.size);
}

static void take_configure(struct fake_guest *guest, const struct agent_frame *frame)
{
    ck_assert(!guest->configured);
    ck_assert_int_eq(codec_decode_msgpack(&type_guest_configure,
                                          (const uint8_t *)frame->body.data, frame->body.size,
                                          &guest->configure),
                     0);
    guest->configured = true;
    if (!guest->keeps_configured)
        fake_guest_ready(guest);
}

static void take_frame(struct fake_guest *guest, const struct agent_frame *frame)
{
    struct guest_call *call = find_call(guest, frame->id);

    switch (frame->kind) {
    case AGENT_FRAME_CONFIGURE:
        take_configure(guest, frame);
        break;
    case AGENT_FRAME_CALL:
        take_call(guest, frame);
        break;
    case AGENT_FRAME_CANCEL:
        if (call)
            call->cancelled = true;
        break;
    case AGENT_FRAME_DATA:
        take_input(guest, frame, frame->body.data, frame->body.size);
        break;
    case AGENT_FRAME_SLOT:
        take_slot(guest, frame);
        break;
    case AGENT_FRAME_RETURN:
        ck_assert_uint_eq(guest->returned & frame->slots, 0);
        guest->returned |= frame->slots;
        guest->idles += frame->idle;
        break;
    case AGENT_FRAME_CREDIT:
        if (call)
            call->credit[frame->stream] += frame->credit;
        break;
    case AGENT_FRAME_END:
        take_input_end(guest, frame);
        break;
    case AGENT_FRAME_PING:
        guest->pings++;
        if (!guest->silent)
            fake_guest_frame(
                guest, &(struct agent_frame){ .kind = AGENT_FRAME_PONG, .id = frame->id });
        break;
    default:
        ck_assert_int_eq(frame->kind, AGENT_FRAME_PONG);
        guest->pongs++;
        break;
    }
}

static void parse(struct fake_guest *guest)
{
    while (guest->in.size >= AGENT_FRAME_PREFIX_BYTES) {
        size_t size = agent_frame_size(guest->in.data);
        struct agent_frame frame;
        const char *reason = NULL;

        if (guest->in.size - AGENT_FRAME_PREFIX_BYTES < size)
            return;
        ck_assert_msg(agent_frame_decode(guest->in.data + AGENT_FRAME_PREFIX_BYTES, size,
                                         &frame, &reason) == 0,
                      "the host sent %s", reason);
        take_frame(guest, &frame);
        buf_consume(&guest->in, AGENT_FRAME_PREFIX_BYTES + size);
    }
}

static void on_io(void *ctx, uint32_t events)
{
    struct fake_guest *guest = ctx;
    static uint8_t bytes[65536];
    ssize_t size;

    flush(guest);
    size = recv(guest->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (size > 0) {
        ck_assert_int_eq(buf_append(&guest->in, bytes, (size_t)size), 0);
        parse(guest);
    } else if (size == 0 || errno != EAGAIN) {
        fake_guest_close(guest);
    }
}

struct fake_guest *fake_guest_new(struct loop *loop, int *ret_host_fd)
{
    struct fake_guest *guest = calloc(1, sizeof(*guest));
    int fds[2];

    ck_assert_ptr_nonnull(guest);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    guest->loop = loop;
    guest->fd = fds[0];
    guest->mailbox_fd = -1;
    list_init(&guest->calls);
    ck_assert_int_eq(loop_io_new(loop, guest->fd, EPOLLIN, on_io, guest, &guest->io), 0);
    *ret_host_fd = fds[1];
    return guest;
}

/* Calls. */

struct guest_call *fake_guest_has_call(struct fake_guest *guest,
                                       enum guest_operation_id operation)
{
    LIST_FOREACH(node, &guest->calls)
    {
        struct guest_call *call = LIST_ENTRY(node, struct guest_call, node);

        if (call->operation == operation)
            return call;
    }
    return NULL;
}

struct guest_call *fake_guest_call(struct fake_guest *guest, enum guest_operation_id operation)
{
    struct guest_call *call;

    TURN_UNTIL(guest->loop, (call = fake_guest_has_call(guest, operation)));
    return call;
}

void guest_call_data(struct fake_guest *guest, struct guest_call *call, unsigned stream,
                     const void *data, size_t size)
{
    fake_guest_frame(guest, &(struct agent_frame){ .kind = AGENT_FRAME_DATA,
                                                   .id = call->id,
                                                   .stream = stream,
                                                   .body = { .data = data, .size = size } });
}

void guest_call_slot(struct fake_guest *guest, struct guest_call *call, unsigned stream,
                     unsigned slot, const void *data, size_t size)
{
    ck_assert_int_eq(
        pwrite(guest->mailbox_fd, data, size, (off_t)slot * AGENT_MAILBOX_SLOT_BYTES), size);
    fake_guest_frame(guest, &(struct agent_frame){ .kind = AGENT_FRAME_SLOT,
                                                   .id = call->id,
                                                   .stream = stream,
                                                   .slot = slot,
                                                   .size = (uint32_t)size });
}

void guest_call_end(struct fake_guest *guest, struct guest_call *call, unsigned stream,
                    const char *abort_reason)
{
    fake_guest_frame(guest, &(struct agent_frame){ .kind = AGENT_FRAME_END,
                                                   .id = call->id,
                                                   .stream = stream,
                                                   .text = span_of_text(abort_reason) });
}

void guest_call_reply(struct fake_guest *guest, struct guest_call *call, const void *reply)
{
    fake_guest_map(guest, AGENT_FRAME_REPLY, call->id, guest_operations[call->operation].reply,
                   reply);
    call_free(call);
}

void guest_call_error(struct fake_guest *guest, struct guest_call *call, const char *code,
                      const char *message, bool fix_parents)
{
    const struct guest_error error = { .code = (char *)code,
                                       .message = (char *)message,
                                       .fix_parents = fix_parents };

    fake_guest_map(guest, AGENT_FRAME_ERROR, call->id, &type_guest_error, &error);
    call_free(call);
}

void guest_call_exit(struct fake_guest *guest, struct guest_call *call, int32_t exit_code)
{
    guest_call_end(guest, call, 1, NULL);
    guest_call_end(guest, call, 2, NULL);
    guest_call_reply(guest, call, &(struct guest_exec_reply){ .exit_code = exit_code });
}
