/* test_swap.c - another adapter by a reload (contract 2.4): nothing fails under load, calls in
 * flight end where they began, bad settings change nothing; supervision. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trial.h"
#include "unit.h"

#define SWAPS 100
#define LOAD 32 /* calls in flight */

/* One of the two that are swapped: it says its name, and holds execs until it is told. */
struct side {
    const char *reply;
    struct played_adapter *adapter;
    uint64_t held;
};

static void answer_name(void *ctx, struct played_adapter *adapter, const struct envelope *call)
{
    struct side *side = ctx;

    if (span_equals(call->operation, "exec"))
        side->held = call->id;
    else
        played_adapter_reply(adapter, call->id, span_of_text(side->reply));
}

struct load {
    struct trial *trial;
    const char *function;
    const char *body;
    struct native_call *calls[LOAD];
    unsigned long answered;
    unsigned long refused;      /* S301 that never ran */
    unsigned long may_have_run; /* any other error */
};

static void load_start(struct load *load, struct trial *trial, const char *function,
                       const char *body)
{
    *load = (struct load){ .trial = trial, .function = function, .body = body };
    for (size_t i = 0; i < LOAD; i++)
        load->calls[i] = trial_start(trial, function, body);
}

static void load_count(struct load *load, struct native_call *own_call)
{
    if (native_call_ok(own_call))
        load->answered++;
    else if (strstr(native_call_body(own_call, NULL), "\"never_ran\""))
        load->refused++;
    else
        load->may_have_run++;
    native_call_free(own_call);
}

/* Answered ones are counted and made anew. */
static void load_renew(struct load *load)
{
    for (size_t i = 0; i < LOAD; i++) {
        if (!native_call_done(load->calls[i]))
            continue;
        load_count(load, load->calls[i]);
        load->calls[i] = trial_start(load->trial, load->function, load->body);
    }
}

static void load_end(struct load *load)
{
    for (size_t i = 0; i < LOAD; i++) {
        ck_assert_int_eq(native_call_wait(load->calls[i], TRIAL_WAIT_MS), 0);
        load_count(load, load->calls[i]);
    }
}

/* The load goes on until CALL is answered. */
static const char *reply_under_load(struct load *load, struct native_call *call)
{
    while (!native_call_done(call)) {
        ck_assert_int_eq(loop_turn(load->trial->loop, 1000), 0);
        load_renew(load);
    }
    return trial_reply(call);
}

static void bound_under_load(struct load *load, const char *name)
{
    unsigned long wanted = load->answered + load->refused + load->may_have_run + LOAD;

    router_process_await_bound(load->trial->router, name);
    while (load->answered + load->refused + load->may_have_run < wanted) {
        load_renew(load);
        ck_assert_int_eq(loop_turn(load->trial->loop, 1000), 0);
    }
}

/* One swap from OLD to NEXT, with a call that began on OLD. */
static void swap(struct load *load, struct side *old, struct side *next, const char *name,
                 bool by_signal)
{
    struct trial *trial = load->trial;
    struct native_call *held = trial_start(trial, "sandbox::exec", "{}");
    struct native_call *probe;

    old->held = 0;
    while (old->held == 0)
        ck_assert_int_eq(loop_turn(trial->loop, 1000), 0);
    router_process_configure(trial->router, trial_unmanaged(name));
    if (by_signal)
        router_process_signal(trial->router, SIGHUP);
    bound_under_load(load, name);
    probe = trial_start(trial, "sandbox::list", "{}");
    ck_assert_str_eq(reply_under_load(load, probe), next->reply);
    ck_assert(!native_call_done(held));
    played_adapter_reply(old->adapter, old->held, span_of_text(old->reply));
    ck_assert_str_eq(reply_under_load(load, held), old->reply);
    native_call_free(probe);
    native_call_free(held);
}

START_TEST(test_hundred_swaps)
{
    static const char *const names[] = { "one", "two" };
    struct side sides[] = { { .reply = "{\"by\":\"one\"}" }, { .reply = "{\"by\":\"two\"}" } };
    struct trial trial;
    struct load load;

    trial_open(&trial, trial_unmanaged("one"));
    for (int i = 0; i < 2; i++)
        sides[i].adapter = trial_adapter(&trial, names[i], answer_name, &sides[i]);
    router_process_await_bound(trial.router, "one");
    load_start(&load, &trial, "sandbox::create", "{}");
    for (int i = 0; i < SWAPS; i++)
        swap(&load, &sides[i % 2], &sides[(i + 1) % 2], names[(i + 1) % 2], i % 10 != 0);
    load_end(&load);
    ck_assert_uint_eq(load.refused, 0);
    ck_assert_uint_eq(load.may_have_run, 0);
    ck_assert_uint_gt(load.answered, SWAPS * LOAD);
    ck_assert_uint_gt(played_adapter_calls(sides[0].adapter), SWAPS);
    ck_assert_uint_gt(played_adapter_calls(sides[1].adapter), SWAPS);
    for (int i = 0; i < 2; i++)
        played_adapter_free(sides[i].adapter);
    trial_close(&trial);
}
END_TEST

START_TEST(test_bad_settings_change_nothing)
{
    static const struct {
        const char *sandbox;
        const char *wanted;
    } bad[] = {
        { "  adapter: two\n  managed: false\n  adaptor: x\n", "config.yaml:6" },
        { "  adapter: two\n  managed: maybe\n", "config.yaml:5" },
        { "  adapter: [two\n", "config.yaml:" },
        { "  adapter: two\n  max_message_bytes: 1\n", "config.yaml:5" },
    };
    struct trial trial;
    struct played_adapter *one, *two;

    trial_open(&trial, trial_unmanaged("one"));
    one = trial_adapter(&trial, "one", NULL, NULL);
    two = trial_adapter(&trial, "two", NULL, NULL);
    router_process_await_bound(trial.router, "one");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        router_process_configure(trial.router, bad[i].sandbox);
        const char *line = router_process_await_log(trial.router, "event=reload_failed");
        ck_assert_msg(strstr(line, bad[i].wanted), "want %s in %s", bad[i].wanted, line);
        trial_expect_reply(&trial, "sandbox::list", "{}", "{}");
    }
    /* An editor that empties the file first. */
    ck_assert_int_eq(truncate(router_process_config(trial.router), 0), 0);
    router_process_signal(trial.router, SIGHUP);
    (void)router_process_await_log(trial.router, "holds no settings");
    trial_expect_reply(&trial, "sandbox::list", "{}", "{}");
    ck_assert_uint_eq(played_adapter_calls(two), 0);
    ck_assert_uint_eq(played_adapter_calls(one), ARRAY_SIZE(bad) + 1);
    router_process_configure(trial.router, trial_unmanaged("two"));
    router_process_await_bound(trial.router, "two");
    played_adapter_free(one);
    played_adapter_free(two);
    trial_close(&trial);
}
END_TEST

/* Supervised: the old process ends when its last call has; until the new one has connected
 * there is nobody to ask (S301, never_ran), and no call is lost on one that is ending. */
START_TEST(test_managed_swap)
{
    struct trial trial;
    struct load load;
    struct native_call *slow;

    trial_open(&trial, trial_managed("one"));
    router_process_await_bound(trial.router, "one");
    slow = trial_start(&trial, "sandbox::exec", "{\"slow\":1}");
    load_start(&load, &trial, "sandbox::create", "{}");
    router_process_configure(trial.router, trial_managed("two"));
    bound_under_load(&load, "two");
    ck_assert_str_eq(reply_under_load(&load, slow), "{\"slow\":true}");
    (void)router_process_await_log(trial.router, "event=adapter_exited");
    for (int i = 0; i < 12; i++) {
        const char *name = i % 2 == 0 ? "one" : "two";

        router_process_configure(trial.router, trial_managed(name));
        bound_under_load(&load, name);
    }
    load_end(&load);
    ck_assert_uint_eq(load.may_have_run, 0);
    ck_assert_uint_gt(load.answered, 0);
    native_call_free(slow);
    trial_close(&trial);
}
END_TEST

static long played_pid(struct trial *trial)
{
    bool ok;
    _cleanup_free_ char *text = trial_call(trial, "sandbox::list", "{}", &ok);

    ck_assert_msg(ok, "%s", text);
    return trial_number(text, "\"pid\":");
}

/* The same name with another program: the old one serves until the new one has connected, and
 * ends when its own calls have, however many come meanwhile. */
START_TEST(test_managed_upgrade)
{
    struct trial trial;
    struct load load;
    char sandbox[512];
    long before;

    trial_open(&trial, trial_managed("one"));
    router_process_await_bound(trial.router, "one");
    before = played_pid(&trial);
    load_start(&load, &trial, "sandbox::exec", "{\"slow\":1}");
    (void)snprintf(sandbox, sizeof(sandbox),
                   "  adapter: one\n  command: [env, PLAYED=2, '%s', one]\n", PLAYED_ADAPTER);
    router_process_configure(trial.router, sandbox);
    bound_under_load(&load, "one");
    (void)router_process_await_log(trial.router, "event=adapter_exited");
    load_end(&load);
    ck_assert_uint_eq(load.refused, 0);
    ck_assert_int_ne(played_pid(&trial), before);
    ck_assert_uint_eq(load.may_have_run, 0);
    trial_close(&trial);
}
END_TEST

#define CRASH_WATCH_MS 3000

/* Starts at 0, 200, 600, 1400 and 3000 ms, a quarter more or less, and not more often. */
START_TEST(test_crash_loop)
{
    struct trial trial;
    unsigned starts;

    trial_open(&trial, "  adapter: broken\n  command: [/bin/false]\n");
    turn_for(trial.loop, CRASH_WATCH_MS);
    starts = router_process_log_count(trial.router, "event=adapter_exited");
    ck_assert_uint_ge(starts, 3);
    ck_assert_uint_le(starts, 6);
    trial_expect_error(&trial, "sandbox::exec", "S301", "never_ran", NULL);
    trial_close(&trial);
}
END_TEST

START_TEST(test_output_is_bounded)
{
    struct trial trial;

    trial_open(&trial, trial_managed("chatty"));
    router_process_await_bound(trial.router, "chatty");
    trial_expect_reply(&trial, "sandbox::run", "{\"chatter\":1}", "{\"chatter\":1}");
    turn_for(trial.loop, 1100); /* so that the next line begins a new second */
    trial_expect_reply(&trial, "sandbox::run", "{\"chatter\":2}", "{\"chatter\":2}");
    (void)router_process_await_log(trial.router, "event=adapter_log_suppressed");
    ck_assert_uint_ge(router_process_log_count(trial.router, "event=adapter_log "), 200);
    ck_assert_uint_le(router_process_log_count(trial.router, "event=adapter_log "), 1000);
    trial_close(&trial);
}
END_TEST

UNIT_MAIN("swap", test_hundred_swaps, test_bad_settings_change_nothing, test_managed_swap,
          test_managed_upgrade, test_crash_loop, test_output_is_bounded)
