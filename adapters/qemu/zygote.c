/* zygote.c - see zygote.h: the adapter's side. */
#include "zygote.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "libexec.h"
#include "log.h"
#include "program.h"
#include "zygote/message.h"

#define LIBRARY "sandbox-qemu-zygote.so"
/* A clone takes a millisecond; as long as that is all others wait. */
#define ANSWER_TIMEOUT_MS 2000
#define ENDS_MAX 3 /* in a row, without a machine that came up */

struct zygote {
    struct loop *loop;
    const struct qemu_settings *settings;
    enum zygote_state state;
    char *library;
    struct program program;
    int fd; /* our end */
    pid_t pid;
    struct loop_child *child;
    struct loop_io *io; /* until it has greeted */
    bool proven;        /* a machine of its own came up */
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

/* The end. */

static void zygote_kill(struct zygote *zygote)
{
    loop_io_free(take_ptr(zygote->io));
    closep(&zygote->fd);
    if (zygote->child)
        (void)loop_child_kill(zygote->child, SIGKILL); /* -ESRCH: on_ended() is on its way */
}

static void zygote_give_up(struct zygote *zygote, const char *why)
{
    if (zygote->state == ZYGOTE_GIVEN_UP)
        return;
    log_event(LOG_WARN, "zygote_given_up", log_text("program", zygote->settings->program),
              log_text("why", why));
    zygote_set_state(zygote, ZYGOTE_GIVEN_UP);
    zygote_kill(zygote);
}

static void zygote_end(struct zygote *zygote, const char *why)
{
    log_event(LOG_INFO, "zygote_ended", log_int("pid", zygote->pid), log_text("why", why));
    zygote_set_state(zygote, ZYGOTE_ENDING);
    zygote_kill(zygote);
}

static void on_ended(void *ctx, int wait_status)
{
    struct zygote *zygote = ctx;

    loop_child_free(take_ptr(zygote->child));
    zygote_kill(zygote);
    if (zygote->state == ZYGOTE_STARTING)
        zygote_give_up(zygote, "QEMU cannot wait in front of its main()");
    else if (++zygote->ends == ENDS_MAX)
        zygote_give_up(zygote, "it ended too often");
    else if (zygote->state != ZYGOTE_GIVEN_UP)
        zygote_set_state(zygote, ZYGOTE_NONE);
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

static void on_greeting(void *ctx, uint32_t events)
{
    struct zygote *zygote = ctx;
    struct zygote_reply reply;

    loop_io_free(take_ptr(zygote->io));
    if (recv(zygote->fd, &reply, sizeof(reply), 0) != sizeof(reply))
        return; /* on_ended() is on its way */
    if (!zygote_runs_program(zygote)) {
        zygote_give_up(zygote, "QEMU is a script");
        return;
    }
    zygote_set_state(zygote, ZYGOTE_READY);
    log_event(LOG_INFO, "zygote_ready", log_int("pid", zygote->pid));
}

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
    result = loop_child_new(zygote->loop, zygote->pid, pidfd, on_ended, zygote, &zygote->child);
    if (result < 0)
        (void)kill(zygote->pid, SIGKILL); /* nobody would notice its end */
    else
        result = loop_io_new(zygote->loop, zygote->fd, EPOLLIN, on_greeting, zygote,
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

static int put_arguments(struct buf *to, const char *const *argv, uint32_t *ret_count)
{
    int result = 0;

    for (*ret_count = 0; result == 0 && argv[*ret_count]; (*ret_count)++)
        result = buf_append(to, argv[*ret_count], strlen(argv[*ret_count]) + 1);
    return result;
}

static int send_request(int socket_fd, struct zygote_request *head, const struct buf *arguments,
                        const struct proc_fd *fds)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * ZYGOTE_FDS_MAX)];
        struct cmsghdr aligned;
    } control = { { 0 } };
    struct iovec parts[] = { { head, sizeof(*head) }, { arguments->data, arguments->size } };
    struct msghdr message = { .msg_iov = parts,
                              .msg_iovlen = ARRAY_SIZE(parts),
                              .msg_control = &control,
                              .msg_controllen = CMSG_SPACE(sizeof(int) * head->fd_count) };
    struct cmsghdr *rights = &control.aligned;
    int numbers[ZYGOTE_FDS_MAX];

    for (uint32_t i = 0; i < head->fd_count; i++) {
        head->targets[i] = fds[i].target;
        numbers[i] = fds[i].fd;
    }
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * head->fd_count);
    memcpy(CMSG_DATA(rights), numbers, sizeof(int) * head->fd_count);
    return sendmsg(socket_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static int zygote_ask(struct zygote *zygote, const struct proc_spec *spec)
{
    const struct confine_child *child = spec->before_exec_ctx;
    struct zygote_request head = { .confine = *child->confine,
                                   .rules_fd = child->rules_fd,
                                   .small_pages = child->small_pages,
                                   .fd_count = (uint32_t)spec->fd_count };
    struct buf arguments = { .limit = ZYGOTE_REQUEST_MAX_BYTES };
    int result = spec->fd_count > ZYGOTE_FDS_MAX
                     ? -E2BIG
                     : put_arguments(&arguments, spec->argv, &head.argument_count);

    assert(spec->before_exec == confine_child);
    if (result == 0)
        result = send_request(zygote->fd, &head, &arguments, spec->fds);
    buf_done(&arguments);
    return result;
}

/* The machine's own word, or the zygote's that there is none. When it is late nothing can be
 * told any more, so that a machine that comes up yet ends by itself. False: no word. */
static bool zygote_hear(struct zygote *zygote, struct zygote_reply *ret_reply)
{
    struct pollfd wait = { .fd = zygote->fd, .events = POLLIN };

    while (poll(&wait, 1, ANSWER_TIMEOUT_MS) < 0 && errno == EINTR)
        ;
    if (!wait.revents)
        (void)shutdown(zygote->fd, SHUT_RDWR); /* what was said before is heard */
    return recv(zygote->fd, ret_reply, sizeof(*ret_reply), MSG_DONTWAIT) == sizeof(*ret_reply);
}

static int reply_take(const struct zygote_reply *reply, pid_t *ret_pid, int *ret_pidfd)
{
    int pidfd = reply->error < 0 ? reply->error : proc_pidfd_open(reply->pid);

    if (pidfd >= 0) {
        *ret_pid = reply->pid;
        *ret_pidfd = pidfd;
        return 0;
    }
    if (reply->pid > 0) {
        (void)kill(reply->pid, SIGKILL); /* our child, and not reaped: nobody else's number */
        while (waitpid(reply->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    return pidfd;
}

int zygote_spawn(struct zygote *zygote, const struct proc_spec *spec, pid_t *ret_pid,
                 int *ret_pidfd)
{
    struct zygote_reply reply = { 0 };
    int result;

    if (zygote->state == ZYGOTE_NONE)
        zygote_try(zygote);
    if (zygote->state != ZYGOTE_READY)
        return -EAGAIN;
    if (!program_unchanged(&zygote->program)) {
        zygote_end(zygote, "QEMU's program is another one now");
        return -EAGAIN;
    }
    result = zygote_ask(zygote, spec);
    if (result == 0 && zygote_hear(zygote, &reply))
        return reply_take(&reply, ret_pid, ret_pidfd);
    zygote_end(zygote, result < 0 ? strerror(-result) : "it does not answer");
    return -EAGAIN;
}

/* Life. */

int zygote_new(struct loop *loop, const struct qemu_settings *settings,
               struct zygote **ret_zygote)
{
    struct zygote *zygote = calloc(1, sizeof(*zygote));

    if (!zygote)
        return -ENOMEM;
    *zygote = (struct zygote){
        .loop = loop,
        .settings = settings,
        .library = libexec_find(LIBRARY),
        .fd = -1,
    };
    *ret_zygote = zygote;
    if (!zygote->library)
        zygote_give_up(zygote, LIBRARY " is not installed");
    else if (settings->templates)
        zygote_try(zygote);
    return 0;
}

void zygote_free(struct zygote *zygote)
{
    siginfo_t end;

    if (!zygote)
        return;
    zygote_kill(zygote);
    if (zygote->child)
        (void)waitid(P_PID, (id_t)zygote->pid, &end, WEXITED); /* killed, so it ends */
    loop_child_free(zygote->child);
    free(zygote->library);
    free(zygote);
}
