/* rehearsal.c - see rehearsal.h. */
#include "rehearsal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent_link.h"
#include "codec.h"
#include "guest_configure.h"
#include "log.h"

#define TIMEOUT_MS 30000u         /* of all of it */
#define PROGRAM_TIMEOUT_MS 15000u /* of one program */
#define FIRST_MINOR 1u            /* of the agent's protocol that knows rehearsals */
#define NAME "sandbox-00000000"   /* of the host; as long as the real ones */

struct rehearsal {
    struct loop *loop;
    struct agent_link *link;
    struct agent_call *call; /* of the program that runs */
    struct loop_timer *timer;
    struct loop_notice end; /* deferred: the call's owner is the link, not we */
    enum rehearsal_extent extent;
    size_t next; /* program */
    uint64_t began_ms;
    rehearsal_done_fn done;
    void *ctx;
    const char *error;
};

/* What `run` starts; an image has one or none of them. */
static const char *const programs[][4] = {
    { "/bin/true" },
    { "python3", "-c", "pass" },
    { "node", "-e", "0" },
};

void rehearsal_free(struct rehearsal *rehearsal)
{
    if (!rehearsal)
        return;
    if (rehearsal->call)
        agent_call_abandon(rehearsal->call);
    agent_link_free(rehearsal->link);
    loop_timer_free(rehearsal->timer);
    loop_notice_cancel(rehearsal->loop, &rehearsal->end);
    free(rehearsal);
}
DEFINE_CLEANUP(struct rehearsal *, rehearsal_free)

/* The end is told when the link's own work is done. ERROR is a literal. */
static void rehearsal_end(struct rehearsal *rehearsal, const char *error)
{
    rehearsal->error = error;
    loop_timer_disarm(rehearsal->timer);
    loop_defer(rehearsal->loop, &rehearsal->end);
}

static void on_end(void *ctx)
{
    struct rehearsal *rehearsal = ctx;

    log_event(LOG_DEBUG, "rehearsed", log_uint("programs", rehearsal->next),
              log_uint("ms", loop_now_ms(rehearsal->loop) - rehearsal->began_ms));
    rehearsal->done(rehearsal->ctx, rehearsal->error);
}

/* Programs, one after the other. */

static void rehearsal_go_on(struct rehearsal *rehearsal);

static void on_data(void *ctx, unsigned stream, const uint8_t *data, size_t size)
{
    struct rehearsal *rehearsal = ctx;

    agent_call_grant(rehearsal->call, stream, size); /* nobody wants it */
}

/* Whatever became of it: an image need not have the program. */
static void on_program_ended(void *ctx, const void *reply, struct sandbox_error *err, bool lost)
{
    struct rehearsal *rehearsal = ctx;

    rehearsal->call = NULL;
    if (lost)
        rehearsal_end(rehearsal, "the guest agent was lost in the rehearsal");
    else
        rehearsal_go_on(rehearsal);
}

static const struct agent_call_events program_events = {
    .data = on_data,
    .ended = on_program_ended,
};

static void rehearsal_go_on(struct rehearsal *rehearsal)
{
    struct sandbox_error err = { 0 };
    struct guest_exec request = { .timeout_ms = PROGRAM_TIMEOUT_MS };

    if (rehearsal->extent == REHEARSAL_CONFIGURE || rehearsal->next == ARRAY_SIZE(programs)) {
        rehearsal_end(rehearsal, NULL);
        return;
    }
    request.argv.items = (char **)(uintptr_t)programs[rehearsal->next++];
    while (request.argv.items[request.argv.count])
        request.argv.count++;
    if (agent_call(rehearsal->link, GUEST_exec, &request, &program_events, rehearsal,
                   &rehearsal->call, &err) < 0)
        rehearsal_end(rehearsal, "a program cannot be rehearsed");
    sandbox_error_done(&err);
}

/* The link. */

static void on_greeted(void *ctx, const struct guest_hello *hello)
{
    struct rehearsal *rehearsal = ctx;
    struct guest_configure configure = {
        .hostname = (char *)(uintptr_t)NAME,
        .machine_id = (char *)(uintptr_t) "00000000000000000000000000000000",
        .has_rehearsal = true,
        .rehearsal = true,
    };

    if (hello->protocol_minor < FIRST_MINOR) {
        rehearsal_end(rehearsal, NULL);
        return;
    }
    if (guest_configure_fill_seed(&configure) < 0) {
        rehearsal_end(rehearsal, "there are no random bytes for a rehearsal");
        return;
    }
    guest_configure_set_time(&configure);
    agent_link_configure(rehearsal->link, &configure);
    free(configure.seed);
}

static void on_ready(void *ctx)
{
    rehearsal_go_on(ctx);
}

static void on_silent(void *ctx)
{
}

static void on_awake(void *ctx)
{
}

static void on_closed(void *ctx, const char *reason)
{
    rehearsal_end(ctx, "the guest agent broke off its rehearsal");
}

static void on_timer(void *ctx)
{
    rehearsal_end(ctx, "the rehearsal took too long");
}

int rehearsal_new(struct loop *loop, int agent_fd, enum rehearsal_extent extent,
                  rehearsal_done_fn done, void *ctx, struct rehearsal **ret_rehearsal)
{
    static const struct agent_link_events events = { .greeted = on_greeted,
                                                     .ready = on_ready,
                                                     .silent = on_silent,
                                                     .awake = on_awake,
                                                     .closed = on_closed };
    _cleanup_(rehearsal_freep)
    struct rehearsal *rehearsal = calloc(1, sizeof(*rehearsal));
    int fd, result;

    if (!rehearsal)
        return -ENOMEM;
    *rehearsal = (struct rehearsal){
        .loop = loop, .extent = extent, .began_ms = loop_now_ms(loop), .done = done, .ctx = ctx
    };
    loop_notice_init(&rehearsal->end, on_end, rehearsal);
    result = loop_timer_new(loop, on_timer, rehearsal, &rehearsal->timer);
    if (result < 0)
        return result;
    fd = fcntl(agent_fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return -errno;
    result = agent_link_new(loop, fd, &events, rehearsal, &rehearsal->link);
    if (result < 0)
        return result;
    loop_timer_arm(rehearsal->timer, TIMEOUT_MS);
    *ret_rehearsal = take_ptr(rehearsal);
    return 0;
}
