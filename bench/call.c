/* call.c - subjects and single calls for the benchmarks. */
#include "bench.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define ANSWER_TIMEOUT_MS 600000

int bench_subject(struct bench *bench, const char *adapter, const char *extra,
                  struct subject **ret_subject)
{
    char error[2048], settings[1024];
    snprintf(settings, sizeof(settings),
             "    image_allowlist: [%s]\n    default_memory_mb: %u\n"
             "    max_concurrent_sandboxes: 256\n    max_disk_mb: %u\n%s",
             bench->image, BENCH_MEMORY_MB, BENCH_DISK_MB,
             bench->settings ? bench->settings : "");
    struct subject_options options = { .router_program = bench->router_program,
                                       .adapter = adapter,
                                       .state = SUBJECT_BOUND,
                                       .section = extra,
                                       .settings = settings };
    if (subject_start(&options, ret_subject, error, sizeof(error)) < 0) {
        fprintf(stderr, "sandbox-bench: %s\n", error);
        return -1;
    }
    return 0;
}

int bench_call(struct native_client *client, const char *function, const char *body,
               double *ret_ms, struct buf *ret_body)
{
    _cleanup_(native_call_freep)
    struct native_call *call = NULL;
    double start = bench_now_ms();
    size_t size;
    int ret = native_call_start(client, function, body, strlen(body), &call);
    if (ret == 0)
        ret = native_call_wait(call, ANSWER_TIMEOUT_MS);
    if (ret_ms)
        *ret_ms = bench_now_ms() - start;
    if (ret < 0) {
        fprintf(stderr, "sandbox-bench: %s: %s\n", function, strerror(-ret));
        return -1;
    }
    const char *text = native_call_body(call, &size);
    if (!native_call_ok(call)) {
        fprintf(stderr, "sandbox-bench: %s: %.500s\n", function, text);
        return -1;
    }
    return ret_body ? buf_append(ret_body, text, size) : 0;
}

static void on_settled(void *ctx)
{
    *(bool *)ctx = true;
}

void bench_settle(struct native_client *client, uint32_t ms)
{
    struct loop *loop = native_client_loop(client);
    _cleanup_(loop_timer_freep)
    struct loop_timer *timer = NULL;
    bool settled = false;
    if (loop_timer_new(loop, on_settled, &settled, &timer) < 0)
        return;
    loop_timer_arm(timer, ms);
    while (!settled && loop_turn(loop, -1) >= 0)
        ;
}

int bench_text(const struct buf *body, const char *key, char *ret, size_t size)
{
    json_t *value = json_loadb((const char *)body->data, body->size, JSON_ALLOW_NUL, NULL);
    const char *text = json_string_value(json_object_get(value, key));
    if (text)
        snprintf(ret, size, "%s", text);
    json_decref(value);
    return text ? 0 : -1;
}
