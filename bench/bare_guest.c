/* bare_guest.c - see bare_guest.h. */
#include "bare_guest.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent_link.h"
#include "loop.h"

#define WAIT_MS 300000u
#define SOME_TEXT(text) ((char *)(uintptr_t)(text)) /* only read */

enum bare_guest_state {
    BARE_GUEST_BUSY, /* greeted, or a program runs */
    BARE_GUEST_IDLE,
    BARE_GUEST_FAILED,
};

struct bare_guest {
    struct loop *loop;
    struct loop_timer *timer;
    struct agent_link *link;
    struct agent_call *call;
    struct buf *output;
    enum bare_guest_state state;
};

static void on_greeted(void *ctx, const struct guest_hello *hello)
{
    struct bare_guest *guest = ctx;
    const struct guest_configure configure = {
        .seed = SOME_TEXT(""),
        .hostname = SOME_TEXT("bare"),
        .machine_id = SOME_TEXT(""),
        .has_address = true,
        .address = SOME_TEXT("10.0.2.15/24"),
        .has_gateway = true,
        .gateway = SOME_TEXT("10.0.2.2"),
    };
    agent_link_configure(guest->link, &configure);
}

static void on_ready(void *ctx)
{
    struct bare_guest *guest = ctx;
    guest->state = BARE_GUEST_IDLE;
}

static void on_silent(void *ctx)
{
}

static void on_closed(void *ctx, const char *reason)
{
    struct bare_guest *guest = ctx;
    fprintf(stderr, "sandbox-bench: a bare machine: %s\n", reason);
    guest->state = BARE_GUEST_FAILED;
}

static const struct agent_link_events link_events = { .greeted = on_greeted,
                                                      .ready = on_ready,
                                                      .silent = on_silent,
                                                      .awake = on_silent,
                                                      .closed = on_closed };

static void on_late(void *ctx)
{
    struct bare_guest *guest = ctx;
    fprintf(stderr, "sandbox-bench: a bare machine does not answer\n");
    guest->state = BARE_GUEST_FAILED;
}

static int await(struct bare_guest *guest)
{
    loop_timer_arm(guest->timer, WAIT_MS);
    while (guest->state == BARE_GUEST_BUSY)
        if (loop_turn(guest->loop, -1) < 0)
            return -1;
    loop_timer_disarm(guest->timer);
    return guest->state == BARE_GUEST_IDLE ? 0 : -1;
}

int bare_guest_new(struct bare *bare, struct bare_guest **ret_guest)
{
    _cleanup_(bare_guest_freep)
    struct bare_guest *guest = calloc(1, sizeof(*guest));
    int fd = guest ? bare_take_agent(bare) : -1;
    if (fd < 0)
        return -1;
    if (loop_new(&guest->loop) < 0) {
        closep(&fd);
        return -1;
    }
    if (agent_link_new(guest->loop, fd, &link_events, guest, &guest->link) < 0 ||
        loop_timer_new(guest->loop, on_late, guest, &guest->timer) < 0 || await(guest) < 0)
        return -1;
    *ret_guest = take_ptr(guest);
    return 0;
}

void bare_guest_free(struct bare_guest *guest)
{
    if (!guest)
        return;
    agent_link_free(guest->link);
    loop_timer_free(guest->timer);
    loop_free(guest->loop);
    free(guest);
}

/* A program. */

static void on_data(void *ctx, unsigned stream, const uint8_t *data, size_t size)
{
    struct bare_guest *guest = ctx;
    (void)buf_append(guest->output, data, size); /* too little is noticed by who reads it */
    agent_call_grant(guest->call, stream, size);
}

static void on_ended(void *ctx, const void *reply, struct sandbox_error *err, bool lost)
{
    struct bare_guest *guest = ctx;
    const struct guest_exec_reply *exec = reply;
    guest->call = NULL;
    if (guest->state == BARE_GUEST_BUSY)
        guest->state = exec && exec->exit_code == 0 ? BARE_GUEST_IDLE : BARE_GUEST_FAILED;
}

int bare_guest_run(struct bare_guest *guest, const char *const *argv, struct buf *output)
{
    static const struct agent_call_events events = { .data = on_data, .ended = on_ended };
    struct guest_exec request = { .timeout_ms = WAIT_MS,
                                  .argv.items = (char **)(uintptr_t)argv };
    struct sandbox_error err = { 0 };
    while (argv[request.argv.count])
        request.argv.count++;
    guest->output = output;
    guest->state = BARE_GUEST_BUSY;
    int ret = agent_call(guest->link, GUEST_exec, &request, &events, guest, &guest->call, &err);
    sandbox_error_done(&err);
    return ret < 0 ? -1 : await(guest);
}
