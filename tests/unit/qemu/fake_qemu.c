/* fake_qemu.c - stands in for QEMU where its process, monitor and agent's socket are tested.
 *
 * What it does wrong is written behind the last dash of its own name (a link to it):
 *   qemu-fine, qemu-crash (at once), qemu-silent (no agent), qemu-noload (a state cannot be
 *   loaded), qemu-nosave, qemu-mute (the agent answers no ping), qemu-nokvm (a crash with KVM),
 *   qemu-kvmhang (no agent with KVM), qemu-old (the agent knows no rehearsal), qemu-stiff (a
 *   clone ends when it is to rehearse), qemu-threads (one runs in front of main(), as in QEMU),
 *   qemu-stops (what is cloned from a zygote stops until somebody lets it go on), qemu-busy (a
 *   template that never rests), qemu-stuck (as a zygote it hangs as it is linked)
 * Descriptors are those of qemu_args.h. A clone proves that it got the template's state: the
 * agent says PONG only if the state and the memory hold what the template wrote. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent_frame.h"
#include "buf.h"
#include "pack.h"
#include "qemu_args.h"
#include "zygote/message.h"

#define MARK "what the template left"

static const char *behaviour;
static bool is_clone, is_template, is_kvm;
static bool loaded;
static int state_fd = -1; /* passed by getfd */

static bool behaves(const char *name)
{
    return strcmp(behaviour, name) == 0;
}

static void say(const char *text)
{
    if (send(QEMU_FD_QMP, text, strlen(text), 0) < 0)
        exit(1);
}

static void answer(const char *line, const char *text)
{
    const char *id = strstr(line, "\"id\":");
    char reply[256];

    (void)snprintf(reply, sizeof(reply), "{%s, \"id\": %d}\n", text, id ? atoi(id + 5) : -1);
    say(reply);
}

static void migration(const char *status)
{
    char text[128];

    (void)snprintf(text, sizeof(text),
                   "{\"event\": \"MIGRATION\", \"data\": {\"status\": \"%s\"}}\n", status);
    say(text);
}

static char *memory_map(int flags)
{
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, QEMU_FD_MEMORY, 0);

    if (memory == MAP_FAILED)
        exit(1);
    return memory;
}

static void pack_key(struct buf *to, const char *key)
{
    if (pack_text(to, key, strlen(key)) < 0)
        exit(1);
}

static void pack_number(struct buf *to, const char *key, uint64_t number)
{
    pack_key(to, key);
    if (pack_uint(to, number) < 0)
        exit(1);
}

static void put_hello(struct buf *to)
{
    if (pack_map(to, 4) < 0)
        exit(1);
    pack_number(to, "protocol_major", 1);
    pack_number(to, "protocol_minor", behaves("old") ? 0 : 1);
    pack_key(to, "agent_version");
    pack_key(to, "0");
    pack_key(to, "operations");
    if (pack_array(to, 0) < 0)
        exit(1);
}

static void put_nothing(struct buf *to)
{
    if (pack_map(to, 0) < 0)
        exit(1);
}

/* Of any call: keys of other replies are read over. */
static void put_reply(struct buf *to)
{
    if (pack_map(to, 5) < 0)
        exit(1);
    pack_number(to, "bytes_written", 2);
    pack_key(to, "removed");
    if (pack_bool(to, true) < 0)
        exit(1);
    pack_number(to, "exit_code", 127);
    pack_key(to, "timed_out");
    if (pack_bool(to, false) < 0)
        exit(1);
    pack_key(to, "cancelled");
    if (pack_bool(to, false) < 0)
        exit(1);
}

static void agent_send(enum agent_frame_kind kind, uint64_t id, void (*put)(struct buf *to))
{
    struct buf bytes = { 0 };
    size_t start;

    if (agent_frame_begin(kind, id, NULL, &bytes, &start) < 0)
        exit(1);
    put(&bytes);
    if (agent_frame_finish(&bytes, start) < 0 ||
        send(QEMU_FD_AGENT, bytes.data, bytes.size, 0) < 0)
        exit(1);
    buf_done(&bytes);
}

static void load(void)
{
    char mark[sizeof(MARK)] = "", *memory = memory_map(MAP_PRIVATE);

    loaded = read(QEMU_FD_STATE, mark, sizeof(mark)) == sizeof(mark) &&
             strcmp(mark, MARK) == 0 && strcmp(memory, MARK) == 0;
    memory[0] = 'x'; /* a clone's memory is its own */
    if (behaves("noload")) {
        fprintf(stderr, "fake: the state is of another machine\n");
        exit(1);
    }
    migration("completed");
}

static void save(const char *line)
{
    if (behaves("nosave") || state_fd < 0) {
        migration("failed");
        answer(line, "\"error\": {\"class\": \"GenericError\", \"desc\": \"disk full\"}");
        return;
    }
    strcpy(memory_map(MAP_SHARED), MARK);
    if (write(state_fd, MARK, sizeof(MARK)) < 0)
        exit(1);
    answer(line, "\"return\": {}");
    migration("completed");
}

static void obey(const char *line)
{
    if (strstr(line, "\"migrate-incoming\"")) {
        answer(line, "\"return\": {}");
        load();
    } else if (strstr(line, "\"migrate\"")) {
        save(line);
    } else {
        answer(line, "\"return\": {}");
    }
}

static void monitor_read(void)
{
    static char text[65536];
    static size_t size;
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } control = { { 0 } };
    struct iovec part = { text + size, sizeof(text) - 1 - size };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof(control.bytes) };
    ssize_t got = recvmsg(QEMU_FD_QMP, &message, 0);
    char *newline;

    if (got <= 0)
        exit(0);
    if (message.msg_controllen > 0)
        memcpy(&state_fd, CMSG_DATA(&control.aligned), sizeof(state_fd));
    size += (size_t)got;
    text[size] = 0;
    while ((newline = strchr(text, '\n'))) {
        *newline = 0;
        obey(text);
        size -= (size_t)(newline + 1 - text);
        memmove(text, newline + 1, size + 1);
    }
}

static void agent_pong(uint64_t id)
{
    const struct agent_frame frame = { .kind = AGENT_FRAME_PONG, .id = id };
    struct buf pong = { 0 };

    if (agent_frame_encode(&frame, &pong) < 0 ||
        send(QEMU_FD_AGENT, pong.data, pong.size, 0) < 0)
        exit(1);
    buf_done(&pong);
}

/* An image in which no program can be found. */
static void agent_obey(const struct agent_frame *frame)
{
    if (behaves("mute") || (is_clone && !loaded))
        return;
    if (frame->kind == AGENT_FRAME_PING)
        agent_pong(frame->id);
    else if (frame->kind == AGENT_FRAME_CONFIGURE && behaves("stiff") && is_clone)
        exit(1);
    else if (frame->kind == AGENT_FRAME_CONFIGURE)
        agent_send(AGENT_FRAME_READY, 0, put_nothing);
    else if (frame->kind == AGENT_FRAME_CALL)
        agent_send(AGENT_FRAME_REPLY, frame->id, put_reply);
}

static void agent_read(void)
{
    static uint8_t bytes[65536];
    struct agent_frame frame;
    const char *reason;
    ssize_t size = recv(QEMU_FD_AGENT, bytes, sizeof(bytes), 0), at = 0;

    if (size <= 0)
        exit(0);
    while (size - at > (ssize_t)AGENT_FRAME_PREFIX_BYTES) {
        const size_t whole = agent_frame_size(bytes + at);

        at += AGENT_FRAME_PREFIX_BYTES;
        if (agent_frame_decode(bytes + at, whole, &frame, &reason) < 0)
            exit(1);
        agent_obey(&frame);
        at += (ssize_t)whole;
    }
}

static sem_t thread_runs;

static void *early_thread(void *ctx)
{
    (void)sem_post(&thread_runs);
    return ctx;
}

__attribute__((constructor)) static void before_main(int argc, char **argv)
{
    pthread_attr_t attributes;
    pthread_t thread;

    if (!strstr(argv[0], "-threads"))
        return;
    (void)sem_init(&thread_runs, 0, 0);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, early_thread, NULL) != 0)
        exit(1);
}

/* In place of libc's: the first thing that a zygote's clone does is to take its name. */
int prctl(int option, ...)
{
    unsigned long rest[4];
    va_list arguments;

    va_start(arguments, option);
    for (size_t i = 0; i < ARRAY_SIZE(rest); i++)
        rest[i] = va_arg(arguments, unsigned long);
    va_end(arguments);
    if (option == PR_SET_NAME && strstr(program_invocation_name, "-stops") &&
        strcmp((const char *)rest[0], ZYGOTE_NAME) != 0)
        (void)kill(getpid(), SIGSTOP);
    return (int)syscall(SYS_prctl, option, rest[0], rest[1], rest[2], rest[3]);
}

/* Called by the linker, in front of everything else. */
static void linked(int argc, char **argv, char **environment)
{
    while (argc == 2 && strstr(argv[0], "-stuck") && strcmp(argv[1], "(zygote)") == 0)
        (void)pause();
}

typedef void linker_calls(int argc, char **argv, char **environment);
__attribute__((section(".preinit_array"), used)) static linker_calls *const at_link = linked;

int main(int argc, char **argv)
{
    struct pollfd fds[] = { { .fd = QEMU_FD_QMP, .events = POLLIN },
                            { .fd = QEMU_FD_AGENT, .events = POLLIN } };

    behaviour = strrchr(argv[0], '-') + 1;
    while (behaves("threads") && sem_wait(&thread_runs) < 0)
        ;
    for (int i = 1; i < argc; i++) {
        is_clone |= strcmp(argv[i], "-incoming") == 0;
        is_template |= strstr(argv[i], "share=on") != NULL;
        is_kvm |= strcmp(argv[i], "kvm") == 0;
    }
    if (behaves("crash") || (behaves("nokvm") && is_kvm)) {
        fprintf(stderr, "fake: no such machine\n");
        return 3;
    }
    say("{\"QMP\": {}}\n");
    if (!is_clone && !behaves("silent") && !(behaves("kvmhang") && is_kvm))
        agent_send(AGENT_FRAME_HELLO, 0, put_hello);
    for (;;) {
        if (poll(fds, 2, behaves("busy") && is_template ? 0 : -1) < 0 && errno != EINTR)
            return 1;
        if (fds[0].revents)
            monitor_read();
        if (fds[1].revents)
            agent_read();
    }
}
