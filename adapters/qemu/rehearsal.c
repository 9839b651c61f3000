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
    struct agent_call *call; /* of the step that goes on */
    struct loop_timer *timer;
    struct loop_notice end; /* deferred: the call's owner is the link, not we */
    enum rehearsal_extent extent;
    size_t next; /* step */
    uint64_t began_ms;
    rehearsal_done_fn done;
    void *ctx;
    const char *error;
};

/* What `run` does: a file is written and given to the interpreter, of which an image has one or
 * none. Python twice: what the first start leaves to be translated is most of a second. */
#define FILE_PATH "/tmp/.rehearsal"
#define FILE_TEXT "0\n" /* does nothing in either language */
static const char *const programs[][3] = {
    { "/bin/true" },
    { "python3", FILE_PATH },
    { "python3", FILE_PATH },
    { "node", FILE_PATH },
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

    log_event(LOG_DEBUG, "rehearsed", log_uint("steps", rehearsal->next),
              log_uint("ms", loop_now_ms(rehearsal->loop) - rehearsal->began_ms));
    rehearsal->done(rehearsal->ctx, rehearsal->error);
}

/* Steps, one after the other. */

static void rehearsal_go_on(struct rehearsal *rehearsal);

static void on_data(void *ctx, unsigned stream, const uint8_t *data, size_t size)
{
    struct rehearsal *rehearsal = ctx;

    agent_call_grant(rehearsal->call, stream, size); /* nobody wants it */
}

/* Whatever became of it: an image need not have the program. */
static void on_call_ended(void *ctx, const void *reply, struct sandbox_error *err, bool lost)
{
    struct rehearsal *rehearsal = ctx;

    rehearsal->call = NULL;
    if (lost)
        rehearsal_end(rehearsal, "the guest agent was lost in the rehearsal");
    else
        rehearsal_go_on(rehearsal);
}

static void rehearsal_call(struct rehearsal *rehearsal, enum guest_operation_id operation,
                           const void *request)
{
    static const struct agent_call_events events = { .data = on_data, .ended = on_call_ended };
    struct sandbox_error err = { 0 };

    if (agent_call(rehearsal->link, operation, request, &events, rehearsal, &rehearsal->call,
                   &err) < 0)
        rehearsal_end(rehearsal, "a call cannot be rehearsed");
    sandbox_error_done(&err);
}

static void rehearse_write(struct rehearsal *rehearsal)
{
    const struct fs_write_request request = { .sandbox_id = (char *)(uintptr_t)NAME,
                                              .path = (char *)(uintptr_t)FILE_PATH,
                                              .mode = (char *)(uintptr_t) "0644" };

    rehearsal_call(rehearsal, GUEST_fs_write, &request);
    if (!rehearsal->call)
        return;
    (void)agent_call_write(rehearsal->call, 0, (const uint8_t *)FILE_TEXT,
                           sizeof(FILE_TEXT) - 1); /* the window is far larger */
    agent_call_end(rehearsal->call, 0, NULL);
}

static void rehearse_program(struct rehearsal *rehearsal, const char *const *argv)
{
    struct guest_exec request = { .timeout_ms = PROGRAM_TIMEOUT_MS,
                                  .argv.items = (char **)(uintptr_t)argv };

    while (argv[request.argv.count])
        request.argv.count++;
    rehearsal_call(rehearsal, GUEST_exec, &request);
}

static void rehearse_rm(struct rehearsal *rehearsal)
{
    const struct fs_rm_request request = { .sandbox_id = (char *)(uintptr_t)NAME,
                                           .path = (char *)(uintptr_t)FILE_PATH };

    rehearsal_call(rehearsal, GUEST_fs_rm, &request);
}

/* Its steps: the file, the programs, the file's end. */
static void rehearsal_go_on(struct rehearsal *rehearsal)
{
    const size_t step = rehearsal->next++;

    if (rehearsal->extent == REHEARSAL_CONFIGURE || step == ARRAY_SIZE(programs) + 2)
        rehearsal_end(rehearsal, NULL);
    else if (step == 0)
        rehearse_write(rehearsal);
    else if (step <= ARRAY_SIZE(programs))
        rehearse_program(rehearsal, programs[step - 1]);
    else
        rehearse_rm(rehearsal);
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
