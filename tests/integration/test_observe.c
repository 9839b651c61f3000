/* test_observe.c - what operators see: counters, health, one call's number in the logs of both
 * processes, and the trace context on its way. */
#include <stdio.h>
#include <string.h>

#include "json_scan.h"
#include "trial.h"
#include "unit.h"
#include "web_client.h"

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

/* Refuses execs, echoes the rest, keeps the last trace context. */
struct traced {
    char traceparent[128];
};

static void on_call(void *ctx, struct played_adapter *adapter, const struct envelope *call)
{
    struct traced *traced = ctx;

    (void)snprintf(traced->traceparent, sizeof(traced->traceparent), "%.*s",
                   (int)call->traceparent.size,
                   call->traceparent.data ? call->traceparent.data : "");
    if (span_equals(call->operation, "exec"))
        played_adapter_error(adapter, call->id,
                             span_of_text("{\"code\":\"S003\",\"message\":\"busy\"}"));
    else
        played_adapter_reply(adapter, call->id, call->body);
}

START_TEST(test_metrics)
{
    struct traced traced = { "" };
    struct trial trial;
    struct played_adapter *adapter;

    trial_open(&trial, trial_unmanaged("one"));
    trial_expect_error(&trial, "sandbox::exec", "S301", NULL);
    adapter = trial_adapter(&trial, "one", on_call, &traced);
    router_process_await_bound(trial.router, "one");
    for (int i = 0; i < 3; i++)
        trial_expect_reply(&trial, "sandbox::list", "{}", "{}");
    for (int i = 0; i < 2; i++)
        trial_expect_error(&trial, "sandbox::exec", "S003", NULL);
    trial_expect_error(&trial, "nobody::exec", "function_not_found", NULL);
    static const struct {
        const char *name;
        long value;
    } wanted[] = {
        { "sandbox_calls_total{op=\"list\",code=\"ok\"}", 3 },
        { "sandbox_calls_total{op=\"exec\",code=\"S003\"}", 2 },
        { "sandbox_calls_total{op=\"exec\",code=\"S301\"}", 1 },
        { "sandbox_calls_total{op=\"other\",code=\"not_found\"}", 1 },
        { "sandbox_call_seconds_bucket{op=\"list\",le=\"+Inf\"}", 3 },
        { "sandbox_call_seconds_count{op=\"exec\"}", 3 },
        { "sandbox_calls_in_flight", 0 },
        { "sandbox_adapter_state{state=\"bound\"}", 1 },
        { "sandbox_adapter_state{state=\"waiting\"}", 0 },
        { "sandbox_adapter_restarts_total", 0 },
        { "sandbox_connections{front=\"native\"}", 2 },
    };
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        ck_assert_msg(trial_metric(&trial, wanted[i].name) == wanted[i].value,
                      "%s is %ld, want %ld", wanted[i].name,
                      trial_metric(&trial, wanted[i].name), wanted[i].value);
    ck_assert_int_gt(trial_metric(&trial, "sandbox_sent_bytes_total{front=\"native\"}"), 100);
    ck_assert_int_gt(trial_metric(&trial, "sandbox_received_bytes_total{front=\"web\"}"), 100);
    played_adapter_free(adapter);
    trial_close(&trial);
}
END_TEST

/* Each line of /metrics is a comment or `name{labels} value`, each family is told once. */
START_TEST(test_metrics_text)
{
    struct trial trial;
    struct played_adapter *adapter;
    const char *line;
    unsigned samples = 0;

    trial_open(&trial, trial_unmanaged("one"));
    adapter = trial_adapter(&trial, "one", NULL, NULL);
    router_process_await_bound(trial.router, "one");
    trial_expect_reply(&trial, "sandbox::list", "{}", "{}");
    char *text = router_process_get(trial.router, "/metrics");
    ck_assert_ptr_nonnull(strstr(text, "Content-Type: text/plain; version=0.0.4"));
    char *rest = strstr(text, "\r\n\r\n") + 4;
    while ((line = strtok_r(rest, "\n", &rest)) != NULL) {
        const char *space = strrchr(line, ' ');
        char *end;

        if (line[0] == '#')
            continue;
        ck_assert_msg(strncmp(line, "sandbox_", 8) == 0 && space, "line: %s", line);
        (void)strtod(space + 1, &end);
        ck_assert_msg(end != space + 1 && *end == '\0', "line: %s", line);
        samples++;
    }
    ck_assert_uint_gt(samples, 20);
    free(text);
    played_adapter_free(adapter);
    trial_close(&trial);
}
END_TEST

static void expect_health(struct trial *trial, const char *body)
{
    _cleanup_free_ char *text = router_process_get(trial->router, "/healthz");

    ck_assert_int_eq(strncmp(text, "HTTP/1.1 200 ", 13), 0);
    ck_assert_str_eq(strstr(text, "\r\n\r\n") + 4, body);
}

START_TEST(test_health)
{
    const struct played_adapter_options other = { .name = "one", .contract = { 2, 0 } };
    struct trial trial;
    struct played_adapter *adapter;

    trial_open(&trial, "");
    expect_health(&trial, "{\"status\":\"ok\",\"adapter\":\"none\"}");
    router_process_configure(trial.router, trial_unmanaged("one"));
    (void)router_process_await_log(trial.router, "event=reloaded");
    expect_health(&trial, "{\"status\":\"ok\",\"adapter\":\"waiting\"}");
    ck_assert_int_eq(
        played_adapter_new(trial.loop, router_process_url(trial.router), &other, &adapter), 0);
    expect_health(&trial, "{\"status\":\"ok\",\"adapter\":\"mismatch\"}");
    played_adapter_free(adapter);
    (void)router_process_await_log(trial.router, "event=adapter_lost");
    adapter = trial_adapter(&trial, "one", NULL, NULL);
    expect_health(&trial, "{\"status\":\"ok\",\"adapter\":\"bound\"}");
    played_adapter_free(adapter);
    trial_close(&trial);
}
END_TEST

static struct native_call *start_traced(struct trial *trial)
{
    const struct envelope message = { .kind = ENVELOPE_CALL,
                                      .operation = span_of_text("sandbox::list"),
                                      .deadline_ms = ENVELOPE_NO_DEADLINE,
                                      .body = span_of_text("{}"),
                                      .traceparent = span_of_text(TRACE) };
    struct native_call *call;

    ck_assert_int_eq(native_call_start_with(trial->caller, &message, &call), 0);
    return call;
}

START_TEST(test_traceparent)
{
    static const char frame[] = "{\"type\":\"invokefunction\",\"invocation_id\":\"1\","
                                "\"function_id\":\"sandbox::list\","
                                "\"data\":{},\"traceparent\":\"" TRACE "\"}";
    struct traced traced = { "" };
    struct trial trial;
    struct web_client web;
    struct played_adapter *adapter;
    struct native_call *call;

    trial_open(&trial, trial_unmanaged("one"));
    adapter = trial_adapter(&trial, "one", on_call, &traced);
    router_process_await_bound(trial.router, "one");
    call = start_traced(&trial);
    (void)trial_reply(call);
    native_call_free(call);
    ck_assert_str_eq(traced.traceparent, TRACE);
    trial_expect_reply(&trial, "sandbox::list", "{}", "{}");
    ck_assert_str_eq(traced.traceparent, "");

    client_open_main(&web, trial.loop, router_process_port(trial.router));
    client_text(&web, frame);
    ck_assert_ptr_nonnull(strstr(client_expect_text(&web), "\"traceparent\":\"" TRACE "\""));
    ck_assert_str_eq(traced.traceparent, TRACE);
    client_close(&web);
    played_adapter_free(adapter);
    trial_close(&trial);
}
END_TEST

/* The two processes: what the adapter says comes as lines of the router's log, with the number
 * and the trace context of the call. The adapter's format is its own. */
START_TEST(test_one_number_in_both_logs)
{
    char sandbox[1024];
    struct trial trial = { 0 };
    struct native_call *call;

    (void)snprintf(
        sandbox, sizeof(sandbox),
        "  adapter: sandbox-mock\n"
        "  command: ['%s/sandbox-mock', --log-level, debug, --log-format, key-value]\n",
        getenv("SANDBOX_BIN"));
    const struct router_process_options options = { .sandbox = sandbox,
                                                    .log_format = "json",
                                                    .log_level = "debug" };
    ck_assert_int_eq(loop_new(&trial.loop), 0);
    trial.router = router_process_start_with(trial.loop, &options);
    ck_assert_int_eq(
        native_client_new_with(router_process_url(trial.router),
                               &(struct native_client_options){ .loop = trial.loop,
                                                                .hello = &native_caller_hello },
                               TRIAL_WAIT_MS, &trial.caller),
        0);
    router_process_await_bound(trial.router, "sandbox-mock");
    call = start_traced(&trial);
    ck_assert_str_eq(trial_reply(call), "[]");
    native_call_free(call);

    const char *line = router_process_await_log(trial.router, "\"event\":\"call_forwarded\"");
    long number = trial_number(line, "\"call\":");
    ck_assert_ptr_nonnull(strstr(line, "\"op\":\"list\""));
    ck_assert_ptr_nonnull(strstr(line, "\"traceparent\":\"" TRACE "\""));
    char wanted[160];
    (void)snprintf(wanted, sizeof(wanted),
                   "\"prog\":\"sandbox-mock\",\"event\":\"call_answered\",\"call\":%ld",
                   number);
    line = router_process_await_log(trial.router, wanted);
    ck_assert_ptr_nonnull(strstr(line, "\"traceparent\":\"" TRACE "\""));
    trial_close(&trial);
}
END_TEST

UNIT_MAIN("observe", test_metrics, test_metrics_text, test_health, test_traceparent,
          test_one_number_in_both_logs)
