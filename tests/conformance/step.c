/* step.c - see step.h. */

#include "step.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "channel_steps.h"
#include "subject_steps.h"

/* Longer than any limit of the contract that a case waits for. */
#define ANSWER_TIMEOUT_MS 600000 /* an image may have to be made */
#define REPEAT_PAUSE_MS 200

struct played_call {
    struct played_call *next;
    const char *name;
    struct native_call *call;
    uint64_t started_ms;
};

static const char *text_of(const struct yaml_node *map, const char *key)
{
    const struct yaml_node *node = yaml_get(map, key);
    return node ? node->text : NULL;
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* `sandbox::` goes before an operation; names with a namespace of their own stay. */
static void function_name(const struct play *play, const struct yaml_node *step, struct buf *to)
{
    _cleanup_(buf_done)
    struct buf expanded = { 0 };
    (void)variables_expand(&play->variables, text_of(step, "call"), &expanded);
    const char *text = buf_text(&expanded);
    size_t prefix = strlen(play->adapter_name);
    bool own = text_of(step, "exactly") || strncmp(text, "engine::", 8) == 0 ||
               strncmp(text, "sandbox::", 9) == 0 ||
               (prefix > 0 && strncmp(text, play->adapter_name, prefix) == 0);
    (void)buf_printf(to, "%s%s", own ? "" : "sandbox::", text);
    const char *last = buf_text(to) + (strncmp(buf_text(to), "sandbox::", 9) == 0 ? 9 : 0);
    const struct operation *operation = operation_find(last, strlen(last));
    if (operation)
        play->coverage->operations[operation->id] = true;
}

static int start_call(struct play *play, const struct yaml_node *step, struct native_call **ret)
{
    _cleanup_(buf_done)
    struct buf function = { 0 };
    _cleanup_(buf_done)
    struct buf body = { 0 };
    const char *text = text_of(step, "body");
    function_name(play, step, &function);
    (void)buf_text(&body);
    if (variables_expand(&play->variables, text ? text : "{}", &body) < 0)
        return -ENOMEM;
    return native_call_start(play->client, buf_text(&function), body.data, body.size, ret);
}

static bool check(struct play *play, const struct yaml_node *step, struct native_call *call,
                  uint64_t started_ms, struct buf *why)
{
    int ret = native_call_wait(call, ANSWER_TIMEOUT_MS);
    if (ret < 0) {
        (void)buf_printf(why, " no answer: %s", strerror(-ret));
        return false;
    }
    return answer_check(call,
                        &(struct expectation){ .step = step,
                                               .variables = &play->variables,
                                               .coverage = play->coverage,
                                               .transcript = play->transcript,
                                               .duration_ms = now_ms() - started_ms,
                                               .minor = play->minor },
                        why);
}

static bool step_call(struct play *play, const struct yaml_node *step, struct buf *why)
{
    _cleanup_(native_call_freep)
    struct native_call *call = NULL;
    uint64_t started_ms = now_ms();
    int ret = start_call(play, step, &call);
    if (ret < 0) {
        (void)buf_printf(why, " not sent: %s", strerror(-ret));
        return false;
    }
    return check(play, step, call, started_ms, why);
}

/* For states that no event tells a caller of, such as the reaper's. */
static bool step_call_eventually(struct play *play, const struct yaml_node *step,
                                 uint64_t limit_ms, struct buf *why)
{
    uint64_t end = now_ms() + limit_ms;
    size_t mark = why->size;
    struct buf *transcript = play->transcript;
    play->transcript = NULL;
    bool right = step_call(play, step, why);
    while (!right && now_ms() < end) {
        why->size = mark;
        (void)nanosleep(&(struct timespec){ .tv_nsec = REPEAT_PAUSE_MS * 1000000L }, NULL);
        right = step_call(play, step, why);
    }
    play->transcript = transcript;
    return right;
}

/* The same call so many times, with $I counting from 1. */
static bool step_call_times(struct play *play, const struct yaml_node *step, uint64_t times,
                            struct buf *why)
{
    struct buf *transcript = play->transcript;
    bool right = true;
    play->transcript = NULL;
    for (uint64_t i = 1; i <= times && right; i++) {
        char count[24];
        snprintf(count, sizeof(count), "%llu", (unsigned long long)i);
        right = variables_set(&play->variables, "I", count) == 0 && step_call(play, step, why);
    }
    play->transcript = transcript;
    return right;
}

static bool step_start(struct play *play, const struct yaml_node *step, struct buf *why)
{
    struct played_call *played = calloc(1, sizeof(*played));
    if (!played)
        return false;
    played->name = text_of(step, "start");
    played->started_ms = now_ms();
    played->next = play->calls;
    play->calls = played;
    int ret = start_call(play, step, &played->call);
    if (ret < 0)
        (void)buf_printf(why, " not sent: %s", strerror(-ret));
    return ret == 0;
}

static struct played_call *played_call(struct play *play, const char *name, struct buf *why)
{
    struct played_call *call = play->calls;
    while (call && strcmp(call->name, name) != 0)
        call = call->next;
    if (!call)
        (void)buf_printf(why, " the case has no started call %s", name);
    return call;
}

static bool step_await(struct play *play, const struct yaml_node *step, struct buf *why)
{
    struct played_call *call = played_call(play, text_of(step, "await"), why);
    return call && check(play, step, call->call, call->started_ms, why);
}

static bool step_cancel(struct play *play, const struct yaml_node *step, struct buf *why)
{
    struct played_call *call = played_call(play, text_of(step, "cancel"), why);
    if (call)
        native_call_cancel(call->call);
    return call != NULL;
}

static bool play_step(struct play *play, const struct yaml_node *step, struct buf *why)
{
    static const struct {
        const char *key;
        bool (*run)(struct play *, const struct yaml_node *, struct buf *);
    } kinds[] = {
        { "start", step_start },
        { "await", step_await },
        { "cancel", step_cancel },
        { "channel", channel_step_make },
        { "send", channel_step_send },
        { "overfill", channel_step_overfill },
        { "finish", channel_step_finish },
        { "beside", channel_step_beside },
        { "drop", channel_step_drop },
        { "open", channel_step_open },
        { "receive", channel_step_receive },
        { "configure", subject_step_configure },
        { "restart", subject_step_restart },
    };
    uint64_t eventually_ms, times;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (yaml_get(step, kinds[i].key))
            return kinds[i].run(play, step, why);
    }
    const struct yaml_node *eventually = yaml_get(step, "eventually_ms");
    if (eventually && yaml_as_u64(eventually, &eventually_ms) == 0)
        return step_call_eventually(play, step, eventually_ms, why);
    const struct yaml_node *repeated = yaml_get(step, "times");
    if (repeated && yaml_as_u64(repeated, &times) == 0)
        return step_call_times(play, step, times, why);
    if (yaml_get(step, "call"))
        return step_call(play, step, why);
    (void)buf_append_text(why, " the step is of no known kind");
    return false;
}

bool play_steps(struct play *play, const struct yaml_node *steps, struct buf *why)
{
    for (size_t i = 0; i < steps->count; i++) {
        (void)buf_printf(why, "step %zu (line %u):", i + 1, steps->items[i]->line);
        if (!play_step(play, steps->items[i], why))
            return false;
        buf_clear(why);
    }
    return true;
}

bool play_call(struct play *play, const char *function, const char *body, struct buf *ret_body)
{
    _cleanup_(native_call_freep)
    struct native_call *call = NULL;
    size_t size;
    int ret = native_call_start(play->client, function, body, strlen(body), &call);
    if (ret == 0)
        ret = native_call_wait(call, ANSWER_TIMEOUT_MS);
    if (ret < 0) {
        (void)buf_printf(ret_body, "no answer: %s", strerror(-ret));
        return false;
    }
    const char *text = native_call_body(call, &size);
    (void)buf_append(ret_body, text, size); /* a shorter text only worsens the report */
    return native_call_ok(call);
}

void play_done(struct play *play)
{
    while (play->calls) {
        struct played_call *call = play->calls;
        play->calls = call->next;
        native_call_free(call->call);
        free(call);
    }
    channel_steps_done(play);
    variables_done(&play->variables);
}
