/* trial.c - see trial.h. */
#include "trial.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void trial_open(struct trial *trial, const char *sandbox)
{
    *trial = (struct trial){ 0 };
    ck_assert_int_eq(loop_new(&trial->loop), 0);
    trial->router = router_process_start(trial->loop, sandbox);
    ck_assert_int_eq(
        native_client_new_with(router_process_url(trial->router),
                               &(struct native_client_options){ .loop = trial->loop,
                                                                .hello = &native_caller_hello },
                               TRIAL_WAIT_MS, &trial->caller),
        0);
}

void trial_close(struct trial *trial)
{
    bool ok;
    char *info = trial_call(trial, "sandbox::adapter::info", "{}", &ok);

    ck_assert(ok);
    free(info);
    native_client_free(trial->caller);
    ck_assert_int_eq(router_process_stop(trial->router), 0);
    loop_free(trial->loop);
}

const char *trial_managed(const char *name)
{
    static char text[256];

    (void)snprintf(text, sizeof(text), "  adapter: %s\n  command: ['%s', %s]\n", name,
                   PLAYED_ADAPTER, name);
    return text;
}

const char *trial_unmanaged(const char *name)
{
    static char text[256];

    (void)snprintf(text, sizeof(text), "  adapter: %s\n  managed: false\n", name);
    return text;
}

struct played_adapter *
trial_adapter(struct trial *trial, const char *name,
              void (*call)(void *, struct played_adapter *, const struct envelope *), void *ctx)
{
    const struct played_adapter_options options = {
        .name = name,
        .contract = { CONTRACT_MAJOR, CONTRACT_MINOR },
        .call = call,
        .ctx = ctx,
    };
    struct played_adapter *adapter;

    ck_assert_int_eq(
        played_adapter_new(trial->loop, router_process_url(trial->router), &options, &adapter),
        0);
    return adapter;
}

struct native_call *trial_start(struct trial *trial, const char *function, const char *body)
{
    struct native_call *call;

    ck_assert_int_eq(native_call_start(trial->caller, function, body, strlen(body), &call), 0);
    return call;
}

static const char *await_answer(struct native_call *call, bool ok)
{
    ck_assert_int_eq(native_call_wait(call, TRIAL_WAIT_MS), 0);
    ck_assert_msg(native_call_ok(call) == ok, "got %s", native_call_body(call, NULL));
    return native_call_body(call, NULL);
}

const char *trial_reply(struct native_call *call)
{
    return await_answer(call, true);
}

const char *trial_error(struct native_call *call)
{
    return await_answer(call, false);
}

char *trial_call(struct trial *trial, const char *function, const char *body, bool *ret_ok)
{
    _cleanup_(native_call_freep)
    struct native_call *call = trial_start(trial, function, body);
    char *text;

    ck_assert_int_eq(native_call_wait(call, TRIAL_WAIT_MS), 0);
    *ret_ok = native_call_ok(call);
    text = strdup(native_call_body(call, NULL));
    ck_assert_ptr_nonnull(text);
    return text;
}

void trial_expect_reply(struct trial *trial, const char *function, const char *body,
                        const char *wanted)
{
    bool ok;
    _cleanup_free_ char *text = trial_call(trial, function, body, &ok);

    ck_assert_msg(ok, "%s: %s", function, text);
    ck_assert_str_eq(text, wanted);
}

void trial_expect_error(struct trial *trial, const char *function, ...)
{
    bool ok;
    _cleanup_free_ char *text = trial_call(trial, function, "{}", &ok);
    const char *wanted;
    va_list texts;

    ck_assert_msg(!ok, "%s: %s", function, text);
    va_start(texts, function);
    while ((wanted = va_arg(texts, const char *)) != NULL)
        ck_assert_msg(strstr(text, wanted) != NULL, "%s: %s, want %s", function, text, wanted);
    va_end(texts);
}

long trial_number(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    ck_assert_msg(at != NULL, "no %s in %s", key, text);
    return strtol(at + strlen(key), NULL, 10);
}

long trial_metric(struct trial *trial, const char *name)
{
    _cleanup_free_ char *text = router_process_get(trial->router, "/metrics");
    char line[256];
    const char *at;

    (void)snprintf(line, sizeof(line), "\n%s ", name);
    at = strstr(text, line);
    return at ? strtol(at + strlen(line), NULL, 10) : -1;
}

uint64_t trial_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
