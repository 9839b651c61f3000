/* What a QEMU in a guest's hands may say on its monitor: every command completes exactly once,
 * the connection ends at most once. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "qmp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COMMANDS 4u

struct seen {
    unsigned completed, closed;
};

static void on_event(void *ctx, const char *name, const json_t *data)
{
    if (!name)
        abort();
}

static void on_closed(void *ctx, const char *reason)
{
    struct seen *seen = ctx;

    if (seen->closed++ || !reason || seen->completed != COMMANDS)
        abort();
}

static void on_done(void *ctx, const json_t *value, const char *error)
{
    struct seen *seen = ctx;

    if (!value == !error || seen->completed++ >= COMMANDS)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char greeting[] = "{\"QMP\": {}}\n{\"return\": {}, \"id\": 0}\n";
    static const struct qmp_events events = { .event = on_event, .closed = on_closed };
    struct seen seen = { 0 };
    struct loop *loop;
    struct qmp *qmp;
    int fds[2];

    if (loop_new(&loop) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0 ||
        qmp_new(loop, fds[0], &events, &seen, &qmp) < 0)
        abort();
    for (unsigned i = 0; i < COMMANDS; i++)
        if (qmp_execute(qmp, "stop", NULL, 1000, on_done, &seen) < 0)
            abort();
    (void)send(fds[1], greeting, sizeof(greeting) - 1, 0); /* less arrives: also a case */
    (void)send(fds[1], data, size, 0);
    closep(&fds[1]);
    for (int turns = 0; seen.closed == 0; turns++)
        if (loop_turn(loop, 1000) != 0 || turns > 100)
            abort();
    qmp_free(qmp);
    loop_free(loop);
    return 0;
}
