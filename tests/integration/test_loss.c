/* test_loss.c - adapters that die, stop, come back or speak another major (contract 2.3, 2.4),
 * as processes of their own behind the real router. */
#include <signal.h>
#include <string.h>

#include "trial.h"
#include "unit.h"

#define DEAD_MS 1000
#define STOPPED_MS 15000
#define SLACK_MS 1500 /* of a busy machine */

/* The pid of the bound played program, which has got EXECS so far. */
static pid_t played_pid(struct trial *trial, long execs)
{
    bool ok;
    _cleanup_free_ char *text = trial_call(trial, "sandbox::list", "{}", &ok);

    ck_assert_msg(ok, "%s", text);
    ck_assert_int_eq(trial_number(text, "\"execs\":"), execs);
    return (pid_t)trial_number(text, "\"pid\":");
}

/* A kill answers what is in flight at once; nobody resends; the next process is bound by
 * itself. */
START_TEST(test_killed_in_a_call)
{
    struct trial trial;
    struct native_call *exec, *read;
    uint64_t start_ms;

    trial_open(&trial, trial_managed("played"));
    router_process_await_bound(trial.router, "played");
    exec = trial_start(&trial, "sandbox::exec", "{\"hold\":1}");
    pid_t pid = played_pid(&trial, 1);
    read = trial_start(&trial, "played::exec", "{\"hold\":2}");
    ck_assert_int_eq(played_pid(&trial, 2), pid);
    start_ms = trial_now_ms();
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_ptr_nonnull(strstr(trial_error(exec), "\"code\":\"S301\""));
    ck_assert_ptr_nonnull(strstr(trial_error(exec), "\"outcome\":\"may_have_run\""));
    ck_assert_ptr_nonnull(strstr(trial_error(read), "\"outcome\":\"may_have_run\""));
    ck_assert_uint_lt(trial_now_ms() - start_ms, DEAD_MS + SLACK_MS);
    trial_expect_error(&trial, "sandbox::exec", "S301", "\"outcome\":\"never_ran\"", NULL);
    router_process_await_bound(trial.router, "played");
    ck_assert_int_ne(played_pid(&trial, 0), pid);
    ck_assert_int_eq(trial_metric(&trial, "sandbox_adapter_losses_total"), 1);
    ck_assert_int_eq(trial_metric(&trial, "sandbox_adapter_restarts_total"), 1);
    native_call_free(exec);
    native_call_free(read);
    trial_close(&trial);
}
END_TEST

/* A stopped process sends no end of stream: only its silence tells. It waits the real time. */
START_TEST(test_stopped)
{
    struct trial trial;
    struct native_call *exec;
    uint64_t start_ms, took_ms;

    trial_open(&trial, trial_managed("played"));
    router_process_await_bound(trial.router, "played");
    pid_t pid = played_pid(&trial, 0);
    start_ms = trial_now_ms();
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    exec = trial_start(&trial, "sandbox::exec", "{}");
    ck_assert_ptr_nonnull(strstr(trial_error(exec), "\"outcome\":\"may_have_run\""));
    took_ms = trial_now_ms() - start_ms;
    ck_assert_msg(took_ms <= STOPPED_MS + SLACK_MS, "noticed after %lu ms", (long)took_ms);
    trial_expect_error(&trial, "sandbox::exec", "S301", "\"outcome\":\"never_ran\"", NULL);
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    router_process_await_bound(trial.router, "played");
    /* It finds the one call in its socket, and no second one. */
    ck_assert_int_eq(played_pid(&trial, 1), pid);
    native_call_free(exec);
    trial_close(&trial);
}
END_TEST

/* Without supervision the router waits for whoever comes by that name. */
START_TEST(test_reconnect)
{
    struct trial trial;
    struct played_adapter *adapter;

    trial_open(&trial, trial_unmanaged("one"));
    for (int i = 0; i < 3; i++) {
        trial_expect_error(&trial, "sandbox::exec", "S301", "adapter one",
                           "\"outcome\":\"never_ran\"", NULL);
        trial_expect_error(&trial, "sandbox::list", "S301", NULL);
        adapter = trial_adapter(&trial, "one", NULL, NULL);
        router_process_await_bound(trial.router, "one");
        trial_expect_reply(&trial, "sandbox::exec", "{\"n\":1}", "{\"n\":1}");
        played_adapter_free(adapter);
        (void)router_process_await_log(trial.router, "event=adapter_lost");
    }
    trial_close(&trial);
}
END_TEST

static void answer_info(void *ctx, struct played_adapter *adapter, const struct envelope *call)
{
    ck_assert(span_equals(call->operation, "adapter::info")); /* it is asked for nothing else */
    played_adapter_reply(adapter, call->id,
                         span_of_text("{\"adapter\":\"odd\",\"adapter_version\":\"9\","
                                      "\"contract\":{\"major\":2,\"minor\":5}}"));
}

START_TEST(test_parked)
{
    const struct played_adapter_options options = { .name = "odd",
                                                    .contract = { 2, 5 },
                                                    .call = answer_info };
    struct trial trial;
    struct played_adapter *adapter;

    trial_open(&trial, trial_unmanaged("odd"));
    ck_assert_int_eq(
        played_adapter_new(trial.loop, router_process_url(trial.router), &options, &adapter),
        0);
    ck_assert(played_adapter_parked(adapter));
    trial_expect_error(&trial, "sandbox::exec", "S302",
                       "adapter odd speaks contract 2.5, this router 1.2: upgrade the router",
                       NULL);
    trial_expect_reply(&trial, "sandbox::adapter::info", "{}",
                       "{\"adapter\":\"odd\",\"namespace\":\"default\",\"contract\":"
                       "{\"major\":1,\"minor\":2},\"info\":{\"adapter\":\"odd\","
                       "\"adapter_version\":\"9\",\"contract\":{\"major\":2,\"minor\":5}},"
                       "\"status\":\"mismatch\"}");
    ck_assert_uint_eq(played_adapter_calls(adapter), 1);
    played_adapter_free(adapter);
    (void)router_process_await_log(trial.router, "event=adapter_lost");
    trial_expect_error(&trial, "sandbox::exec", "S301", NULL);
    trial_close(&trial);
}
END_TEST

UNIT_MAIN("loss", test_killed_in_a_call, test_stopped, test_reconnect, test_parked)
