/* sample.c - see sample.h. */
#include "sample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

int samples_add(struct samples *samples, double value)
{
    if (samples->count == samples->capacity) {
        size_t capacity = samples->capacity ? samples->capacity * 2 : 64;
        double *values = realloc(samples->values, capacity * sizeof(*values));
        if (!values)
            return -ENOMEM;
        samples->values = values;
        samples->capacity = capacity;
    }
    samples->values[samples->count++] = value;
    return 0;
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

double samples_percentile(struct samples *samples, double percent)
{
    if (samples->count == 0)
        return 0;
    qsort(samples->values, samples->count, sizeof(*samples->values), by_value);
    size_t rank = (size_t)ceil(percent / 100 * (double)samples->count);
    return samples->values[rank > 0 ? rank - 1 : 0];
}

void samples_done(struct samples *samples)
{
    free(samples->values);
    *samples = (struct samples){ 0 };
}

int rounds_add(struct rounds *rounds, struct samples *round)
{
    if (samples_add(&rounds->p50, samples_percentile(round, 50)) < 0 ||
        samples_add(&rounds->p95, samples_percentile(round, 95)) < 0 ||
        samples_add(&rounds->p99, samples_percentile(round, 99)) < 0)
        return -ENOMEM;
    rounds->count += round->count;
    return 0;
}

void rounds_done(struct rounds *rounds)
{
    samples_done(&rounds->p50);
    samples_done(&rounds->p95);
    samples_done(&rounds->p99);
    rounds->count = 0;
}

double bench_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}
