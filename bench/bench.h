/* bench.h - what the benchmarks share: options, the report, and their entry points. */
#pragma once

#include "report.h"
#include "subject.h"

#define BENCH_MEMORY_MB 128u /* of each sandbox */
#define BENCH_DISK_MB 256u   /* all of them are promised that at once */
#define BENCH_BODY_MAX 4096

/* Lines below `sandbox` that choose how machines come about; only sandbox-qemu reads them. */
#define BENCH_SECTION_COLD "  qemu: {templates: false, pool_size: 0}\n"
#define BENCH_SECTION_RESTORE "  qemu: {templates: true, pool_size: 0}\n"
#define BENCH_SECTION_POOL "  qemu: {templates: true, pool_size: 2}\n"

struct bench {
    const char *router_program;
    const char *adapter; /* program under test */
    const char *mock;    /* sandbox-mock, for the router's rows */
    const char *bare;    /* the adapter with a relay that does nothing of its own */
    const char *image;
    const char *settings;  /* further YAML lines of sandbox.settings, or NULL */
    size_t count;          /* calls of bench_calls() */
    char acceleration[32]; /* "kvm", "tcg", "none"; of the calibration */
    bool quick;            /* few repetitions: to see that all of it runs */
    struct report report;
};

/* Each adds its rows; 0, or -1 with a line on stderr. */
int bench_router(struct bench *bench);
int bench_stream(struct bench *bench); /* the last rows of `router` alone */
int bench_create(struct bench *bench);
int bench_burst(struct bench *bench);
int bench_exec(struct bench *bench);
int bench_run(struct bench *bench);
int bench_files(struct bench *bench);
int bench_density(struct bench *bench);
int bench_worker(struct bench *bench);
int bench_network(struct bench *bench);
int bench_calls(struct bench *bench); /* only makes them */

/* The rows of streams through this router. */
int bench_stream_rows(struct bench *bench, const struct subject *subject);

/* Starts router and adapter with the bench's settings and EXTRA lines below `sandbox`. */
int bench_subject(struct bench *bench, const char *adapter, const char *extra,
                  struct subject **ret_subject);
/* One call and its duration; the body's text in RET_BODY if not NULL. -1 on an error answer. */
int bench_call(struct native_client *client, const char *function, const char *body,
               double *ret_ms, struct buf *ret_body);
/* Lets the adapter do what it does in the background (templates, refilling a pool). */
void bench_settle(struct native_client *client, uint32_t ms);
/* COUNT of FULL, or a few in a quick run. */
int bench_repetitions(const struct bench *bench, int full);
/* Sandboxes of the bench's image. RET_MS may be NULL. */
int bench_create_one(struct bench *bench, struct native_client *client, double *ret_ms,
                     char ret_id[64]);
int bench_stop_one(struct native_client *client, const char *id); /* and waits for its end */
/* ARGV as the inside of a JSON array. -1: too long. */
int bench_exec_body(char ret_body[BENCH_BODY_MAX], const char *id, const char *argv);
/* Pulls the text member KEY out of a JSON object. -1 when it is not there. */
int bench_text(const struct buf *body, const char *key, char *ret, size_t size);
