/* metrics.h - counters of the router and their Prometheus text.
 *
 * Label sets are fixed: operations and codes come from the tables, never from a peer, so that
 * nobody can make the text grow and no id, path or token can get into it. */
#pragma once

#include "buf.h"
#include "error.h"
#include "span.h"
#include "tables.h"

struct router;

/* Rows besides the operations of the table. */
enum {
    METRICS_OP_CHANNELS_CREATE = OP_MAX,
    METRICS_OP_OTHER, /* in no table: an adapter's own, or unknown */
    METRICS_OP_MAX
};

/* Columns besides the codes of the table; SANDBOX_OK is a reply. */
enum {
    METRICS_CODE_OTHER = SANDBOX_CODE_MAX, /* an error whose code is in no table */
    METRICS_CODE_NOT_FOUND,
    METRICS_CODE_EXPIRED,
    METRICS_CODE_FAILED,
    METRICS_CODE_CANCELLED,
    METRICS_CODE_MAX
};

enum metrics_front { METRICS_FRONT_NATIVE, METRICS_FRONT_WEB, METRICS_FRONT_MAX };

/* Upper bounds of the latency buckets in µs; one more bucket has none. */
#define METRICS_BUCKETS 10

struct metrics_latency {
    uint64_t buckets[METRICS_BUCKETS + 1];
    uint64_t sum_us;
};

struct metrics {
    uint64_t calls[METRICS_OP_MAX][METRICS_CODE_MAX];
    struct metrics_latency latency[METRICS_OP_MAX];
    /* Kept by the fronts themselves. */
    struct metrics_front_counters {
        uint64_t connections;      /* now */
        uint64_t connections_made; /* ever */
        uint64_t received_bytes;
        uint64_t sent_bytes;
        uint64_t dropped; /* closed by us for a reason */
    } fronts[METRICS_FRONT_MAX];
    uint64_t adapter_connects;
    uint64_t adapter_losses;
    uint64_t adapter_restarts;
    uint64_t late_answers;
};

uint64_t metrics_now_us(void);
/* One call is over, however it ended. */
void metrics_call(struct metrics *metrics, unsigned op, unsigned code, uint64_t took_us);
/* The column of an error envelope: the one look the router takes into a body, at errors only.
 */
unsigned metrics_code_of(struct span envelope);
const char *metrics_code_text(unsigned code); /* "ok", "S301", "expired" */

/* Appends the whole text for GET /metrics. 0 or -errno. */
int metrics_write(const struct router *router, struct buf *to);
