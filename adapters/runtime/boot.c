/* boot.c - see boot.h. */
#include "boot.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "guest_configure.h"
#include "log.h"
#include "sandbox_state.h"

#define CONSOLE_MAX_BYTES 4096

/* A boot under way. */
struct boot {
    struct sandbox *sandbox;
    struct boot_spec spec;
    void (*done)(void *ctx, struct sandbox_error *err);
    void *ctx;
    struct loop_timer *timer;
    struct guest_configure configure; /* owned; made when the agent's socket came */
    struct stop_wait end;
    char failure[SANDBOX_WHY_MAX]; /* the first; "": none */
    char console[CONSOLE_MAX_BYTES + 1];
};

static void boot_free(struct boot *boot)
{
    if (!boot)
        return;
    stop_wait_cancel(&boot->end);
    loop_timer_free(boot->timer);
    codec_free(&type_guest_configure, &boot->configure);
    free(boot);
}
DEFINE_CLEANUP(struct boot *, boot_free)

/* Failing: the first cause counts, the machine ends, then the caller is told. */

static void boot_failed(struct sandbox *sandbox)
{
    _cleanup_(boot_freep)
    struct boot *boot = take_ptr(sandbox->boot);
    struct sandbox_error err = { 0 };

    if (boot->console[0])
        (void)sandbox_error_set(&err, S300, "sandbox %s, boot: %s; end of the console:\n%s",
                                sandbox->id, boot->failure, boot->console);
    else
        (void)sandbox_error_set(&err, S300, "sandbox %s, boot: %s", sandbox->id, boot->failure);
    sandbox_error_set_outcome(&err, OUTCOME_NEVER_RAN);
    boot->done(boot->ctx, &err);
    sandbox_error_done(&err);
}

static void on_end(void *ctx, struct sandbox_error *err)
{
    struct boot *boot = ctx;

    boot_failed(boot->sandbox);
}

static void boot_note(struct boot *boot, const char *failure)
{
    if (!boot->failure[0])
        (void)snprintf(boot->failure, sizeof(boot->failure), "%s", failure);
}

static void boot_fail(struct boot *boot, const char *failure)
{
    char why[SANDBOX_WHY_MAX];

    boot_note(boot, failure);
    (void)snprintf(why, sizeof(why), "its boot failed: %.400s", boot->failure);
    sandbox_stop(boot->sandbox, why, list_empty(&boot->end.node) ? &boot->end : NULL);
}

void boot_give_up(struct sandbox *sandbox, const char *why)
{
    assert(sandbox->boot);
    boot_fail(sandbox->boot, why);
}

static void on_timer(void *ctx)
{
    struct boot *boot = ctx;
    char failure[96];

    (void)snprintf(failure, sizeof(failure),
                   "the guest agent did not answer within boot_timeout_ms %u",
                   boot->spec.timeout_ms);
    boot_fail(boot, failure);
}

/* The link. */

static void on_greeted(void *ctx, const struct guest_hello *hello)
{
    struct sandbox *sandbox = ctx;
    struct boot *boot = sandbox->boot;
    char failure[128];

    if (!boot || sandbox->state != SANDBOX_CREATING)
        return;
    log_event(LOG_DEBUG, "guest_hello", log_text("sandbox", sandbox->id),
              log_text("agent", hello->agent_version));
    if (hello->protocol_major != AGENT_LINK_PROTOCOL_MAJOR) {
        (void)snprintf(failure, sizeof(failure),
                       "the guest agent speaks protocol %u.%u, this adapter %u",
                       hello->protocol_major, hello->protocol_minor, AGENT_LINK_PROTOCOL_MAJOR);
        boot_fail(boot, failure);
        return;
    }
    guest_configure_set_time(&boot->configure);
    agent_link_configure(sandbox->link, &boot->configure);
}

/* What the guest has put off is done when nobody waits for a machine any more. */
static void boot_settle(struct sandbox *sandbox)
{
    const struct backend_ops *ops = adapter_ops(sandbox->adapter);

    if (ops->machine_ready && sandbox->state == SANDBOX_READY)
        ops->machine_ready(sandbox->machine);
}

static void on_ready(void *ctx)
{
    struct sandbox *sandbox = ctx;
    struct boot *boot;

    if (sandbox->state != SANDBOX_CREATING)
        return; /* too late: it is being stopped */
    boot = take_ptr(sandbox->boot);
    sandbox_set_state(sandbox, SANDBOX_READY);
    sandbox_touch(sandbox);
    (void)sandbox_ref(sandbox);
    boot->done(boot->ctx, NULL);
    boot_free(boot);
    boot_settle(sandbox);
    sandbox_settle_waits(sandbox);
    sandbox_unref(sandbox);
}

static void on_settled(void *ctx)
{
    struct sandbox *sandbox = ctx;

    if (sandbox->machine)
        adapter_ops(sandbox->adapter)->machine_settled(sandbox->machine);
}

static void on_silent(void *ctx)
{
    struct sandbox *sandbox = ctx;

    if (sandbox->state == SANDBOX_READY)
        sandbox_set_state(sandbox, SANDBOX_UNREACHABLE);
    else if (sandbox->state == SANDBOX_STOPPING)
        sandbox->stop.back = SANDBOX_UNREACHABLE;
}

static void on_awake(void *ctx)
{
    struct sandbox *sandbox = ctx;

    if (sandbox->state == SANDBOX_UNREACHABLE)
        sandbox_set_state(sandbox, SANDBOX_READY);
    else if (sandbox->state == SANDBOX_STOPPING)
        sandbox->stop.back = SANDBOX_READY;
}

static void on_closed(void *ctx, const char *reason)
{
    struct sandbox *sandbox = ctx;

    if (sandbox->boot && sandbox->state == SANDBOX_CREATING)
        boot_fail(sandbox->boot, reason);
    sandbox_link_closed(sandbox, reason);
}

static const struct agent_link_events link_events = {
    .greeted = on_greeted,
    .ready = on_ready,
    .settled = on_settled,
    .silent = on_silent,
    .awake = on_awake,
    .closed = on_closed,
};

/* The machine. */

static void on_agent(void *ctx, int own_fd, int own_mailbox_fd,
                     const struct machine_network *network)
{
    _cleanup_close_ int mailbox_fd = own_mailbox_fd;
    struct sandbox *sandbox = ctx;
    int result;

    if (sandbox->state != SANDBOX_CREATING || sandbox->link) {
        closep(&own_fd);
        return;
    }
    result = guest_configure_fill(&sandbox->boot->configure, sandbox->id, sandbox->image,
                                  sandbox->boot->spec.env,
                                  sandbox->spec.network ? network : NULL);
    if (result < 0)
        closep(&own_fd);
    else
        result = agent_link_new(adapter_loop(sandbox->adapter), own_fd, &link_events, sandbox,
                                &sandbox->link);
    if (result == 0)
        agent_link_set_mailbox(sandbox->link, take_fd(&mailbox_fd));
    if (result < 0)
        boot_fail(sandbox->boot, strerror(-result));
}

static void on_settle(void *ctx)
{
    struct sandbox *sandbox = ctx;

    if (sandbox->link)
        agent_link_settle(sandbox->link);
}

/* Console and reason of a machine that ended while it booted. */
static void boot_machine_gone(struct boot *boot, const char *reason, const char *console)
{
    size_t size = strlen(console);

    boot_note(boot, reason);
    if (size > CONSOLE_MAX_BYTES)
        console += size - CONSOLE_MAX_BYTES; /* its end counts */
    (void)snprintf(boot->console, sizeof(boot->console), "%s", console);
}

static void on_gone(void *ctx, const char *reason, const char *console)
{
    struct sandbox *sandbox = ctx;
    char why[SANDBOX_WHY_MAX];

    (void)sandbox_ref(sandbox);
    if (sandbox->boot)
        boot_machine_gone(sandbox->boot, reason, console);
    (void)snprintf(why, sizeof(why), "%s: %.400s",
                   sandbox->boot ? "its boot failed" : "its machine ended",
                   sandbox->boot ? sandbox->boot->failure : reason);
    sandbox_machine_gone(sandbox, why);
    if (sandbox->boot)
        boot_failed(sandbox);
    sandbox_unref(sandbox);
}

static const struct machine_events machine_events = { .agent = on_agent,
                                                      .settle = on_settle,
                                                      .gone = on_gone };

static int boot_new(struct sandbox *sandbox, const struct boot_spec *spec,
                    struct boot **ret_boot)
{
    _cleanup_(boot_freep)
    struct boot *boot = calloc(1, sizeof(*boot));
    int result;

    if (!boot)
        return -ENOMEM;
    boot->sandbox = sandbox;
    boot->spec = *spec;
    stop_wait_init(&boot->end, on_end, boot);
    result = loop_timer_new(adapter_loop(sandbox->adapter), on_timer, boot, &boot->timer);
    if (result < 0)
        return result;
    *ret_boot = take_ptr(boot);
    return 0;
}

int boot_start(struct sandbox *sandbox, const struct boot_spec *spec,
               void (*done)(void *ctx, struct sandbox_error *err), void *ctx,
               struct sandbox_error *err)
{
    _cleanup_(boot_freep)
    struct boot *boot = NULL;
    const struct machine_spec machine = {
        .id = sandbox->id,
        .image = sandbox->image,
        .cpus = sandbox->spec.cpus,
        .memory_mb = sandbox->spec.memory_mb,
        .disk_mb = spec->disk_mb,
        .network = sandbox->spec.network,
        .boot_timeout_ms = spec->timeout_ms,
        .lasting = spec->lasting,
    };
    int result = boot_new(sandbox, spec, &boot);

    assert(sandbox->state == SANDBOX_CREATING && sandbox->image);
    if (result < 0)
        return sandbox_error_set(err, S300, "sandbox %s, boot: %s", sandbox->id,
                                 strerror(-result));
    boot->done = done;
    boot->ctx = ctx;
    if (adapter_ops(sandbox->adapter)
            ->machine_start(adapter_backend(sandbox->adapter), &machine, &machine_events,
                            sandbox, &sandbox->machine, err) < 0)
        return -1;
    loop_timer_arm(boot->timer, spec->timeout_ms);
    sandbox->boot = take_ptr(boot);
    return 0;
}
