/* relay.c - see relay.h. */
#include "relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <slirp/libslirp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "activity.h"
#include "cleanup.h"
#include "frame.h"
#include "log.h"
#include "own_resolvers.h"
#include "relay_timer.h"

#define FRAME_BYTES_MAX 69632 /* QEMU's own limit is 68 KiB */
#define FRAMES_A_TURN 64      /* then the sockets have their turn */
#define REPORT_INTERVAL_NS 1000000000
#define POLL_FDS_MAX 1024
/* An answer to an address that libslirp must ask for first waits in 64 KiB of memory, at most a
 * second. A guest has one address a family; one that claims many is asked for many. */
#define QUESTIONS_MAX 256u
#define QUESTION_NS 1000000000
#define NAME_SERVER 0x0a000203u
#define IPV6_PREFIX "fd5a:6b3c:7e21:1::"
static const struct address name_server6 = { 0xfd5a6b3c7e210001, 3 };

struct relay {
    struct relay_options options;
    Slirp *slirp;
    struct activity *activity;
    struct list timers;
    int64_t reported_ns; /* 0: never */
    bool guest_is_deaf;  /* it let the last frame wait too long */
    unsigned questions; /* libslirp's for neighbours, within QUESTION_NS from questions_ns on */
    int64_t questions_ns;
    int blocked_ms; /* of this turn; 0: guest and sockets are heard */
    struct pollfd fds[POLL_FDS_MAX];
    int fd_count;
};

/* A full pipe is fine: somebody was told and has not looked yet. */
static void relay_note_payload(struct relay *relay)
{
    int64_t now_ns = relay_clock_ns();

    if (relay->reported_ns != 0 && now_ns - relay->reported_ns < REPORT_INTERVAL_NS)
        return;
    if (write(relay->options.report_fd, "p", 1) == 1)
        relay->reported_ns = now_ns;
}

static void relay_count(struct relay *relay, const struct frame *frame)
{
    if (activity_frame(relay->activity, frame))
        relay_note_payload(relay);
}

/* One more is asked for, and something waits for it. */
static void relay_note_question(struct relay *relay)
{
    int64_t now_ns = relay_clock_ns();

    if (now_ns - relay->questions_ns >= QUESTION_NS) {
        relay->questions_ns = now_ns;
        relay->questions = 0;
    }
    relay->questions++;
}

/* For how long nothing that may need an answer is taken, from the guest or from a socket. */
static int relay_blocked_ms(const struct relay *relay)
{
    int64_t left_ns = relay->questions_ns + QUESTION_NS - relay_clock_ns();

    return relay->questions < QUESTIONS_MAX || left_ns <= 0 ? 0 : (int)(left_ns / 1000000) + 1;
}

/* What libslirp asks of us. */

static ssize_t on_send_packet(const void *data, size_t size, void *opaque)
{
    struct relay *relay = opaque;
    struct frame frame;

    frame_parse(data, size, &frame);
    relay_count(relay, &frame);
    if (frame.asks_neighbour)
        relay_note_question(relay);
    /* The socket has a time limit; a frame that does not fit in time is lost, as on a wire, and
     * no other one is waited for until the guest takes frames again. */
    if (send(relay->options.frames_fd, data, size,
             MSG_NOSIGNAL | (relay->guest_is_deaf ? MSG_DONTWAIT : 0)) < 0) {
        relay->guest_is_deaf = true;
        return errno == EAGAIN || errno == ENOBUFS ? (ssize_t)size : -1;
    }
    relay->guest_is_deaf = false;
    return (ssize_t)size;
}

static void on_guest_error(const char *message, void *opaque)
{
    /* The guest may cause as many as it likes. */
    log_event(LOG_DEBUG, "guest_error", log_text("message", message));
}

static int64_t on_clock(void *opaque)
{
    return relay_clock_ns();
}

static void *on_timer_new(SlirpTimerCb fn, void *fn_opaque, void *opaque)
{
    struct relay *relay = opaque;

    return relay_timer_new(&relay->timers, fn, fn_opaque);
}

static void on_timer_free(void *timer, void *opaque)
{
    relay_timer_free(timer);
}

static void on_timer_mod(void *own_timer, int64_t expire_ms, void *opaque)
{
    struct relay_timer *timer = own_timer;

    timer->at_ms = expire_ms;
}

static void on_poll_fd(int fd, void *opaque)
{
}

static void on_notify(void *opaque)
{
}

static const SlirpCb callbacks = {
    .send_packet = on_send_packet,
    .guest_error = on_guest_error,
    .clock_get_ns = on_clock,
    .timer_new = on_timer_new,
    .timer_free = on_timer_free,
    .timer_mod = on_timer_mod,
    .register_poll_fd = on_poll_fd,
    .unregister_poll_fd = on_poll_fd,
    .notify = on_notify,
};

/* Waiting. */

static short poll_events(int slirp_events)
{
    return (short)((slirp_events & SLIRP_POLL_IN ? POLLIN : 0) |
                   (slirp_events & SLIRP_POLL_OUT ? POLLOUT : 0) |
                   (slirp_events & SLIRP_POLL_PRI ? POLLPRI : 0));
}

/* The index, which libslirp gives back; -1: not now, that connection waits for its turn. */
static int on_add_poll(int fd, int events, void *opaque)
{
    struct relay *relay = opaque;

    if (relay->fd_count == POLL_FDS_MAX || relay->blocked_ms > 0)
        return -1;
    relay->fds[relay->fd_count] = (struct pollfd){ .fd = fd, .events = poll_events(events) };
    return relay->fd_count++;
}

static int on_get_revents(int index, void *opaque)
{
    struct relay *relay = opaque;
    short events = index < 0 ? 0 : relay->fds[index].revents;

    return (events & POLLIN ? SLIRP_POLL_IN : 0) | (events & POLLOUT ? SLIRP_POLL_OUT : 0) |
           (events & POLLPRI ? SLIRP_POLL_PRI : 0) | (events & POLLERR ? SLIRP_POLL_ERR : 0) |
           (events & POLLHUP ? SLIRP_POLL_HUP : 0);
}

static bool is_for_name_server(const struct frame *frame)
{
    return frame->destination.port == DNS_PORT &&
           (address_equal(frame->destination.address, address_v4(NAME_SERVER)) ||
            address_equal(frame->destination.address, name_server6));
}

static void relay_input(struct relay *relay, const uint8_t *data, size_t size)
{
    struct frame frame;

    frame_parse(data, size, &frame);
    if (!frame_wanted(&frame))
        return;
    relay_count(relay, &frame);
    own_resolvers_set_asking(is_for_name_server(&frame));
    slirp_input(relay->slirp, data, (int)size);
    own_resolvers_set_asking(false);
}

/* 0, or -errno when there is no guest any more. */
static int relay_read_frames(struct relay *relay)
{
    static uint8_t data[FRAME_BYTES_MAX];

    for (int i = 0; i < FRAMES_A_TURN; i++) {
        ssize_t size = recv(relay->options.frames_fd, data, sizeof(data), MSG_DONTWAIT);

        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return errno == EAGAIN ? 0 : -errno;
        relay_input(relay, data, (size_t)size);
    }
    return 0;
}

static int relay_turn(struct relay *relay)
{
    uint32_t timeout_ms = UINT32_MAX;
    int wait_ms, ready;

    relay->blocked_ms = relay_blocked_ms(relay);
    relay->fds[0] = (struct pollfd){ .fd = relay->options.frames_fd,
                                     .events = relay->blocked_ms > 0 ? 0 : POLLIN };
    relay->fd_count = 1;
    slirp_pollfds_fill(relay->slirp, &timeout_ms, on_add_poll, relay);
    wait_ms = relay_timers_wait_ms(&relay->timers);
    if (relay->blocked_ms > 0 && (wait_ms < 0 || relay->blocked_ms < wait_ms))
        wait_ms = relay->blocked_ms;
    if (timeout_ms < INT32_MAX && (wait_ms < 0 || (int)timeout_ms < wait_ms))
        wait_ms = (int)timeout_ms;
    ready = poll(relay->fds, (nfds_t)relay->fd_count, wait_ms);
    if (ready < 0 && errno != EINTR)
        return -errno;
    slirp_pollfds_poll(relay->slirp, ready < 0, on_get_revents, relay);
    relay_timers_run(&relay->timers);
    return relay->fds[0].revents ? relay_read_frames(relay) : 0;
}

static Slirp *relay_slirp(struct relay *relay)
{
    SlirpConfig config = {
        .version = 1,
        .in_enabled = true,
        .vnetwork.s_addr = htonl(0x0a000200),
        .vnetmask.s_addr = htonl(0xffffff00),
        .vhost.s_addr = htonl(0x0a000202),
        .vnameserver.s_addr = htonl(NAME_SERVER),
        .vdhcp_start.s_addr = htonl(0x0a00020f),
        .in6_enabled = relay->options.ipv6,
        .vprefix_len = 64,
        .if_mtu = FRAME_MTU,
        .if_mru = FRAME_TCP_MTU, /* the lower one bounds TCP, either way */
    };

    if (inet_pton(AF_INET6, IPV6_PREFIX, &config.vprefix_addr6) != 1 ||
        inet_pton(AF_INET6, IPV6_PREFIX "2", &config.vhost6) != 1 ||
        inet_pton(AF_INET6, IPV6_PREFIX "3", &config.vnameserver6) != 1)
        return NULL;
    return slirp_new(&config, &callbacks, relay);
}

int relay_run(const struct relay_options *options)
{
    static struct relay relay;
    const struct timeval send_limit = { .tv_sec = 1 };
    int result = 0;

    relay.options = *options;
    list_init(&relay.timers);
    relay.activity = activity_new();
    relay.slirp = relay.activity ? relay_slirp(&relay) : NULL;
    if (!relay.slirp ||
        setsockopt(options->frames_fd, SOL_SOCKET, SO_SNDTIMEO, &send_limit,
                   sizeof(send_limit)) < 0 ||
        fcntl(options->report_fd, F_SETFL, O_NONBLOCK) < 0) {
        log_event(LOG_ERROR, "start_failed", log_text("error", strerror(errno)));
        return EXIT_FAILURE;
    }
    while (result == 0)
        result = relay_turn(&relay);
    log_event(LOG_WARN, "relay_ended", log_text("error", strerror(-result)));
    slirp_cleanup(relay.slirp);
    activity_free(relay.activity);
    return EXIT_FAILURE;
}
