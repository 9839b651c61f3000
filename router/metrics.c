/* metrics.c - see metrics.h. */
#include "metrics.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include "json_scan.h"
#include "router.h"

#define CODE_TEXT_MAX 16

static const uint64_t bucket_us[METRICS_BUCKETS] = {
    100, 500, 2000, 10000, 50000, 200000, 1000000, 5000000, 30000000, 120000000,
};
static const char *const bucket_texts[METRICS_BUCKETS] = {
    "0.0001", "0.0005", "0.002", "0.01", "0.05", "0.2", "1", "5", "30", "120",
};

static const char *const other_codes[] = { "other", "not_found", "expired", "failed",
                                           "cancelled" };
static_assert(ARRAY_SIZE(other_codes) == METRICS_CODE_MAX - METRICS_CODE_OTHER,
              "a text for each column");

uint64_t metrics_now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void metrics_call(struct metrics *metrics, unsigned op, unsigned code, uint64_t took_us)
{
    struct metrics_latency *latency = &metrics->latency[op];
    unsigned bucket = 0;

    assert(op < METRICS_OP_MAX && code < METRICS_CODE_MAX);
    while (bucket < METRICS_BUCKETS && took_us > bucket_us[bucket])
        bucket++;
    latency->buckets[bucket]++;
    latency->sum_us += took_us;
    metrics->calls[op][code]++;
}

unsigned metrics_code_of(struct span envelope)
{
    _cleanup_(buf_done)
    struct buf text = { .limit = CODE_TEXT_MAX };
    struct span object;
    enum sandbox_code code;

    if (!envelope.data || json_scan(envelope.data, envelope.size, &object, NULL) < 0 ||
        json_kind(object) != JSON_OBJECT ||
        json_string_decode(json_get(object, "code"), &text) < 0)
        return METRICS_CODE_OTHER;
    code = buf_text(&text) ? error_code_parse(buf_text(&text)) : SANDBOX_OK;
    return code == SANDBOX_OK ? METRICS_CODE_OTHER : (unsigned)code;
}

/* The text. The first failure sticks. */

struct writer {
    struct buf *to;
    int result;
};

static void put(struct writer *writer, const char *format, ...) _printf_(2, 3);

static void put(struct writer *writer, const char *format, ...)
{
    va_list arguments;

    if (writer->result < 0)
        return;
    va_start(arguments, format);
    writer->result = buf_vprintf(writer->to, format, arguments);
    va_end(arguments);
}

static void put_head(struct writer *writer, const char *name, const char *type,
                     const char *help)
{
    put(writer, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_one(struct writer *writer, const char *name, const char *type, const char *help,
                    uint64_t value)
{
    put_head(writer, name, type, help);
    put(writer, "%s %llu\n", name, (unsigned long long)value);
}

static const char *op_text(unsigned op)
{
    if (op < OP_MAX)
        return operations[op].name;
    return op == METRICS_OP_CHANNELS_CREATE ? "channels::create" : "other";
}

const char *metrics_code_text(unsigned code)
{
    if (code == SANDBOX_OK)
        return "ok";
    if (code < SANDBOX_CODE_MAX)
        return error_info_get((enum sandbox_code)code)->code;
    return other_codes[code - METRICS_CODE_OTHER];
}

static void put_calls(struct writer *writer, const struct metrics *metrics)
{
    put_head(writer, "sandbox_calls_total", "counter",
             "Calls that ended, by operation and code.");
    for (unsigned op = 0; op < METRICS_OP_MAX; op++) {
        for (unsigned code = 0; code < METRICS_CODE_MAX; code++) {
            if (metrics->calls[op][code] > 0)
                put(writer, "sandbox_calls_total{op=\"%s\",code=\"%s\"} %llu\n", op_text(op),
                    metrics_code_text(code), (unsigned long long)metrics->calls[op][code]);
        }
    }
}

static void put_latency_of(struct writer *writer, const char *op,
                           const struct metrics_latency *latency)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < METRICS_BUCKETS; i++) {
        count += latency->buckets[i];
        put(writer, "sandbox_call_seconds_bucket{op=\"%s\",le=\"%s\"} %llu\n", op,
            bucket_texts[i], (unsigned long long)count);
    }
    count += latency->buckets[METRICS_BUCKETS];
    put(writer, "sandbox_call_seconds_bucket{op=\"%s\",le=\"+Inf\"} %llu\n", op,
        (unsigned long long)count);
    put(writer, "sandbox_call_seconds_sum{op=\"%s\"} %llu.%06llu\n", op,
        (unsigned long long)(latency->sum_us / 1000000),
        (unsigned long long)(latency->sum_us % 1000000));
    put(writer, "sandbox_call_seconds_count{op=\"%s\"} %llu\n", op, (unsigned long long)count);
}

static bool was_called(const struct metrics *metrics, unsigned op)
{
    for (unsigned code = 0; code < METRICS_CODE_MAX; code++) {
        if (metrics->calls[op][code] > 0)
            return true;
    }
    return false;
}

static void put_latency(struct writer *writer, const struct metrics *metrics)
{
    put_head(writer, "sandbox_call_seconds", "histogram", "Time from a call to its answer.");
    for (unsigned op = 0; op < METRICS_OP_MAX; op++) {
        if (was_called(metrics, op))
            put_latency_of(writer, op_text(op), &metrics->latency[op]);
    }
}

static const struct front_row {
    const char *name;
    const char *type;
    const char *help;
    size_t offset;
} front_rows[] = {
    { "sandbox_connections", "gauge", "Connections of a front.",
      offsetof(struct metrics_front_counters, connections) },
    { "sandbox_connections_total", "counter", "Connections ever made.",
      offsetof(struct metrics_front_counters, connections_made) },
    { "sandbox_received_bytes_total", "counter", "Bytes that came from peers.",
      offsetof(struct metrics_front_counters, received_bytes) },
    { "sandbox_sent_bytes_total", "counter", "Bytes that went to peers.",
      offsetof(struct metrics_front_counters, sent_bytes) },
    { "sandbox_connections_dropped_total", "counter",
      "Connections closed for a reason of ours.",
      offsetof(struct metrics_front_counters, dropped) },
};

static void put_fronts(struct writer *writer, const struct metrics *metrics)
{
    static const char *const names[] = { "native", "web" };

    static_assert(ARRAY_SIZE(names) == METRICS_FRONT_MAX, "a name for each front");
    for (size_t i = 0; i < ARRAY_SIZE(front_rows); i++) {
        const struct front_row *row = &front_rows[i];

        put_head(writer, row->name, row->type, row->help);
        for (unsigned front = 0; front < METRICS_FRONT_MAX; front++) {
            uint64_t value;

            memcpy(&value, (const char *)&metrics->fronts[front] + row->offset, sizeof(value));
            put(writer, "%s{front=\"%s\"} %llu\n", row->name, names[front],
                (unsigned long long)value);
        }
    }
}

static void put_adapter(struct writer *writer, const struct router *router)
{
    put_head(writer, "sandbox_adapter_state", "gauge", "1 for the state the binding is in.");
    for (unsigned state = 0; state < BINDING_STATE_MAX; state++)
        put(writer, "sandbox_adapter_state{state=\"%s\"} %d\n",
            binding_state_text((enum binding_state)state), router->binding.state == state);
    put_one(writer, "sandbox_adapters", "gauge", "Connected adapters, parked ones included.",
            router->adapters.count);
    put_one(writer, "sandbox_adapter_connects_total", "counter", "Adapters that said hello.",
            router->metrics.adapter_connects);
    put_one(writer, "sandbox_adapter_losses_total", "counter", "Adapters that were lost.",
            router->metrics.adapter_losses);
    put_one(writer, "sandbox_adapter_restarts_total", "counter",
            "Starts of an adapter's process after its first.",
            router->metrics.adapter_restarts);
    put_one(writer, "sandbox_late_answers_total", "counter",
            "Answers that fitted no call and were dropped.", router->metrics.late_answers);
}

int metrics_write(const struct router *router, struct buf *to)
{
    struct writer writer = { .to = to };

    put_calls(&writer, &router->metrics);
    put_latency(&writer, &router->metrics);
    put_one(&writer, "sandbox_calls_in_flight", "gauge", "Calls that wait for an adapter.",
            router->passthrough.open);
    put_one(&writer, "sandbox_calls_unanswered", "gauge",
            "Calls an adapter still has to answer, cancelled ones included.",
            router->passthrough.in_use);
    put_one(&writer, "sandbox_channels", "gauge", "Open data channels.",
            channel_set_count(router->channels));
    put_one(&writer, "sandbox_channel_held_bytes", "gauge", "Bytes that wait in channels.",
            channel_set_held_bytes(router->channels));
    put_one(&writer, "sandbox_backlog_bytes", "gauge", "Bytes that wait to be sent to clients.",
            router->backlog.total_bytes);
    put_fronts(&writer, &router->metrics);
    put_adapter(&writer, router);
    return writer.result;
}
