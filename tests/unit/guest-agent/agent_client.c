/* agent_client.c - see agent_client.h. */
#include "agent_client.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec.h"

#define TIMEOUT_MS 20000

static void client_exec_mailbox(const char *program, const char *number, int mailbox_fd)
{
    char mailbox[16];

    (void)snprintf(mailbox, sizeof(mailbox), "%d", mailbox_fd);
    (void)fcntl(mailbox_fd, F_SETFD, 0);
    execl(program, program, "--fd", number, "--mailbox-fd", mailbox, NULL);
}

static void client_exec(int fd, int cgroup_fd, int mailbox_fd)
{
    const char *folder = getenv("SANDBOX_BIN");
    char program[4096], number[16], cgroup[16];

    (void)snprintf(program, sizeof(program), "%s/sandbox-guest-agent", folder ? folder : "bin");
    (void)snprintf(number, sizeof(number), "%d", fd);
    (void)snprintf(cgroup, sizeof(cgroup), "%d", cgroup_fd);
    (void)fcntl(fd, F_SETFD, 0);
    if (mailbox_fd >= 0) {
        client_exec_mailbox(program, number, mailbox_fd);
    } else if (cgroup_fd >= 0) {
        (void)fcntl(cgroup_fd, F_SETFD, 0);
        execl(program, program, "--fd", number, "--cgroup-fd", cgroup, NULL);
    } else {
        execl(program, program, "--fd", number, NULL);
    }
    _exit(127);
}

static void client_hello(struct agent_client *client)
{
    struct agent_frame frame;

    ck_assert(agent_client_receive(client, &frame, TIMEOUT_MS));
    ck_assert_int_eq(frame.kind, AGENT_FRAME_HELLO);
}

static void client_start(struct agent_client *client, int cgroup_fd, int mailbox_fd)
{
    int pair[2];

    *client = (struct agent_client){ .next_id = 1, .mailbox_fd = mailbox_fd };
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    client->pid = fork();
    ck_assert_int_ge(client->pid, 0);
    if (client->pid == 0)
        client_exec(pair[1], cgroup_fd, mailbox_fd);
    (void)close(pair[1]);
    client->fd = pair[0];
    client_hello(client);
}

void agent_client_start(struct agent_client *client, int cgroup_fd)
{
    client_start(client, cgroup_fd, -1);
}

static void client_configure(struct agent_client *client, const char *variable, bool rehearsal,
                             bool mailbox)
{
    char *env[] = { (char *)(uintptr_t)variable };
    const struct guest_configure configure = {
        .has_env = true,
        .env = { .count = variable ? 1 : 0, .items = env },
        .has_rehearsal = rehearsal,
        .rehearsal = rehearsal,
        .has_mailbox = mailbox,
        .mailbox = mailbox,
        .has_realtime_ns = true,
        .seed = (char *)(uintptr_t) "",
        .has_seed = true,
        .hostname = (char *)(uintptr_t) "",
        .has_hostname = true,
        .machine_id = (char *)(uintptr_t) "",
        .has_machine_id = true,
    };
    struct buf out = { 0 };
    struct agent_frame frame;
    size_t start;

    ck_assert_int_eq(agent_frame_begin(AGENT_FRAME_CONFIGURE, 0, NULL, &out, &start), 0);
    ck_assert_int_eq(codec_encode_msgpack(&type_guest_configure, &configure, &out), 0);
    ck_assert_int_eq(agent_frame_finish(&out, start), 0);
    agent_client_send_raw(client, out.data, out.size);
    buf_done(&out);
    ck_assert(agent_client_receive(client, &frame, TIMEOUT_MS));
    ck_assert_int_eq(frame.kind, AGENT_FRAME_READY);
}

void agent_client_configure(struct agent_client *client, const char *variable, bool rehearsal)
{
    client_configure(client, variable, rehearsal, false);
}

void agent_client_start_mailbox(struct agent_client *client, bool allowed)
{
    int fd = memfd_create("mailbox", MFD_CLOEXEC);

    ck_assert_int_eq(ftruncate(fd, AGENT_MAILBOX_BYTES), 0);
    client_start(client, -1, fd);
    client_configure(client, NULL, false, allowed);
}

void agent_client_greet(struct agent_client *client)
{
    client_hello(client);
    agent_client_configure(client, NULL, false);
}

void agent_client_start_ready(struct agent_client *client, int cgroup_fd)
{
    agent_client_start(client, cgroup_fd);
    agent_client_configure(client, NULL, false);
}

void agent_client_stop(struct agent_client *client)
{
    int status;

    (void)close(client->fd);
    if (client->mailbox_fd >= 0)
        (void)close(client->mailbox_fd);
    ck_assert_int_eq(waitpid(client->pid, &status, 0), client->pid);
    ck_assert_int_eq(status, 0);
    buf_done(&client->in);
}

void agent_client_send_raw(struct agent_client *client, const void *data, size_t size)
{
    const char *at = data;

    while (size > 0) {
        ssize_t sent = send(client->fd, at, size, MSG_NOSIGNAL);

        ck_assert_int_gt(sent, 0);
        at += sent;
        size -= (size_t)sent;
    }
}

void agent_client_send(struct agent_client *client, const struct agent_frame *frame)
{
    struct buf out = { 0 };

    ck_assert_int_eq(agent_frame_encode(frame, &out), 0);
    agent_client_send_raw(client, out.data, out.size);
    buf_done(&out);
}

void agent_client_data(struct agent_client *client, uint64_t id, unsigned stream,
                       const void *data, size_t size)
{
    agent_client_send(client, &(struct agent_frame){
                                  .kind = AGENT_FRAME_DATA,
                                  .id = id,
                                  .stream = stream,
                                  .body = { .data = data, .size = size },
                              });
}

void agent_client_slot(struct agent_client *client, uint64_t id, unsigned stream, unsigned slot,
                       const void *data, size_t size)
{
    const off_t offset = (off_t)(AGENT_MAILBOX_SLOTS + slot) * AGENT_MAILBOX_SLOT_BYTES;

    ck_assert_int_eq(pwrite(client->mailbox_fd, data, size, offset), size);
    agent_client_send(client, &(struct agent_frame){ .kind = AGENT_FRAME_SLOT,
                                                     .id = id,
                                                     .stream = stream,
                                                     .slot = slot,
                                                     .size = (uint32_t)size });
}

void agent_client_end(struct agent_client *client, uint64_t id, unsigned stream,
                      const char *reason)
{
    agent_client_send(client, &(struct agent_frame){
                                  .kind = AGENT_FRAME_END,
                                  .id = id,
                                  .stream = stream,
                                  .text = span_of_text(reason),
                              });
}

void agent_client_cancel(struct agent_client *client, uint64_t id)
{
    agent_client_send(client, &(struct agent_frame){ .kind = AGENT_FRAME_CANCEL, .id = id });
}

uint64_t agent_client_call(struct agent_client *client, const char *operation,
                           const struct type *type, const void *request)
{
    struct buf out = { 0 };
    size_t start;

    ck_assert_int_eq(
        agent_frame_begin(AGENT_FRAME_CALL, client->next_id, operation, &out, &start), 0);
    ck_assert_int_eq(codec_encode_msgpack(type, request, &out), 0);
    ck_assert_int_eq(agent_frame_finish(&out, start), 0);
    agent_client_send_raw(client, out.data, out.size);
    buf_done(&out);
    return client->next_id++;
}

/* The whole frame at the front, if there is one. */
static bool client_next(struct agent_client *client, struct agent_frame *ret_frame)
{
    const char *reason;
    size_t size;

    if (client->in.size < AGENT_FRAME_PREFIX_BYTES)
        return false;
    size = agent_frame_size(client->in.data);
    if (client->in.size < AGENT_FRAME_PREFIX_BYTES + size)
        return false;
    ck_assert_msg(agent_frame_decode(client->in.data + AGENT_FRAME_PREFIX_BYTES, size,
                                     ret_frame, &reason) == 0,
                  "malformed frame");
    return true;
}

bool agent_client_receive(struct agent_client *client, struct agent_frame *ret_frame,
                          int timeout_ms)
{
    buf_consume(&client->in, client->handed_out);
    client->handed_out = 0;
    while (!client_next(client, ret_frame)) {
        struct pollfd source = { .fd = client->fd, .events = POLLIN };
        uint8_t *room = buf_reserve(&client->in, 256 * 1024);
        ssize_t size;

        ck_assert_ptr_nonnull(room);
        ck_assert_msg(poll(&source, 1, timeout_ms) == 1, "the agent is silent");
        size = read(client->fd, room, 256 * 1024);
        if (size <= 0)
            return false;
        client->in.size += (size_t)size;
    }
    client->handed_out = AGENT_FRAME_PREFIX_BYTES + agent_frame_size(client->in.data);
    return true;
}

bool agent_client_silent(struct agent_client *client, int wait_ms)
{
    struct pollfd source = { .fd = client->fd, .events = POLLIN };

    return client->in.size == client->handed_out && poll(&source, 1, wait_ms) == 0;
}

static void answer_error(struct agent_answer *answer, const struct agent_frame *frame)
{
    struct guest_error error;

    ck_assert_int_eq(codec_decode_msgpack(&type_guest_error, (const uint8_t *)frame->body.data,
                                          frame->body.size, &error),
                     0);
    (void)snprintf(answer->code, sizeof(answer->code), "%s", error.code);
    (void)snprintf(answer->message, sizeof(answer->message), "%s", error.message);
    answer->fix_parents = error.fix_parents;
    codec_free(&type_guest_error, &error);
}

static void answer_bytes(struct agent_client *client, struct agent_answer *answer,
                         const struct agent_frame *frame, const void *data, size_t size)
{
    ck_assert(!answer->ended[frame->stream]);
    ck_assert_int_eq(buf_append(&answer->streams[frame->stream], data, size), 0);
    agent_client_send(client, &(struct agent_frame){
                                  .kind = AGENT_FRAME_CREDIT,
                                  .id = frame->id,
                                  .stream = frame->stream,
                                  .credit = size,
                              });
}

static void answer_slot(struct agent_client *client, struct agent_answer *answer,
                        const struct agent_frame *frame)
{
    static uint8_t bytes[AGENT_MAILBOX_SLOT_BYTES];

    client->slots++;
    ck_assert_int_eq(pread(client->mailbox_fd, bytes, frame->size,
                           (off_t)frame->slot * AGENT_MAILBOX_SLOT_BYTES),
                     frame->size);
    agent_client_send(client, &(struct agent_frame){ .kind = AGENT_FRAME_RETURN,
                                                     .slots = 1u << frame->slot });
    answer_bytes(client, answer, frame, bytes, frame->size);
}

/* True: the call is over. */
static bool answer_take(struct agent_client *client, struct agent_answer *answer,
                        const struct agent_frame *frame)
{
    switch (frame->kind) {
    case AGENT_FRAME_DATA:
        answer_bytes(client, answer, frame, frame->body.data, frame->body.size);
        return false;
    case AGENT_FRAME_SLOT:
        answer_slot(client, answer, frame);
        return false;
    case AGENT_FRAME_RETURN:
        client->returned |= frame->slots;
        return false;
    case AGENT_FRAME_END:
        ck_assert(!answer->ended[frame->stream]);
        answer->ended[frame->stream] = true;
        return false;
    case AGENT_FRAME_CREDIT:
        return false;
    case AGENT_FRAME_HEAD:
        ck_assert_int_eq(buf_append(&answer->head, frame->body.data, frame->body.size), 0);
        return false;
    case AGENT_FRAME_ERROR:
        answer_error(answer, frame);
        break;
    case AGENT_FRAME_REPLY:
        ck_assert_int_eq(buf_append(&answer->body, frame->body.data, frame->body.size), 0);
        break;
    default:
        ck_abort_msg("a frame of kind %d in a call", (int)frame->kind);
    }
    answer->kind = frame->kind;
    return true;
}

void agent_client_finish(struct agent_client *client, uint64_t id,
                         struct agent_answer *ret_answer)
{
    struct agent_frame frame;

    *ret_answer = (struct agent_answer){ 0 };
    do {
        ck_assert_msg(agent_client_receive(client, &frame, TIMEOUT_MS), "the channel ended");
        if (frame.kind != AGENT_FRAME_RETURN)
            ck_assert_uint_eq(frame.id, id);
    } while (!answer_take(client, ret_answer, &frame));
}

void agent_answer_done(struct agent_answer *answer)
{
    buf_done(&answer->body);
    buf_done(&answer->head);
    for (unsigned i = 0; i < AGENT_STREAMS; i++)
        buf_done(&answer->streams[i]);
}

void agent_client_shell(struct agent_client *client, const char *script, const char *input,
                        uint64_t timeout_ms, struct agent_answer *ret_answer,
                        struct guest_exec_reply *ret_reply)
{
    char *argv[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                     (char *)(uintptr_t)script };
    const struct guest_exec request = {
        .has_argv = true,
        .argv = { .count = 3, .items = argv },
        .has_timeout_ms = true,
        .timeout_ms = timeout_ms,
        .has_has_stdin = true,
        .has_stdin = input != NULL,
    };
    uint64_t id = agent_client_call(client, "exec", &type_guest_exec, &request);

    if (input) {
        if (*input)
            agent_client_data(client, id, 0, input, strlen(input));
        agent_client_end(client, id, 0, NULL);
    }
    agent_client_finish(client, id, ret_answer);
    if (ret_answer->kind != AGENT_FRAME_REPLY)
        return;
    ck_assert(ret_answer->ended[1]);
    ck_assert(ret_answer->ended[2]);
    ck_assert_int_eq(codec_decode_msgpack(&type_guest_exec_reply, ret_answer->body.data,
                                          ret_answer->body.size, ret_reply),
                     0);
}
