/* qmp.c - see qmp.h. */
#include "qmp.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "buf.h"

#define LINE_MAX_BYTES (256u * 1024) /* of QEMU's; the longest we cause is the greeting */
#define QUEUE_MAX_BYTES (64u * 1024) /* of ours */
#define GREETING_TIMEOUT_MS 20000u

enum qmp_state {
    QMP_GREETING, /* QEMU has not said anything yet; commands wait */
    QMP_READY,    /* commands are sent */
    QMP_CLOSED,   /* over; `closed` was called, or is about to be */
    QMP_STATE_MAX
};

struct qmp_command {
    struct list node;
    uint64_t id;
    uint64_t until_ms;
    qmp_done_fn done;
    void *ctx;
};

struct qmp {
    struct loop *loop;
    int fd;
    enum qmp_state state;
    struct loop_io *io;
    struct loop_timer *timer; /* of the greeting, then of the first command */
    const struct qmp_events *events;
    void *ctx;
    struct list commands; /* sent and unsent, in order: QEMU answers in order */
    uint64_t next_id;
    struct buf in;
    struct buf out;
    struct buf waiting; /* what is to be sent after the greeting */
    int passed_fd;      /* goes along with the byte at passed_at of `out`; -1: none */
    size_t passed_at;
    unsigned dispatching; /* depth of callbacks: a free waits for their return */
    bool freed;
};

static void qmp_set_state(struct qmp *qmp, enum qmp_state state)
{
    static const unsigned moves[] = {
        [QMP_GREETING] = 1u << QMP_READY | 1u << QMP_CLOSED,
        [QMP_READY] = 1u << QMP_CLOSED,
        [QMP_CLOSED] = 0,
    };
    static_assert(ARRAY_SIZE(moves) == QMP_STATE_MAX, "moves of each state");

    assert(moves[qmp->state] & 1u << state);
    qmp->state = state;
}

static void qmp_release(struct qmp *qmp)
{
    struct list *node;

    while ((node = list_pop(&qmp->commands)))
        free(LIST_ENTRY(node, struct qmp_command, node));
    loop_io_free(qmp->io);
    loop_timer_free(qmp->timer);
    closep(&qmp->fd);
    closep(&qmp->passed_fd);
    buf_done(&qmp->in);
    buf_done(&qmp->out);
    buf_done(&qmp->waiting);
    free(qmp);
}

void qmp_free(struct qmp *qmp)
{
    if (!qmp)
        return;
    if (qmp->dispatching == 0) {
        qmp_release(qmp);
        return;
    }
    qmp->freed = true;
    loop_io_free(take_ptr(qmp->io));
    loop_timer_disarm(qmp->timer);
}

static void qmp_enter(struct qmp *qmp)
{
    qmp->dispatching++;
}

/* False: the client is gone. */
static bool qmp_leave(struct qmp *qmp)
{
    bool freed = qmp->freed;

    if (--qmp->dispatching == 0 && freed)
        qmp_release(qmp);
    return !freed;
}

static void command_complete(struct qmp *qmp, struct qmp_command *command, const json_t *value,
                             const char *error)
{
    qmp_done_fn done = command->done;
    void *ctx = command->ctx;

    list_remove(&command->node);
    free(command);
    if (done && !qmp->freed)
        done(ctx, value, error);
}

static void qmp_close(struct qmp *qmp, const char *reason)
{
    struct list *node;

    if (qmp->freed || qmp->state == QMP_CLOSED)
        return;
    qmp_set_state(qmp, QMP_CLOSED);
    loop_io_free(take_ptr(qmp->io));
    loop_timer_disarm(qmp->timer);
    qmp_enter(qmp);
    while (!qmp->freed && (node = list_pop(&qmp->commands)))
        command_complete(qmp, LIST_ENTRY(node, struct qmp_command, node), NULL, reason);
    if (!qmp->freed)
        qmp->events->closed(qmp->ctx, reason);
    (void)qmp_leave(qmp); /* nothing is done after this */
}

/* Time. */

static void qmp_arm(struct qmp *qmp)
{
    uint64_t now_ms = loop_now_ms(qmp->loop);
    const struct qmp_command *first;

    if (qmp->state == QMP_GREETING)
        return;
    if (list_empty(&qmp->commands)) {
        loop_timer_disarm(qmp->timer);
        return;
    }
    first = LIST_ENTRY(qmp->commands.next, struct qmp_command, node);
    loop_timer_arm(qmp->timer, first->until_ms > now_ms ? first->until_ms - now_ms : 0);
}

static void on_timer(void *ctx)
{
    struct qmp *qmp = ctx;

    qmp_close(qmp, qmp->state == QMP_GREETING ? "QEMU does not greet" : "QEMU does not answer");
}

/* What we send. */

static ssize_t send_part(int socket_fd, const void *data, size_t size, int passed_fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } control = { { 0 } };
    struct iovec part = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    struct cmsghdr *head = &control.aligned;

    if (passed_fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control.bytes);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &passed_fd, sizeof(int));
    }
    return sendmsg(socket_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Up to the passed descriptor, or with it. */
static ssize_t qmp_send_some(struct qmp *qmp)
{
    const bool pass = qmp->passed_fd >= 0 && qmp->passed_at == 0;
    size_t size = qmp->passed_fd >= 0 && !pass ? qmp->passed_at : qmp->out.size;
    ssize_t sent = send_part(qmp->fd, qmp->out.data, size, pass ? qmp->passed_fd : -1);

    if (sent < 0)
        return -errno;
    if (pass)
        closep(&qmp->passed_fd);
    else if (qmp->passed_fd >= 0)
        qmp->passed_at -= (size_t)sent;
    buf_consume(&qmp->out, (size_t)sent);
    return sent;
}

static int qmp_flush(struct qmp *qmp)
{
    while (qmp->out.size > 0) {
        ssize_t sent = qmp_send_some(qmp);

        if (sent == -EAGAIN)
            break;
        if (sent < 0 && sent != -EINTR)
            return (int)sent;
    }
    return loop_io_set_events(qmp->io, EPOLLIN | (qmp->out.size > 0 ? EPOLLOUT : 0));
}

static int append_command(struct buf *to, const char *command, const json_t *arguments,
                          uint64_t id)
{
    _cleanup_free_ char *text = arguments ? json_dumps(arguments, JSON_COMPACT) : NULL;

    if (arguments && !text)
        return -ENOMEM;
    return buf_printf(to, "{\"execute\":\"%s\",%s%s%s\"id\":%llu}\n", command,
                      text ? "\"arguments\":" : "", text ? text : "", text ? "," : "",
                      (unsigned long long)id);
}

int qmp_execute(struct qmp *qmp, const char *command, json_t *own_arguments,
                uint32_t timeout_ms, qmp_done_fn done, void *ctx)
{
    struct buf *to = qmp->state == QMP_GREETING ? &qmp->waiting : &qmp->out;
    struct qmp_command *entry = NULL;
    int result = qmp->state == QMP_CLOSED ? -EPIPE : 0;

    if (result == 0 && !(entry = calloc(1, sizeof(*entry))))
        result = -ENOMEM;
    if (result == 0)
        result = append_command(to, command, own_arguments, qmp->next_id);
    json_decref(own_arguments);
    if (result < 0) {
        free(entry);
        return result;
    }
    entry->id = qmp->next_id++;
    entry->until_ms = loop_now_ms(qmp->loop) + timeout_ms;
    entry->done = done;
    entry->ctx = ctx;
    list_append(&qmp->commands, &entry->node);
    if (qmp->state == QMP_READY) {
        (void)loop_io_set_events(qmp->io, EPOLLIN | EPOLLOUT); /* sent in the next turn */
        qmp_arm(qmp);
    }
    return 0;
}

int qmp_execute_with_fd(struct qmp *qmp, const char *command, json_t *own_arguments, int fd,
                        uint32_t timeout_ms, qmp_done_fn done, void *ctx)
{
    size_t at = qmp->out.size;
    int result = qmp->state == QMP_READY && qmp->passed_fd < 0 ? 0 : -EAGAIN;

    if (result == 0) {
        qmp->passed_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        qmp->passed_at = at;
        result = qmp->passed_fd < 0 ? -errno : 0;
    }
    if (result < 0) {
        json_decref(own_arguments);
        return result;
    }
    result = qmp_execute(qmp, command, own_arguments, timeout_ms, done, ctx);
    if (result < 0)
        closep(&qmp->passed_fd);
    return result;
}

/* What QEMU says. */

static const char *error_words(const json_t *error)
{
    const char *words = json_string_value(json_object_get(error, "desc"));

    return words ? words : "QEMU gives no reason";
}

/* False: it makes no sense. */
static bool qmp_take_answer(struct qmp *qmp, const json_t *message)
{
    const json_t *value = json_object_get(message, "return");
    const json_t *error = json_object_get(message, "error");
    const json_t *id = json_object_get(message, "id");
    struct qmp_command *first;

    if (list_empty(&qmp->commands) || !value == !error)
        return false;
    first = LIST_ENTRY(qmp->commands.next, struct qmp_command, node);
    if (!json_is_integer(id) || (uint64_t)json_integer_value(id) != first->id)
        return false;
    command_complete(qmp, first, value, value ? NULL : error_words(error));
    return true;
}

static bool qmp_take_greeting(struct qmp *qmp)
{
    qmp_set_state(qmp, QMP_READY);
    return buf_append(&qmp->out, qmp->waiting.data, qmp->waiting.size) == 0;
}

static bool qmp_take(struct qmp *qmp, const json_t *message)
{
    const char *event = json_string_value(json_object_get(message, "event"));

    if (json_object_get(message, "QMP"))
        return qmp->state == QMP_GREETING && qmp_take_greeting(qmp);
    if (qmp->state != QMP_READY)
        return false;
    if (!event)
        return qmp_take_answer(qmp, message);
    qmp->events->event(qmp->ctx, event, json_object_get(message, "data"));
    return true;
}

static bool qmp_take_line(struct qmp *qmp, const char *line, size_t size)
{
    json_t *message = json_loadb(line, size, 0, NULL);
    bool fine;

    if (!json_is_object(message)) {
        json_decref(message);
        return false;
    }
    fine = qmp_take(qmp, message);
    json_decref(message);
    return fine;
}

/* All whole lines; stops when a callback closed or freed us. */
static const char *qmp_take_lines(struct qmp *qmp)
{
    const char *reason = NULL;

    while (!reason && !qmp->freed && qmp->state != QMP_CLOSED) {
        uint8_t *newline = qmp->in.size ? memchr(qmp->in.data, '\n', qmp->in.size) : NULL;
        size_t size = newline ? (size_t)(newline - qmp->in.data) : 0;

        if (!newline)
            break;
        if (size > 1 && !qmp_take_line(qmp, (const char *)qmp->in.data, size))
            reason = "QEMU says what makes no sense";
        if (!qmp->freed)
            buf_consume(&qmp->in, size + 1);
    }
    return reason;
}

static const char *qmp_receive(struct qmp *qmp)
{
    uint8_t *room = buf_reserve(&qmp->in, 16384);
    ssize_t size;

    if (!room)
        return "QEMU sends a line without an end";
    size = recv(qmp->fd, room, 16384, MSG_DONTWAIT);
    if (size < 0)
        return errno == EAGAIN || errno == EINTR ? NULL : strerror(errno);
    if (size == 0)
        return "QEMU closed its monitor";
    qmp->in.size += (size_t)size;
    return qmp_take_lines(qmp);
}

static void on_io(void *ctx, uint32_t events)
{
    struct qmp *qmp = ctx;
    const char *reason = NULL;
    int result = 0;

    qmp_enter(qmp);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        reason = qmp_receive(qmp);
    if (!qmp->freed && qmp->state == QMP_READY && !reason) {
        result = qmp_flush(qmp);
        qmp_arm(qmp);
    }
    if (reason || result < 0)
        qmp_close(qmp, reason ? reason : strerror(-result));
    (void)qmp_leave(qmp); /* nothing is done after this */
}

int qmp_new(struct loop *loop, int own_fd, const struct qmp_events *events, void *ctx,
            struct qmp **ret_qmp)
{
    struct qmp *qmp = calloc(1, sizeof(*qmp));
    int result;

    if (!qmp) {
        closep(&own_fd);
        return -ENOMEM;
    }
    *qmp = (struct qmp){
        .loop = loop, .fd = own_fd, .passed_fd = -1, .events = events, .ctx = ctx
    };
    list_init(&qmp->commands);
    qmp->in.limit = LINE_MAX_BYTES;
    qmp->out.limit = qmp->waiting.limit = QUEUE_MAX_BYTES;
    result = loop_io_new(loop, own_fd, EPOLLIN, on_io, qmp, &qmp->io);
    if (result == 0)
        result = loop_timer_new(loop, on_timer, qmp, &qmp->timer);
    if (result == 0)
        result = qmp_execute(qmp, "qmp_capabilities", NULL, GREETING_TIMEOUT_MS, NULL, NULL);
    if (result < 0) {
        qmp_release(qmp);
        return result;
    }
    loop_timer_arm(qmp->timer, GREETING_TIMEOUT_MS);
    *ret_qmp = qmp;
    return 0;
}
