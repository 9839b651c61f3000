/* zygote.c - see zygote.h: the adapter's side. */
#include "zygote.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libexec.h"
#include "log.h"
#include "program.h"
#include "stray.h"
#include "zygote/message.h"
#include "zygote_request.h"

#define LIBRARY "sandbox-qemu-zygote.so"
/* A clone takes a millisecond. */
#define ANSWER_TIMEOUT_MS 2000
#define GREETING_TIMEOUT_MS 10000 /* linking takes some 20 ms */
#define ENDS_MAX 3                /* in a row, without a machine that came up */

struct zygote {
    struct loop *loop;
    const struct qemu_settings *settings;
    enum zygote_state state;
    char *library;
    struct program program;
    int fd; /* our end */
    pid_t pid;
    struct loop_child *child;
    struct loop_io *io; /* until nobody has the other end */
    uint64_t last_id;
    struct list waits;       /* struct zygote_wait, the oldest first */
    struct loop_timer *late; /* for the first of them; while it starts, for its greeting */
    struct list strays;      /* machines that came when nobody waited for them any more */
    bool proven;             /* a machine of its own came up */
    unsigned ends;
};

static void zygote_set_state(struct zygote *zygote, enum zygote_state state)
{
    static const unsigned moves[] = {
        [ZYGOTE_NONE] = 1u << ZYGOTE_STARTING | 1u << ZYGOTE_GIVEN_UP,
        [ZYGOTE_STARTING] = 1u << ZYGOTE_READY | 1u << ZYGOTE_GIVEN_UP,
        [ZYGOTE_READY] = 1u << ZYGOTE_NONE | 1u << ZYGOTE_ENDING | 1u << ZYGOTE_GIVEN_UP,
        [ZYGOTE_ENDING] = 1u << ZYGOTE_NONE | 1u << ZYGOTE_GIVEN_UP,
        [ZYGOTE_GIVEN_UP] = 0,
    };
    static_assert(ARRAY_SIZE(moves) == ZYGOTE_STATE_MAX, "moves of each state");

    assert(moves[zygote->state] & 1u << state);
    zygote->state = state;
}

enum zygote_state zygote_state(const struct zygote *zygote)
{
    return zygote->state;
}

pid_t zygote_pid(const struct zygote *zygote)
{
    return zygote->pid;
}

/* Whoever waits. */

void zygote_wait_init(struct zygote_wait *wait, zygote_wait_fn *done, void *ctx)
{
    *wait = (struct zygote_wait){ .permit_fd = -1, .done = done, .ctx = ctx };
    list_init(&wait->node);
}

void zygote_wait_cancel(struct zygote_wait *wait)
{
    list_remove(&wait->node); /* its machine is nobody's then */
    closep(&wait->permit_fd);
}

/* The first one has waited longest. */
static void zygote_watch_waits(struct zygote *zygote)
{
    const uint64_t now_ms = loop_now_ms(zygote->loop);
    const struct zygote_wait *first;

    if (zygote->state == ZYGOTE_STARTING)
        return;
    if (list_empty(&zygote->waits)) {
        loop_timer_disarm(zygote->late);
        return;
    }
    first = LIST_ENTRY(zygote->waits.next, struct zygote_wait, node);
    loop_timer_arm(zygote->late, first->until_ms > now_ms ? first->until_ms - now_ms : 0);
}

/* They get their machines otherwise. */
static void zygote_disappoint(struct zygote *zygote)
{
    struct list *node;

    loop_timer_disarm(zygote->late);
    while ((node = list_pop(&zygote->waits))) {
        struct zygote_wait *wait = LIST_ENTRY(node, struct zygote_wait, node);

        closep(&wait->permit_fd); /* in front of those: they have the same disk */
        wait->done(wait->ctx, -EAGAIN, 0, -1);
    }
}

/* The end. What it has begun to clone says so yet, so its socket is heard until nobody has the
 * other end. */

static void zygote_kill(struct zygote *zygote)
{
    if (zygote->child)
        (void)loop_child_kill(zygote->child, SIGKILL); /* -ESRCH: on_ended() is on its way */
}

/* Nothing is left of it when it is reaped and its socket at its end. */
static void zygote_settle(struct zygote *zygote)
{
    if (zygote->child || zygote->io)
        return;
    closep(&zygote->fd);
    if (zygote->state == ZYGOTE_ENDING)
        zygote_set_state(zygote, ZYGOTE_NONE);
}

static void zygote_give_up(struct zygote *zygote, const char *why)
{
    if (zygote->state == ZYGOTE_GIVEN_UP)
        return;
    log_event(LOG_WARN, "zygote_given_up", log_text("program", zygote->settings->program),
              log_text("why", why));
    zygote_set_state(zygote, ZYGOTE_GIVEN_UP);
    zygote_watch_waits(zygote); /* no greeting is waited for any more */
    zygote_kill(zygote);
    zygote_settle(zygote);
}

static void zygote_end(struct zygote *zygote, const char *why)
{
    if (zygote->state != ZYGOTE_READY)
        return;
    log_event(LOG_INFO, "zygote_ended", log_int("pid", zygote->pid), log_text("why", why));
    zygote_set_state(zygote, ZYGOTE_ENDING);
    zygote_kill(zygote);
}

static void on_ended(void *ctx, int wait_status)
{
    struct zygote *zygote = ctx;

    loop_child_free(take_ptr(zygote->child));
    if (zygote->state == ZYGOTE_STARTING)
        zygote_give_up(zygote, "QEMU cannot wait in front of its main()");
    else if (++zygote->ends == ENDS_MAX)
        zygote_give_up(zygote, "it ended too often");
    else
        zygote_end(zygote, "it ended");
    zygote_settle(zygote);
}

void zygote_prove(struct zygote *zygote)
{
    zygote->proven = true;
    zygote->ends = 0;
}

void zygote_doubt(struct zygote *zygote, const char *why)
{
    if (!zygote->proven)
        zygote_give_up(zygote, why);
}

/* The start. */

/* Not the interpreter of a script of that name. */
static bool zygote_runs_program(const struct zygote *zygote)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)zygote->pid);
    return program_is(&zygote->program, path);
}

static void zygote_greeted(struct zygote *zygote)
{
    if (!zygote_runs_program(zygote)) {
        zygote_give_up(zygote, "QEMU is a script");
        return;
    }
    zygote_set_state(zygote, ZYGOTE_READY);
    log_event(LOG_INFO, "zygote_ready", log_int("pid", zygote->pid));
}

/* What it says. */

static struct zygote_wait *zygote_take_wait(struct zygote *zygote, uint64_t id)
{
    LIST_FOREACH(node, &zygote->waits)
    {
        struct zygote_wait *wait = LIST_ENTRY(node, struct zygote_wait, node);

        if (wait->id == id) {
            list_remove(node);
            return wait;
        }
    }
    return NULL;
}

static int zygote_permit(const struct zygote_wait *wait, pid_t pid)
{
    int pidfd = proc_pidfd_open(pid);

    if (pidfd >= 0)
        (void)send(wait->permit_fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* EPIPE: it ended */
    return pidfd;
}

/* The machine's own word, or the zygote's that there is none. */
static void zygote_hear(struct zygote *zygote, const struct zygote_reply *reply)
{
    struct zygote_wait *wait = zygote_take_wait(zygote, reply->id);
    int pidfd = reply->error;

    if (wait && reply->error == 0)
        pidfd = zygote_permit(wait, reply->pid);
    if (reply->pid > 0 && (!wait || pidfd < 0))
        strays_add(&zygote->strays, zygote->loop, reply->pid);
    if (!wait)
        return;
    closep(&wait->permit_fd);
    wait->done(wait->ctx, pidfd < 0 ? pidfd : 0, pidfd < 0 ? 0 : reply->pid, pidfd);
}

/* 1: a reply; 0: nobody has the other end any more; -EAGAIN: no more for now. */
static int zygote_receive(const struct zygote *zygote, struct zygote_reply *ret_reply)
{
    ssize_t size;

    do
        size = recv(zygote->fd, ret_reply, sizeof(*ret_reply), MSG_DONTWAIT);
    while (size < 0 && (errno == EINTR || errno == ECONNRESET)); /* it left requests unread */
    if (size < 0 && errno == EAGAIN)
        return -EAGAIN;
    return size == sizeof(*ret_reply);
}

static void zygote_listen(struct zygote *zygote)
{
    struct zygote_reply reply;
    int result;

    while ((result = zygote_receive(zygote, &reply)) > 0) {
        if (reply.id > 0)
            zygote_hear(zygote, &reply);
        else if (zygote->state == ZYGOTE_STARTING)
            zygote_greeted(zygote);
    }
    if (result == 0) {
        loop_io_free(take_ptr(zygote->io));
        zygote_end(zygote, "it ended");
        zygote_disappoint(zygote);
        zygote_settle(zygote);
    }
    zygote_watch_waits(zygote);
}

static void on_readable(void *ctx, uint32_t events)
{
    zygote_listen(ctx);
}

static void on_late(void *ctx)
{
    struct zygote *zygote = ctx;
    const struct zygote_wait *first;

    zygote_listen(zygote); /* it may be us who were late */
    if (zygote->state == ZYGOTE_STARTING)
        zygote_give_up(zygote, "it does not greet");
    if (list_empty(&zygote->waits))
        return;
    first = LIST_ENTRY(zygote->waits.next, struct zygote_wait, node);
    if (first->until_ms > loop_now_ms(zygote->loop))
        return;
    zygote_end(zygote, "it does not answer");
    zygote_disappoint(zygote);
}

/* The start of its process. */

static int zygote_process(struct zygote *zygote, int their_fd, int *ret_pidfd)
{
    _cleanup_free_ char *preload = NULL;
    const char *const argv[] = { zygote->settings->program, "(zygote)", NULL };
    const struct proc_fd fds[] = { { their_fd, ZYGOTE_FD } };

    if (asprintf(&preload, "LD_PRELOAD=%s", zygote->library) < 0) {
        preload = NULL;
        return -ENOMEM;
    }
    return proc_spawn(
        &(struct proc_spec){ .program = zygote->program.path,
                             .argv = argv,
                             .environment = (const char *const[]){ "PATH=/usr/bin:/bin",
                                                                   "LC_ALL=C", preload, NULL },
                             .workdir = "/",
                             .fds = fds,
                             .fd_count = ARRAY_SIZE(fds),
                             .new_session = true,
                             .die_with_parent = true },
        &zygote->pid, ret_pidfd);
}

static int zygote_connect(struct zygote *zygote, int *ret_their_fd)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    zygote->fd = fds[0];
    *ret_their_fd = fds[1];
    return 0;
}

static int zygote_start(struct zygote *zygote)
{
    _cleanup_close_ int their_fd = -1;
    int pidfd, result = zygote_connect(zygote, &their_fd);

    if (result == 0)
        result = program_find(zygote->settings->program, &zygote->program);
    if (result == 0)
        result = zygote_process(zygote, their_fd, &pidfd);
    if (result < 0)
        return result;
    zygote_set_state(zygote, ZYGOTE_STARTING);
    loop_timer_arm(zygote->late, GREETING_TIMEOUT_MS);
    result = loop_child_new(zygote->loop, zygote->pid, pidfd, on_ended, zygote, &zygote->child);
    if (result < 0)
        (void)kill(zygote->pid, SIGKILL); /* nobody would notice its end */
    else
        result = loop_io_new(zygote->loop, zygote->fd, EPOLLIN, on_readable, zygote,
                             &zygote->io);
    return result;
}

static void zygote_try(struct zygote *zygote)
{
    int result = zygote_start(zygote);

    if (result < 0)
        zygote_give_up(zygote, strerror(-result));
}

/* Machines. */

static int zygote_ask(struct zygote *zygote, const struct proc_spec *spec, int answer_fd,
                      struct zygote_wait *wait)
{
    int result, fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    wait->id = ++zygote->last_id;
    result = zygote_request_send(zygote->fd, wait->id, spec, answer_fd, fds[1]);
    closep(&fds[1]);
    if (result < 0)
        closep(&fds[0]);
    wait->permit_fd = fds[0];
    return result;
}

int zygote_spawn(struct zygote *zygote, const struct proc_spec *spec, int answer_fd,
                 struct zygote_wait *wait)
{
    int result;

    if (zygote->state == ZYGOTE_NONE)
        zygote_try(zygote);
    if (zygote->state != ZYGOTE_READY)
        return -EAGAIN;
    if (!program_unchanged(&zygote->program)) {
        zygote_end(zygote, "QEMU's program is another one now");
        return -EAGAIN;
    }
    result = zygote_ask(zygote, spec, answer_fd, wait);
    if (result < 0) {
        if (result != -EAGAIN) /* full: whoever waits in it has a deadline */
            zygote_end(zygote, strerror(-result));
        return -EAGAIN;
    }
    wait->until_ms = loop_now_ms(zygote->loop) + ANSWER_TIMEOUT_MS;
    list_append(&zygote->waits, &wait->node);
    zygote_watch_waits(zygote);
    return 0;
}

/* Life. */

int zygote_new(struct loop *loop, const struct qemu_settings *settings,
               struct zygote **ret_zygote)
{
    struct zygote *zygote = calloc(1, sizeof(*zygote));
    int result;

    if (!zygote)
        return -ENOMEM;
    *zygote = (struct zygote){
        .loop = loop,
        .settings = settings,
        .library = libexec_find(LIBRARY),
        .fd = -1,
    };
    list_init(&zygote->waits);
    list_init(&zygote->strays);
    result = loop_timer_new(loop, on_late, zygote, &zygote->late);
    if (result < 0) {
        zygote_free(zygote);
        return result;
    }
    *ret_zygote = zygote;
    if (!zygote->library)
        zygote_give_up(zygote, LIBRARY " is not installed");
    else if (settings->templates)
        zygote_try(zygote);
    return 0;
}

/* A clone that has not spoken yet cannot any more, and has no permit: it ends by itself. */
static void zygote_close_socket(struct zygote *zygote)
{
    struct zygote_reply reply;

    loop_io_free(take_ptr(zygote->io));
    if (zygote->fd < 0)
        return;
    (void)shutdown(zygote->fd, SHUT_RDWR); /* what was said before is heard */
    while (zygote_receive(zygote, &reply) > 0)
        zygote_hear(zygote, &reply);
    closep(&zygote->fd);
}

void zygote_free(struct zygote *zygote)
{
    siginfo_t end;

    if (!zygote)
        return;
    assert(list_empty(&zygote->waits));
    zygote_kill(zygote);
    if (zygote->child)
        (void)waitid(P_PID, (id_t)zygote->pid, &end, WEXITED); /* killed, so it ends */
    loop_child_free(take_ptr(zygote->child));
    zygote_close_socket(zygote);
    strays_end(&zygote->strays);
    loop_timer_free(zygote->late);
    free(zygote->library);
    free(zygote);
}
