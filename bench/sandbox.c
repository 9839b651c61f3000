/* sandbox.c - single sandboxes for the benchmarks. */
#include <stdio.h>

#include "bench.h"

int bench_repetitions(const struct bench *bench, int full)
{
    return bench->quick ? (full + 9) / 10 : full;
}

int bench_create_one(struct bench *bench, struct native_client *client, double *ret_ms,
                     char ret_id[64])
{
    _cleanup_(buf_done)
    struct buf reply = { 0 };
    char body[256];
    snprintf(body, sizeof(body), "{\"image\":\"%s\"}", bench->image);
    if (bench_call(client, "sandbox::create", body, ret_ms, &reply) < 0)
        return -1;
    return bench_text(&reply, "sandbox_id", ret_id, 64);
}

int bench_stop_one(struct native_client *client, const char *id)
{
    char body[128];
    snprintf(body, sizeof(body), "{\"sandbox_id\":\"%s\",\"wait\":true}", id);
    return bench_call(client, "sandbox::stop", body, NULL, NULL);
}

int bench_exec_body(char ret_body[BENCH_BODY_MAX], const char *id, const char *argv)
{
    int size = snprintf(ret_body, BENCH_BODY_MAX, "{\"sandbox_id\":\"%s\",\"argv\":[%s]}", id,
                        argv);
    return size > 0 && size < BENCH_BODY_MAX ? 0 : -1;
}
