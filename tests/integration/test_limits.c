/* test_limits.c - what a peer can make grow has a limit with a name (router/router_limits.h,
 * router/web_limits.h): each is reached here, over sockets. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "raw_peer.h"
#include "router_limits.h"
#include "trial.h"
#include "unit.h"
#include "web_limits.h"

/* "one more than the N WHAT": how an error names a limit; static. */
static const char *limit_text(unsigned limit, const char *what)
{
    static char text[96];

    (void)snprintf(text, sizeof(text), " %u %s", limit, what);
    return text;
}

/* More sockets than the usual 1,024. */
static void allow_descriptors(void)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_gt(limit.rlim_cur, 4096);
}

static void close_all(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        raw_close(fds[i]);
}

START_TEST(test_native_connections)
{
    static int fds[NATIVE_CONNECTIONS_MAX];
    struct trial trial;
    char first[64];

    allow_descriptors();
    trial_open(&trial, "");
    /* Those that say nothing have a limit of their own, so that they leave room. */
    for (size_t i = 0; i < NATIVE_GREETING_MAX; i++)
        fds[i] = raw_native(trial.router);
    int over = raw_native(trial.router);
    ck_assert(raw_ended(over, TRIAL_WAIT_MS, first, sizeof(first)));
    ck_assert_str_eq(first, "");
    raw_close(over);
    (void)router_process_await_log(trial.router, "why=\"too many connections\"");
    close_all(fds, NATIVE_GREETING_MAX);
    TURN_UNTIL(trial.loop, trial_metric(&trial, "sandbox_connections{front=\"native\"}") == 1);

    for (size_t i = 0; i < NATIVE_CONNECTIONS_MAX - 1; i++) {
        uint8_t byte;

        fds[i] = raw_native(trial.router);
        raw_caller(fds[i]);
        ck_assert_int_eq(recv(fds[i], &byte, 1, 0), 1); /* it has been accepted */
        if (i % 100 == 0)
            trial_expect_error(&trial, "sandbox::list", "S303", NULL);
    }
    over = raw_native(trial.router);
    raw_caller(over);
    ck_assert(raw_ended(over, TRIAL_WAIT_MS, first, sizeof(first)));
    raw_close(over);
    trial_expect_error(&trial, "sandbox::list", "S303", NULL);
    close_all(fds, NATIVE_CONNECTIONS_MAX - 1);
    trial_close(&trial);
}
END_TEST

/* A main socket; again while the router has not seen the end of those that were closed. */
static int upgraded(struct trial *trial)
{
    char status[13] = "";

    for (;;) {
        int fd = raw_web(trial->router);

        raw_upgrade(fd, "/");
        ck_assert_int_eq(recv(fd, status, 12, MSG_WAITALL), 12);
        if (strcmp(status, "HTTP/1.1 101") == 0)
            return fd;
        ck_assert_str_eq(status, "HTTP/1.1 503");
        raw_close(fd);
    }
}

START_TEST(test_web_connections)
{
    static int fds[WEB_CONNECTIONS_MAX];
    struct trial trial;
    char first[64];

    allow_descriptors();
    trial_open(&trial, "");
    for (size_t i = 0; i < WEB_GREETING_MAX; i++)
        fds[i] = raw_web(trial.router);
    int over = raw_web(trial.router);
    ck_assert(raw_ended(over, TRIAL_WAIT_MS, first, sizeof(first)));
    ck_assert_msg(strncmp(first, "HTTP/1.1 503 ", 13) == 0, "got %s", first);
    raw_close(over);
    close_all(fds, WEB_GREETING_MAX);

    for (size_t i = 0; i < WEB_CONNECTIONS_MAX; i++)
        fds[i] = upgraded(&trial);
    over = raw_web(trial.router);
    ck_assert(raw_ended(over, TRIAL_WAIT_MS, first, sizeof(first)));
    ck_assert_msg(strncmp(first, "HTTP/1.1 503 ", 13) == 0, "got %s", first);
    raw_close(over);
    trial_expect_error(&trial, "sandbox::list", "S303", NULL);
    close_all(fds, WEB_CONNECTIONS_MAX);
    trial_close(&trial);
}
END_TEST

/* Fewer descriptors than connections: those that find none wait or are dropped, and when there
 * are some again all is well. */
START_TEST(test_descriptors)
{
    int fds[100];
    struct trial trial;
    struct rlimit limit, few;

    trial_open(&trial, "");
    few.rlim_cur = few.rlim_max = router_process_descriptors(trial.router) + 30;
    ck_assert_int_eq(prlimit(router_process_pid(trial.router), RLIMIT_NOFILE, NULL, &limit), 0);
    few.rlim_max = limit.rlim_max;
    ck_assert_int_eq(prlimit(router_process_pid(trial.router), RLIMIT_NOFILE, &few, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fds[i] = i % 2 ? raw_native(trial.router) : raw_web(trial.router);
    (void)router_process_await_log(trial.router, "event=accept_failed");
    trial_expect_error(&trial, "sandbox::list", "S303", NULL);
    close_all(fds, ARRAY_SIZE(fds));
    ck_assert_int_ge(trial_metric(&trial, "sandbox_connections{front=\"native\"}"), 1);
    ck_assert_uint_lt(router_process_log_count(trial.router, "event=accept_failed"), 200);
    ck_assert_int_eq(prlimit(router_process_pid(trial.router), RLIMIT_NOFILE, &limit, NULL), 0);
    trial_close(&trial);
}
END_TEST

/* A shell's or service manager's soft limit is less than the connections need. */
START_TEST(test_descriptor_limit_is_raised)
{
    struct rlimit limit, router;
    struct trial trial;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 256;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    trial_open(&trial, "");
    ck_assert_int_eq(prlimit(router_process_pid(trial.router), RLIMIT_NOFILE, NULL, &router),
                     0);
    ck_assert_uint_ge(router.rlim_cur, NATIVE_CONNECTIONS_MAX + WEB_CONNECTIONS_MAX);
    trial_close(&trial);
}
END_TEST

static void never_answer(void *ctx, struct played_adapter *adapter, const struct envelope *call)
{
}

#define CALLERS (CALLS_MAX / CALLER_CALLS_MAX)

/* CALLER_CALLS_MAX of each of so many callers are CALLS_MAX; one more of either is S400. */
START_TEST(test_calls_in_flight)
{
    static struct native_client *callers[CALLERS];
    static struct native_call *calls[CALLS_MAX];
    const struct native_client_options options = { .hello = &native_caller_hello };
    struct native_client_options shared = options;
    struct trial trial;
    struct played_adapter *adapter;

    trial_open(&trial, trial_unmanaged("one"));
    shared.loop = trial.loop;
    adapter = trial_adapter(&trial, "one", never_answer, NULL);
    router_process_await_bound(trial.router, "one");
    for (size_t i = 0; i < CALLERS; i++) {
        ck_assert_int_eq(native_client_new_with(router_process_url(trial.router), &shared,
                                                TRIAL_WAIT_MS, &callers[i]),
                         0);
        for (size_t j = 0; j < CALLER_CALLS_MAX; j++)
            ck_assert_int_eq(native_call_start(callers[i], "sandbox::exec", "{}", 2,
                                               &calls[i * CALLER_CALLS_MAX + j]),
                             0);
        TURN_UNTIL(trial.loop, played_adapter_calls(adapter) == (i + 1) * CALLER_CALLS_MAX);
    }
    struct native_call *over;
    ck_assert_int_eq(native_call_start(callers[0], "sandbox::exec", "{}", 2, &over), 0);
    ck_assert_ptr_nonnull(strstr(trial_error(over), "S400"));
    ck_assert_ptr_nonnull(strstr(
        trial_error(over), limit_text(CALLER_CALLS_MAX, "calls in flight of one connection")));
    native_call_free(over);
    trial_expect_error(&trial, "sandbox::exec", "S400",
                       limit_text(CALLS_MAX, "calls in flight"), NULL);
    ck_assert_int_eq(trial_metric(&trial, "sandbox_calls_in_flight"), CALLS_MAX);

    played_adapter_free(adapter);
    for (size_t i = 0; i < CALLS_MAX; i++)
        ck_assert_ptr_nonnull(strstr(trial_error(calls[i]), "\"may_have_run\""));
    for (size_t i = 0; i < CALLERS; i++)
        native_client_free(callers[i]);
    trial_close(&trial);
}
END_TEST

START_TEST(test_channels)
{
    struct trial trial;

    trial_open(&trial, "");
    for (size_t i = 0; i < CHANNELS_MAX; i++) {
        bool ok;
        _cleanup_free_ char *text = trial_call(&trial, "engine::channels::create", "{}", &ok);

        ck_assert_msg(ok, "%s", text);
    }
    trial_expect_error(&trial, "engine::channels::create", "S400", "2048 channels", NULL);
    trial_close(&trial);
}
END_TEST

START_TEST(test_message_size)
{
    struct trial trial;
    char first[64];
    int fd;

    trial_open(&trial, "");
    fd = raw_native(trial.router);
    raw_caller(fd);
    raw_frame(fd, (16ull << 20) + 1, "x", 1);
    ck_assert(raw_ended(fd, TRIAL_WAIT_MS, first, sizeof(first)));
    raw_close(fd);
    (void)router_process_await_log(trial.router, "message over max_message_bytes");
    trial_close(&trial);
}
END_TEST

#define DEAF_BODY (1u << 20)
#define DEAF_SLACK_MS 4000

/* Each answer is a MiB. */
static void answer_much(void *ctx, struct played_adapter *adapter, const struct envelope *call)
{
    static char body[DEAF_BODY];

    memset(body, ' ', sizeof(body));
    body[0] = '{';
    body[sizeof(body) - 1] = '}';
    played_adapter_reply(adapter, call->id, (struct span){ body, sizeof(body) });
}

static void deaf_call(int fd, uint64_t id)
{
    raw_envelope(fd, &(struct envelope){ .kind = ENVELOPE_CALL,
                                         .id = id,
                                         .operation = span_of_text("sandbox::exec"),
                                         .deadline_ms = ENVELOPE_NO_DEADLINE,
                                         .body = { "{}", 2 } });
}

/* A caller that takes no answer: beyond 8 MiB nothing more is read from it, and when none of
 * them moved for 30 s it is dropped by name. It waits the real time. */
START_TEST(test_queue_bytes)
{
    struct trial trial;
    struct played_adapter *adapter;
    unsigned calls = 0;
    bool ok;
    uint64_t start_ms;
    int fd;

    trial_open(&trial, trial_unmanaged("one"));
    adapter = trial_adapter(&trial, "one", answer_much, NULL);
    router_process_await_bound(trial.router, "one");
    fd = raw_native(trial.router);
    raw_caller(fd);
    start_ms = trial_now_ms();
    while (trial_metric(&trial, "sandbox_backlog_bytes") <= (long)BACKLOG_CONNECTION_BYTES) {
        deaf_call(fd, ++calls);
        while (trial_metric(&trial, "sandbox_sent_bytes_total{front=\"native\"}") <
               (long)calls * (long)DEAF_BODY)
            turn_for(trial.loop, 5); /* until the answer is queued */
    }
    for (unsigned i = 1; i <= 20; i++)
        deaf_call(fd, calls + i);
    turn_for(trial.loop, 500);
    ck_assert_uint_le(played_adapter_calls(adapter), calls + 1); /* it is read no more */
    ck_assert_int_le(trial_metric(&trial, "sandbox_backlog_bytes"),
                     (long)BACKLOG_CONNECTION_BYTES + 3 * (long)DEAF_BODY);
    free(trial_call(&trial, "sandbox::exec", "{}", &ok)); /* others are served */
    ck_assert(ok);
    (void)router_process_await_log(trial.router,
                                   "took nothing of what waits for it for too long");
    ck_assert_uint_ge(trial_now_ms() - start_ms, BACKLOG_STALL_MS);
    ck_assert_uint_le(trial_now_ms() - start_ms, BACKLOG_STALL_MS + DEAF_SLACK_MS);
    ck_assert_int_eq(trial_metric(&trial, "sandbox_backlog_bytes"), 0);
    raw_close(fd);
    played_adapter_free(adapter);
    trial_close(&trial);
}
END_TEST

UNIT_MAIN("limits", test_native_connections, test_web_connections, test_descriptors,
          test_descriptor_limit_is_raised, test_calls_in_flight, test_channels,
          test_message_size, test_queue_bytes)
