/* supervise.c - see supervise.h. A process moves only in managed_set_state(). */
#include "supervise.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "log.h"
#include "output.h"
#include "proc.h"
#include "program.h"
#include "router_limits.h"

enum managed_state {
    MANAGED_IDLE,     /* no process: to be started, or no program was found */
    MANAGED_RUNNING,  /* the process of the configured adapter */
    MANAGED_WAITING,  /* it ended; the timer starts the next */
    MANAGED_RETIRING, /* another adapter is configured; its calls in flight still run */
    MANAGED_STOPPING, /* it was told to end; the timer kills it */
    MANAGED_STATE_MAX
};

static const char *const state_texts[] = {
    [MANAGED_IDLE] = "idle",         [MANAGED_RUNNING] = "running",
    [MANAGED_WAITING] = "waiting",   [MANAGED_RETIRING] = "retiring",
    [MANAGED_STOPPING] = "stopping",
};
static_assert(ARRAY_SIZE(state_texts) == MANAGED_STATE_MAX, "a text for each state");

static const bool moves[MANAGED_STATE_MAX][MANAGED_STATE_MAX] = {
    [MANAGED_IDLE] = { [MANAGED_RUNNING] = true, [MANAGED_WAITING] = true },
    [MANAGED_RUNNING] = { [MANAGED_WAITING] = true,
                          [MANAGED_RETIRING] = true,
                          [MANAGED_STOPPING] = true },
    [MANAGED_WAITING] = { [MANAGED_RUNNING] = true, [MANAGED_WAITING] = true },
    [MANAGED_RETIRING] = { [MANAGED_RUNNING] = true, [MANAGED_STOPPING] = true },
};

/* One adapter that we start. */
struct managed {
    struct list node;
    struct supervise *supervise;
    char *name;
    char **argv; /* NULL: no program was found */
    /* RETIRING: its connection, whose `idle` is ours. Borrowed; NULL else. */
    struct adapter *adapter;
    bool keeps_name; /* RETIRING: it serves until its successor has connected */
    enum managed_state state;
    struct loop_child *child;
    struct loop_timer *timer;
    uint64_t started_ms;
    unsigned failures; /* in a row */
    bool started_before;
};

struct supervise {
    struct router *router;
    const char *url;
    struct supervise_timing timing;
    struct list managed; /* the current one and those that are on their way out */
    struct managed *current;
    struct list outputs;
    bool stopping;
    struct loop_notice stopped; /* deferred: all are gone */
    void (*done)(void *ctx);
    void *done_ctx;
};

static void managed_set_state(struct managed *managed, enum managed_state state)
{
    assert(moves[managed->state][state]);
    log_event(LOG_DEBUG, "managed_state", log_text("adapter", managed->name),
              log_text("from", state_texts[managed->state]),
              log_text("to", state_texts[state]));
    managed->state = state;
}

/* The connection that RETIRING owns is nobody's again. */
static void managed_let_go(struct managed *managed)
{
    if (managed->adapter)
        managed->adapter->idle = NULL;
    managed->adapter = NULL;
}

static void managed_free(struct managed *managed)
{
    struct supervise *supervise = managed->supervise;

    if (supervise->current == managed)
        supervise->current = NULL;
    list_remove(&managed->node);
    managed_let_go(managed);
    loop_child_free(managed->child);
    loop_timer_free(managed->timer);
    program_free(managed->argv);
    free(managed->name);
    free(managed);
    if (supervise->stopping && list_empty(&supervise->managed))
        loop_defer(supervise->router->loop, &supervise->stopped);
}

/* Back-off. */

/* A quarter more or less, so that many routers do not start many adapters at once. */
static uint32_t with_jitter(uint32_t delay_ms)
{
    uint32_t chance = 0;

    if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) != sizeof(chance))
        chance = UINT32_MAX / 2; /* no jitter then */
    return delay_ms - delay_ms / 4 + (uint32_t)((uint64_t)chance * (delay_ms / 2) >> 32);
}

static void managed_wait(struct managed *managed)
{
    const struct supervise_timing *timing = &managed->supervise->timing;
    uint32_t delay_ms = timing->backoff_min_ms;

    if (loop_now_ms(managed->supervise->router->loop) - managed->started_ms >=
        SUPERVISE_STEADY_MS)
        managed->failures = 0;
    for (unsigned i = 0; i < managed->failures && delay_ms < timing->backoff_max_ms; i++)
        delay_ms *= 2;
    if (delay_ms > timing->backoff_max_ms)
        delay_ms = timing->backoff_max_ms;
    managed->failures++;
    managed_set_state(managed, MANAGED_WAITING);
    loop_timer_arm(managed->timer, with_jitter(delay_ms));
}

/* Processes. */

static void log_exit(const struct managed *managed, int status)
{
    bool known = status != LOOP_CHILD_STATUS_UNKNOWN;
    bool expected = managed->state == MANAGED_STOPPING;

    log_event(expected ? LOG_INFO : LOG_WARN, "adapter_exited",
              log_text("adapter", managed->name),
              log_int("exit_code", known && WIFEXITED(status) ? WEXITSTATUS(status) : -1),
              log_int("signal", known && WIFSIGNALED(status) ? WTERMSIG(status) : 0));
}

/* For callers, who get S301 meanwhile. Arguments of the program may be secret and stay away. */
static void note_exit(const struct managed *managed, int status)
{
    struct binding *binding = &managed->supervise->router->binding;
    struct span name = span_of_text(managed->name);

    if (status == LOOP_CHILD_STATUS_UNKNOWN)
        binding_note_absence(binding, name, "its process has ended");
    else if (WIFSIGNALED(status))
        binding_note_absence(binding, name, "its process was ended by signal %d (%s)",
                             WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        binding_note_absence(binding, name, "its process ended with exit code %d",
                             WEXITSTATUS(status));
}

static void on_ended(void *ctx, int wait_status)
{
    struct managed *managed = ctx;

    log_exit(managed, wait_status);
    if (managed->state == MANAGED_RUNNING)
        note_exit(managed, wait_status);
    loop_child_free(take_ptr(managed->child));
    if (managed->state == MANAGED_RUNNING)
        managed_wait(managed);
    else
        managed_free(managed);
}

static int managed_spawn(struct managed *managed, int output_fd)
{
    struct supervise *supervise = managed->supervise;
    struct router *router = supervise->router;
    const struct proc_fd fds[] = { { output_fd, STDOUT_FILENO }, { output_fd, STDERR_FILENO } };
    struct proc_spec spec = {
        .program = managed->argv[0],
        .argv = (const char *const *)managed->argv,
        .fds = fds,
        .fd_count = ARRAY_SIZE(fds),
        .new_session = true, /* a terminal's ^C is the router's to hand on */
        .die_with_parent = true,
    };
    char **environment;
    pid_t pid;
    int result = program_environment(supervise->url, router->settings->path, &environment);

    if (result < 0)
        return result;
    spec.environment = (const char *const *)environment;
    result = loop_spawn(router->loop, &spec, on_ended, managed, &pid, &managed->child);
    program_free(environment);
    if (result == 0)
        log_event(LOG_INFO, "adapter_started", log_text("adapter", managed->name),
                  log_text("program", managed->argv[0]), log_int("pid", pid));
    return result;
}

static void managed_start(struct managed *managed)
{
    struct supervise *supervise = managed->supervise;
    struct router *router = supervise->router;
    _cleanup_close_ int output_fd = -1;
    int result = output_open(router->loop, managed->name, &supervise->outputs, &output_fd);

    managed->started_ms = loop_now_ms(router->loop);
    if (managed->started_before)
        router->metrics.adapter_restarts++;
    managed->started_before = true;
    if (result == 0)
        result = managed_spawn(managed, output_fd);
    if (result == 0) {
        if (!router->binding.absence[0])
            binding_note_absence(&router->binding, span_of_text(managed->name),
                                 "its process was started and has not said hello yet");
        managed_set_state(managed, MANAGED_RUNNING);
        return;
    }
    binding_note_absence(&router->binding, span_of_text(managed->name),
                         "%s cannot be started: %s", managed->argv[0], strerror(-result));
    log_event(LOG_ERROR, "adapter_start_failed", log_text("adapter", managed->name),
              log_text("program", managed->argv[0]), log_text("why", strerror(-result)));
    managed_wait(managed);
}

static void on_timer(void *ctx)
{
    struct managed *managed = ctx;

    if (managed->state == MANAGED_WAITING) {
        managed_start(managed);
    } else if (managed->state == MANAGED_STOPPING) {
        log_event(LOG_WARN, "adapter_killed", log_text("adapter", managed->name));
        (void)loop_child_kill(managed->child, SIGKILL); /* -ESRCH: its end is queued */
    }
}

/* Ending. */

/* Whoever has the name, unless it is known to be another process. */
static struct adapter *adapter_of(const struct managed *managed)
{
    struct supervise *supervise = managed->supervise;
    struct adapter *adapter = adapter_find(&supervise->router->adapters,
                                           span_of_text(managed->name));

    LIST_FOREACH(node, &supervise->managed)
    {
        if (adapter && LIST_ENTRY(node, struct managed, node)->adapter == adapter)
            return NULL;
    }
    return adapter;
}

/* What is ending gets no new call, even if its name is configured again before it is gone. */
static void managed_stop(struct managed *managed)
{
    struct adapter *adapter = managed->adapter ? managed->adapter : adapter_of(managed);

    managed_let_go(managed);
    if (adapter) {
        adapter->tenure = ADAPTER_ENDS;
        binding_lost(&managed->supervise->router->binding, adapter);
    }
    managed_set_state(managed, MANAGED_STOPPING);
    loop_timer_arm(managed->timer, managed->supervise->timing.stop_ms);
    (void)loop_child_kill(managed->child, SIGTERM); /* -ESRCH: its end is queued */
}

/* The last call in flight has ended, the successor has come, or the connection is lost. */
static void on_idle(void *ctx)
{
    struct managed *managed = ctx;
    struct adapter *adapter = managed->adapter;

    if (managed->keeps_name && adapter->link && adapter->tenure == ADAPTER_RETIRES)
        return;
    managed_stop(managed);
}

/* Another program is wanted; KEEPS_NAME: under the same name. */
static void managed_retire(struct managed *managed, bool keeps_name)
{
    struct adapter *adapter = adapter_of(managed);

    if (managed->supervise->current == managed)
        managed->supervise->current = NULL;
    if (managed->state != MANAGED_RUNNING) {
        managed_free(managed);
        return;
    }
    if (!adapter || (adapter->in_flight == 0 && !keeps_name)) {
        managed_stop(managed);
        return;
    }
    managed_set_state(managed, MANAGED_RETIRING);
    managed->adapter = adapter;
    managed->keeps_name = keeps_name;
    adapter->tenure = ADAPTER_RETIRES;
    adapter->idle = on_idle;
    adapter->idle_ctx = managed;
}

/* What the settings want. */

static struct managed *find_retiring(struct supervise *supervise, const char *name,
                                     char *const *argv)
{
    LIST_FOREACH(node, &supervise->managed)
    {
        struct managed *managed = LIST_ENTRY(node, struct managed, node);

        if (managed->state == MANAGED_RETIRING && managed->adapter->tenure == ADAPTER_RETIRES &&
            strcmp(managed->name, name) == 0 && program_equal(managed->argv, argv))
            return managed;
    }
    return NULL;
}

static int managed_new(struct supervise *supervise, const char *name, char **own_argv,
                       struct managed **ret_managed)
{
    struct managed *managed = calloc(1, sizeof(*managed));
    int result;

    if (!managed) {
        program_free(own_argv);
        return -ENOMEM;
    }
    *managed =
        (struct managed){ .supervise = supervise, .name = strdup(name), .argv = own_argv };
    list_append(&supervise->managed, &managed->node);
    result = managed->name
                 ? loop_timer_new(supervise->router->loop, on_timer, managed, &managed->timer)
                 : -ENOMEM;
    if (result < 0)
        managed_free(managed);
    else
        *ret_managed = managed;
    return result;
}

static void supervise_begin(struct supervise *supervise, const char *name, char **own_argv)
{
    struct managed *managed = find_retiring(supervise, name, own_argv);
    bool found = own_argv != NULL;

    if (managed) { /* swapped there and back: it never stopped */
        program_free(own_argv);
        managed->adapter->tenure = ADAPTER_STAYS;
        managed_let_go(managed);
        managed_set_state(managed, MANAGED_RUNNING);
        supervise->current = managed;
        return;
    }
    if (managed_new(supervise, name, own_argv, &supervise->current) < 0) {
        log_event(LOG_ERROR, "adapter_not_managed", log_text("adapter", name),
                  log_text("why", "out of memory"));
        return;
    }
    if (found) {
        managed_start(supervise->current);
        return;
    }
    binding_note_absence(&supervise->router->binding, span_of_text(name),
                         "no program of this name was found beside the router or on PATH");
    log_event(LOG_WARN, "adapter_program_missing", log_text("adapter", name),
              log_text("effect", "waits for one to connect"));
}

void supervise_apply(struct supervise *supervise)
{
    const struct router_settings *settings = &supervise->router->settings->router;
    struct managed *current = supervise->current;
    bool wanted = settings->managed && settings->adapter && !supervise->stopping;
    char **argv = NULL;

    if (wanted && program_find(settings, &argv) < 0) {
        log_event(LOG_ERROR, "adapter_not_managed", log_text("adapter", settings->adapter),
                  log_text("why", "out of memory"));
        return;
    }
    if (wanted && current && strcmp(current->name, settings->adapter) == 0 &&
        program_equal(current->argv, argv)) {
        program_free(argv);
        return;
    }
    if (current)
        managed_retire(current, wanted && strcmp(current->name, settings->adapter) == 0);
    if (wanted)
        supervise_begin(supervise, settings->adapter, argv);
}

/* Life. */

static void on_stopped(void *ctx)
{
    struct supervise *supervise = ctx;

    supervise->done(supervise->done_ctx);
}

void supervise_stop(struct supervise *supervise, void (*done)(void *ctx), void *ctx)
{
    supervise->stopping = true;
    supervise->done = done;
    supervise->done_ctx = ctx;
    if (list_empty(&supervise->managed))
        loop_defer(supervise->router->loop, &supervise->stopped);
    LIST_FOREACH(node, &supervise->managed)
    {
        struct managed *managed = LIST_ENTRY(node, struct managed, node);

        if (managed->state == MANAGED_RUNNING || managed->state == MANAGED_RETIRING)
            managed_stop(managed);
        else if (managed->state != MANAGED_STOPPING)
            managed_free(managed);
    }
}

static uint32_t or_limit(uint32_t value, uint32_t limit)
{
    return value ? value : limit;
}

int supervise_new(struct router *router, const char *url, const struct supervise_timing *timing,
                  struct supervise **ret_supervise)
{
    struct supervise *supervise = calloc(1, sizeof(*supervise));

    if (!supervise)
        return -ENOMEM;
    *supervise = (struct supervise){ .router = router, .url = url };
    supervise->timing = (struct supervise_timing){
        .backoff_min_ms = or_limit(timing->backoff_min_ms, SUPERVISE_BACKOFF_MIN_MS),
        .backoff_max_ms = or_limit(timing->backoff_max_ms, SUPERVISE_BACKOFF_MAX_MS),
        .stop_ms = or_limit(timing->stop_ms, SUPERVISE_STOP_MS),
    };
    list_init(&supervise->managed);
    list_init(&supervise->outputs);
    loop_notice_init(&supervise->stopped, on_stopped, supervise);
    *ret_supervise = supervise;
    return 0;
}

void supervise_free(struct supervise *supervise)
{
    if (!supervise)
        return;
    supervise->stopping = false; /* nobody is told any more */
    while (!list_empty(&supervise->managed)) {
        struct managed *managed = LIST_ENTRY(supervise->managed.next, struct managed, node);

        if (managed->child)
            (void)loop_child_kill(managed->child, SIGKILL); /* -ESRCH: it has ended */
        managed_free(managed);
    }
    loop_notice_cancel(supervise->router->loop, &supervise->stopped);
    output_close_all(&supervise->outputs);
    free(supervise);
}
