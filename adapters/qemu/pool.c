/* pool.c - see pool.h. */
#include "pool.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent_frame.h"
#include "backend_state.h"
#include "buf.h"
#include "log.h"
#include "pool_budget.h"
#include "rehearsal.h"
#include "vm.h"

#define PING_ID 1u
#define FRAME_MAX_BYTES 64u    /* a PONG is far below */
#define REFILL_DELAY_MS 250u   /* whoever took one has work for the processors first */
#define FAILURE_DELAY_MS 1000u /* doubled by each failure in a row */
#define FAILURES_MAX 6u
#define HOLD_MS 20000u /* of a machine that rehearses */

enum entry_state {
    ENTRY_STARTING,   /* its state is being loaded */
    ENTRY_PINGED,     /* the agent was asked and has not answered yet */
    ENTRY_REHEARSING, /* it does what it will be asked for */
    ENTRY_READY,      /* may be taken */
    ENTRY_STATE_MAX
};

/* One machine. */
struct entry {
    struct list node; /* in line->entries */
    struct line *line;
    enum entry_state state;
    struct vm *vm;
    struct loop_io *io;
    struct buf in;
    struct rehearsal *rehearsal;
    uint64_t memory_kb; /* of a ready one */
};

/* The machines of one template. */
struct line {
    struct list node; /* in pool->lines, the one used last at the end */
    struct pool *pool;
    struct template *template; /* a reference */
    struct list entries;
    uint32_t count;
    uint64_t expected_kb; /* of one more; 0: not known yet */
};

struct pool {
    struct backend *backend;
    struct list lines;
    uint32_t count;
    uint64_t memory_kb;   /* of those that are ready */
    struct entry *making; /* at most one is not ready */
    unsigned failures;    /* in a row */
    struct loop_timer *refill;
    struct start_turn turn; /* of what is being made */
};

static void entry_set_state(struct entry *entry, enum entry_state state)
{
    static const unsigned moves[] = {
        [ENTRY_STARTING] = 1u << ENTRY_PINGED,
        [ENTRY_PINGED] = 1u << ENTRY_REHEARSING,
        [ENTRY_REHEARSING] = 1u << ENTRY_READY,
        [ENTRY_READY] = 0,
    };
    static_assert(ARRAY_SIZE(moves) == ENTRY_STATE_MAX, "moves of each state");

    assert(moves[entry->state] & 1u << state);
    entry->state = state;
}

/* Whatever was being made is ready, or is not made. */
static void pool_made(struct pool *pool)
{
    pool->making = NULL;
    start_turn_give(&pool->turn);
}

/* Takes it out of the pool; the machine is what is left. */
static struct vm *entry_dissolve(struct entry *entry)
{
    struct line *line = entry->line;
    struct vm *vm = entry->vm;

    if (line->pool->making == entry)
        pool_made(line->pool);
    list_remove(&entry->node);
    line->count--;
    line->pool->count--;
    line->pool->memory_kb -= entry->memory_kb;
    loop_io_free(entry->io);
    buf_done(&entry->in);
    rehearsal_free(entry->rehearsal);
    free(entry);
    return vm;
}

static void pool_refill_after(struct pool *pool, uint64_t delay_ms)
{
    if (!loop_timer_armed(pool->refill))
        loop_timer_arm(pool->refill, delay_ms);
}

static void entry_fail(struct entry *entry, const char *why)
{
    struct pool *pool = entry->line->pool;

    log_event(LOG_WARN, "pool_machine_lost", log_text("vm", vm_name(entry->vm)),
              log_text("why", why));
    if (pool->failures < FAILURES_MAX)
        pool->failures++;
    vm_free(entry_dissolve(entry));
    loop_timer_disarm(pool->refill);
    pool_refill_after(pool, (uint64_t)FAILURE_DELAY_MS << (pool->failures - 1));
}

/* Becoming ready. */

static void on_gone(void *ctx, const char *reason, const char *console)
{
    entry_fail(ctx, reason);
}

static bool is_pong(const struct buf *in)
{
    struct agent_frame frame;
    const char *reason;

    return agent_frame_decode(in->data + AGENT_FRAME_PREFIX_BYTES,
                              in->size - AGENT_FRAME_PREFIX_BYTES, &frame, &reason) == 0 &&
           frame.kind == AGENT_FRAME_PONG && frame.id == PING_ID;
}

static void entry_ready(struct entry *entry)
{
    struct line *line = entry->line;
    struct pool *pool = line->pool;
    const struct qemu_settings *settings = &pool->backend->settings;
    const uint64_t cpu_ms = pool_budget_cpu_ms(vm_pid(entry->vm));

    entry_set_state(entry, ENTRY_READY);
    pool_made(pool);
    pool->failures = 0;
    entry->memory_kb = line->expected_kb = pool_budget_memory_kb(vm_pid(entry->vm));
    log_event(LOG_DEBUG, "pool_machine_ready", log_text("vm", vm_name(entry->vm)),
              log_uint("ms", vm_start_ms(entry->vm)), log_uint("cpu_ms", cpu_ms),
              log_uint("memory_kb", entry->memory_kb));
    pool->memory_kb += entry->memory_kb;
    if (!pool_budget_has_room(pool->memory_kb - entry->memory_kb, entry->memory_kb,
                              settings->pool_memory_mb)) {
        log_event(LOG_INFO, "pool_is_full", log_uint("memory_kb", pool->memory_kb),
                  log_uint("limit_mb", settings->pool_memory_mb));
        vm_free(entry_dissolve(entry));
    }
    pool_refill_after(pool, pool_budget_rest_ms(cpu_ms, settings->pool_cpu_percent));
}

static void on_rehearsed(void *ctx, const char *error)
{
    struct entry *entry = ctx;

    rehearsal_free(take_ptr(entry->rehearsal));
    if (error)
        entry_fail(entry, error);
    else
        entry_ready(entry);
}

/* CONFIGURE is always rehearsed: it is what a create waits for. */
static void entry_rehearse(struct entry *entry)
{
    const struct backend *backend = entry->line->pool->backend;
    bool all = qemu_settings_warm_up(&backend->settings, &backend->accel) == WARM_UP_POOL;
    size_t size;
    const void *hello = template_hello(entry->line->template, &size);

    entry_set_state(entry, ENTRY_REHEARSING);
    buf_done(&entry->in);
    loop_io_free(take_ptr(entry->io)); /* whatever it says next is for others */
    if (vm_say_hello(entry->vm, hello, size) < 0 ||
        rehearsal_new(backend->loop, vm_agent_fd(entry->vm),
                      all ? REHEARSAL_PROGRAMS : REHEARSAL_CONFIGURE, on_rehearsed, entry,
                      &entry->rehearsal) < 0)
        entry_fail(entry, "the guest cannot rehearse");
}

static void on_agent(void *ctx, uint32_t events)
{
    struct entry *entry = ctx;
    uint8_t data[FRAME_MAX_BYTES];
    ssize_t size = recv(vm_agent_fd(entry->vm), data, sizeof(data), MSG_DONTWAIT);
    size_t whole;

    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size <= 0 || buf_append(&entry->in, data, (size_t)size) < 0) {
        entry_fail(entry, "the guest agent does not answer as it should");
        return;
    }
    if (entry->in.size < AGENT_FRAME_PREFIX_BYTES)
        return;
    whole = AGENT_FRAME_PREFIX_BYTES + agent_frame_size(entry->in.data);
    if (entry->in.size < whole && whole <= FRAME_MAX_BYTES)
        return;
    if (entry->in.size == whole && is_pong(&entry->in))
        entry_rehearse(entry);
    else
        entry_fail(entry, "the guest agent does not answer as it should");
}

static int entry_ping(struct entry *entry)
{
    const struct agent_frame ping = { .kind = AGENT_FRAME_PING, .id = PING_ID };
    struct buf bytes = { 0 };
    int fd = vm_agent_fd(entry->vm);
    int result = agent_frame_encode(&ping, &bytes);

    if (result == 0 &&
        send(fd, bytes.data, bytes.size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)bytes.size)
        result = -EPIPE;
    buf_done(&bytes);
    if (result == 0)
        result = loop_io_new(entry->line->pool->backend->loop, fd, EPOLLIN, on_agent, entry,
                             &entry->io);
    return result;
}

static void on_up(void *ctx)
{
    struct entry *entry = ctx;

    entry_set_state(entry, ENTRY_PINGED);
    if (entry_ping(entry) < 0)
        entry_fail(entry, "the guest agent cannot be pinged");
}

static int entry_start(struct line *line)
{
    static const struct vm_events events = { .up = on_up, .gone = on_gone };
    static unsigned number;
    struct backend *backend = line->pool->backend;
    struct entry *entry = calloc(1, sizeof(*entry));
    struct vm_spec spec = { .kernel_fd = -1, .initrd_fd = -1 };
    struct sandbox_error err = { 0 };
    char name[32];
    int result = entry ? template_clone(line->template, &spec) : -ENOMEM;

    (void)snprintf(name, sizeof(name), "pool-%u", ++number);
    spec.name = name;
    if (result == 0 && vm_new(backend, &spec, &events, entry, &entry->vm, &err) < 0)
        result = -EIO;
    if (entry && result == 0) {
        entry->line = line;
        entry->in.limit = FRAME_MAX_BYTES;
        list_append(&line->entries, &entry->node);
        line->count++;
        line->pool->count++;
        line->pool->making = take_ptr(entry);
    }
    if (spec.state_fd > 0 && result != -ENOMEM) {
        closep(&spec.state_fd);
        closep(&spec.disk_fd);
    }
    free(entry);
    sandbox_error_done(&err);
    return result;
}

/* Which one is made next. */

static void line_free(struct line *line)
{
    LIST_FOREACH(node, &line->entries)
    vm_free(entry_dissolve(LIST_ENTRY(node, struct entry, node)));
    list_remove(&line->node);
    template_unref(line->template);
    free(line);
}

/* Room for one of LINE, if need be by one of a template that was used before it. */
static bool pool_make_room(struct pool *pool, const struct line *line)
{
    const struct qemu_settings *settings = &pool->backend->settings;

    if (pool->count < settings->max_pool_size)
        return true;
    LIST_FOREACH(node, &pool->lines)
    {
        struct line *older = LIST_ENTRY(node, struct line, node);

        if (older == line)
            return false;
        if (!list_empty(&older->entries)) {
            vm_free(entry_dissolve(LIST_ENTRY(older->entries.next, struct entry, node)));
            return true;
        }
    }
    return false;
}

static void pool_fill(struct pool *pool)
{
    const struct qemu_settings *settings = &pool->backend->settings;

    for (struct list *node = pool->lines.previous; node != &pool->lines;
         node = node->previous) {
        struct line *line = LIST_ENTRY(node, struct line, node);

        if (line->count >= settings->pool_size ||
            !pool_budget_has_room(pool->memory_kb, line->expected_kb, settings->pool_memory_mb))
            continue;
        if (!pool_make_room(pool, line))
            return;
        if (entry_start(line) < 0) {
            if (pool->failures < FAILURES_MAX)
                pool->failures++;
            pool_refill_after(pool, (uint64_t)FAILURE_DELAY_MS << (pool->failures - 1));
        }
        return;
    }
}

static void on_refill(void *ctx)
{
    struct pool *pool = ctx;

    if (pool->making)
        return; /* its end goes on */
    if (!start_turn_take(&pool->turn, START_REFILL, HOLD_MS))
        return; /* this is called again then */
    pool_fill(pool);
    if (!pool->making)
        start_turn_give(&pool->turn);
}

/* From outside. */

static struct line *pool_line(struct pool *pool, struct template *template)
{
    LIST_FOREACH(node, &pool->lines)
    {
        struct line *line = LIST_ENTRY(node, struct line, node);

        if (line->template == template)
            return line;
    }
    return NULL;
}

static struct line *line_new(struct pool *pool, struct template *template)
{
    struct line *line = calloc(1, sizeof(*line));

    if (!line)
        return NULL;
    line->pool = pool;
    line->template = template_ref(template);
    list_init(&line->node);
    list_init(&line->entries);
    return line;
}

struct vm *pool_take(struct pool *pool, struct template *template)
{
    struct line *line = pool_line(pool, template);
    struct vm *vm = NULL;

    if (pool->backend->settings.pool_size == 0)
        return NULL;
    if (!line && !(line = line_new(pool, template)))
        return NULL;
    list_remove(&line->node);
    list_append(&pool->lines, &line->node);
    LIST_FOREACH(node, &line->entries)
    {
        struct entry *entry = LIST_ENTRY(node, struct entry, node);

        if (entry->state == ENTRY_READY) {
            vm = entry_dissolve(entry);
            break;
        }
    }
    pool_refill_after(pool, REFILL_DELAY_MS);
    return vm;
}

void pool_drop(struct pool *pool, struct template *template)
{
    struct line *line = pool_line(pool, template);

    if (line)
        line_free(line);
}

void pool_empty(struct pool *pool)
{
    LIST_FOREACH(node, &pool->lines)
    {
        struct line *line = LIST_ENTRY(node, struct line, node);

        while (line->count > 0)
            vm_free(entry_dissolve(LIST_ENTRY(line->entries.next, struct entry, node)));
    }
    pool_refill_after(pool, REFILL_DELAY_MS);
}

void pool_resize(struct pool *pool)
{
    const struct qemu_settings *settings = &pool->backend->settings;

    LIST_FOREACH(node, &pool->lines)
    {
        struct line *line = LIST_ENTRY(node, struct line, node);

        while (line->count > settings->pool_size ||
               (line->count > 0 && settings->pool_memory_mb > 0 &&
                pool->memory_kb > (uint64_t)settings->pool_memory_mb * 1024))
            vm_free(entry_dissolve(LIST_ENTRY(line->entries.next, struct entry, node)));
    }
    pool_refill_after(pool, REFILL_DELAY_MS);
}

int pool_new(struct backend *backend, struct pool **ret_pool)
{
    struct pool *pool = calloc(1, sizeof(*pool));
    int result;

    if (!pool)
        return -ENOMEM;
    pool->backend = backend;
    list_init(&pool->lines);
    start_turn_init(&pool->turn, &backend->starts, "pool", on_refill, pool);
    result = loop_timer_new(backend->loop, on_refill, pool, &pool->refill);
    if (result < 0) {
        free(pool);
        return result;
    }
    *ret_pool = pool;
    return 0;
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    loop_timer_free(pool->refill);
    pool->refill = NULL;
    start_turn_give(&pool->turn);
    LIST_FOREACH(node, &pool->lines)
    line_free(LIST_ENTRY(node, struct line, node));
    free(pool);
}
