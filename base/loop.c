/* loop.c - the turn of the loop: notices, descriptors, timers, deferred work, in this order.
 * Timers are in loop_timer.c; signals and children, built on descriptors, in loop_process.c. */
#include "loop.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#include "loop_state.h"

#define LOOP_EVENTS_A_TURN 128

struct loop_io {
    struct loop *loop;
    struct list dead_node;
    int fd;
    uint32_t events; /* 0: not in the epoll set */
    bool dead;
    loop_io_fn fn;
    void *ctx;
};

uint64_t loop_clock_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with this clock */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int loop_open(struct loop *loop)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.ptr = NULL };

    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0)
        return -errno;
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake_fd < 0)
        return -errno;
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &event) < 0)
        return -errno;
    return 0;
}

int loop_new(struct loop **ret_loop)
{
    _cleanup_(loop_freep)
    struct loop *loop = calloc(1, sizeof(*loop));
    int result;

    if (!loop)
        return -ENOMEM;
    loop->epoll_fd = -1;
    loop->wake_fd = -1;
    loop->now_ns = loop_clock_ns();
    list_init(&loop->dead_ios);
    list_init(&loop->signals);
    list_init(&loop->deferred);
    list_init(&loop->incoming);
    list_init(&loop->running);
    result = -pthread_mutex_init(&loop->lock, NULL);
    loop->scratch = malloc(LOOP_SCRATCH_BYTES);
    if (result == 0 && !loop->scratch)
        result = -ENOMEM;
    if (result == 0)
        result = loop_open(loop);
    if (result < 0)
        return result;
    *ret_loop = take_ptr(loop);
    return 0;
}

static void loop_bury(struct loop *loop)
{
    struct list *node;

    while ((node = list_pop(&loop->dead_ios)))
        free(LIST_ENTRY(node, struct loop_io, dead_node));
}

static void loop_drop_notices(struct list *notices)
{
    struct list *node;

    while ((node = list_pop(notices))) {
        struct loop_notice *notice = LIST_ENTRY(node, struct loop_notice, node);

        if (notice->posted)
            free(notice);
    }
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    assert(!loop->in_turn);
    loop_bury(loop);
    loop_drop_notices(&loop->incoming);
    loop_drop_notices(&loop->running);
    loop_drop_notices(&loop->deferred);
    closep(&loop->wake_fd);
    closep(&loop->epoll_fd);
    (void)pthread_mutex_destroy(&loop->lock); /* nobody can hold it any more */
    free(loop->heap);
    free(loop->scratch);
    free(loop);
}

uint8_t *loop_scratch(struct loop *loop)
{
    return loop->scratch;
}

uint64_t loop_now_ms(const struct loop *loop)
{
    return loop->now_ns / 1000000u;
}

void loop_stop(struct loop *loop, int code)
{
    loop->stopping = true;
    loop->code = code;
}

/* Notices. */

void loop_notice_init(struct loop_notice *notice, loop_notice_fn fn, void *ctx)
{
    list_init(&notice->node);
    notice->fn = fn;
    notice->ctx = ctx;
    notice->posted = false;
}

static void loop_wake(struct loop *loop)
{
    static const uint64_t one = 1;
    ssize_t written = write(loop->wake_fd, &one, sizeof(one));

    (void)written; /* EAGAIN, after 2^64 wake-ups, is a wake-up too */
}

void loop_notify(struct loop *loop, struct loop_notice *notice)
{
    bool wake = false;

    (void)pthread_mutex_lock(&loop->lock); /* fails only when misused */
    if (list_empty(&notice->node)) {
        list_append(&loop->incoming, &notice->node);
        wake = loop->sleeping;
        loop->sleeping = false;
    }
    (void)pthread_mutex_unlock(&loop->lock);
    if (wake)
        loop_wake(loop);
}

int loop_post(struct loop *loop, void (*fn)(void *ctx), void *ctx)
{
    struct loop_notice *notice = malloc(sizeof(*notice));

    if (!notice)
        return -ENOMEM;
    loop_notice_init(notice, fn, ctx);
    notice->posted = true;
    loop_notify(loop, notice);
    return 0;
}

void loop_defer(struct loop *loop, struct loop_notice *notice)
{
    if (list_empty(&notice->node))
        list_append(&loop->deferred, &notice->node);
}

bool loop_notice_cancel(struct loop *loop, struct loop_notice *notice)
{
    bool queued;

    (void)pthread_mutex_lock(&loop->lock);
    queued = !list_empty(&notice->node);
    list_remove(&notice->node);
    (void)pthread_mutex_unlock(&loop->lock);
    return queued;
}

static void loop_run_notices(struct loop *loop)
{
    for (;;) {
        struct loop_notice *notice;
        struct list *node;
        loop_notice_fn fn;
        void *ctx;

        (void)pthread_mutex_lock(&loop->lock);
        node = list_pop(&loop->running);
        (void)pthread_mutex_unlock(&loop->lock);
        if (!node)
            return;
        notice = LIST_ENTRY(node, struct loop_notice, node);
        fn = notice->fn;
        ctx = notice->ctx;
        if (notice->posted)
            free(notice);
        fn(ctx);
    }
}

/* Runs what is deferred now; what that defers again waits for the next call. False: nothing
 * was. */
static bool loop_run_deferred(struct loop *loop)
{
    struct list *node;
    struct list now;

    if (list_empty(&loop->deferred))
        return false;
    list_init(&now);
    list_move_all(&now, &loop->deferred);
    while ((node = list_pop(&now))) {
        struct loop_notice *notice = LIST_ENTRY(node, struct loop_notice, node);

        notice->fn(notice->ctx);
    }
    return true;
}

/* The turn. */

static int loop_wait_timeout_ms(const struct loop *loop, int timeout_ms)
{
    int timers_ms = loop_timers_timeout_ms(loop);

    if (loop->stopping || !list_empty(&loop->deferred))
        return 0;
    if (timeout_ms < 0 || (timers_ms >= 0 && timers_ms < timeout_ms))
        return timers_ms;
    return timeout_ms;
}

static int loop_wait(struct loop *loop, int timeout_ms, struct epoll_event *events)
{
    int count;

    (void)pthread_mutex_lock(&loop->lock);
    if (!list_empty(&loop->incoming))
        timeout_ms = 0;
    loop->sleeping = timeout_ms != 0;
    (void)pthread_mutex_unlock(&loop->lock);

    count = epoll_wait(loop->epoll_fd, events, LOOP_EVENTS_A_TURN, timeout_ms);
    if (count < 0)
        count = errno == EINTR ? 0 : -errno;

    (void)pthread_mutex_lock(&loop->lock);
    loop->sleeping = false;
    list_move_all(&loop->running, &loop->incoming);
    (void)pthread_mutex_unlock(&loop->lock);
    loop->now_ns = loop_clock_ns();
    return count;
}

static void loop_io_dispatch(struct loop_io *io, uint32_t events)
{
    uint32_t wanted;

    if (!io || io->dead || io->events == 0)
        return;
    wanted = events & (io->events | EPOLLHUP | EPOLLERR);
    if (wanted)
        io->fn(io->ctx, wanted);
}

int loop_turn(struct loop *loop, int timeout_ms)
{
    struct epoll_event events[LOOP_EVENTS_A_TURN];
    int count;

    assert(!loop->in_turn);
    loop->in_turn = true;
    if (loop_run_deferred(loop))
        timeout_ms = 0; /* something has happened: the caller of this turn may wait for it */
    count = loop_wait(loop, loop_wait_timeout_ms(loop, timeout_ms), events);
    loop_run_notices(loop);
    for (int i = 0; i < count; i++)
        loop_io_dispatch(events[i].data.ptr, events[i].events);
    loop_timers_dispatch(loop);
    (void)loop_run_deferred(loop);
    loop_bury(loop);
    loop->in_turn = false;
    return count < 0 ? count : 0;
}

int loop_run(struct loop *loop)
{
    while (!loop->stopping) {
        int result = loop_turn(loop, -1);

        if (result < 0)
            return result;
    }
    loop->stopping = false;
    return loop->code;
}

/* Descriptors. */

static int loop_io_control(struct loop_io *io, int operation, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = io };

    return epoll_ctl(io->loop->epoll_fd, operation, io->fd, &event) < 0 ? -errno : 0;
}

int loop_io_new(struct loop *loop, int fd, uint32_t events, loop_io_fn fn, void *ctx,
                struct loop_io **ret_io)
{
    struct loop_io *io = calloc(1, sizeof(*io));
    int result;

    if (!io)
        return -ENOMEM;
    *io = (struct loop_io){ .loop = loop, .fd = fd, .fn = fn, .ctx = ctx };
    list_init(&io->dead_node);
    result = loop_io_set_events(io, events);
    if (result < 0) {
        free(io);
        return result;
    }
    *ret_io = io;
    return 0;
}

int loop_io_set_events(struct loop_io *io, uint32_t events)
{
    int operation = EPOLL_CTL_MOD;
    int result;

    if (events == io->events)
        return 0;
    if (events == 0)
        operation = EPOLL_CTL_DEL;
    else if (io->events == 0)
        operation = EPOLL_CTL_ADD;
    result = loop_io_control(io, operation, events);
    if (result == 0)
        io->events = events;
    return result;
}

void loop_io_free(struct loop_io *io)
{
    if (!io)
        return;
    if (io->events != 0)
        (void)loop_io_control(io, EPOLL_CTL_DEL, 0); /* a closed one is gone already */
    io->dead = true;
    list_append(&io->loop->dead_ios, &io->dead_node);
    if (!io->loop->in_turn)
        loop_bury(io->loop);
}
