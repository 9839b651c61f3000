/* sample.h - measured values of one kind, and what is said of them. */
#pragma once

#include <stddef.h>

struct samples {
    size_t count;
    size_t capacity;
    double *values;
};

int samples_add(struct samples *samples, double value); /* 0 or -ENOMEM */
/* Nearest rank, 0 < PERCENT <= 100; sorts in place. 0 without values. */
double samples_percentile(struct samples *samples, double percent);
void samples_done(struct samples *samples);

/* Samples of several rounds, each with percentiles of its own. Where the values of a round come
 * in steps, the median of all is the worst round's value of one step, or the best round's of
 * the next; the median of the rounds' medians is neither. */
struct rounds {
    size_t count; /* of all samples */
    struct samples p50, p95, p99;
};

int rounds_add(struct rounds *rounds, struct samples *round); /* sorts it; 0 or -ENOMEM */
void rounds_done(struct rounds *rounds);

double bench_now_ms(void); /* monotonic */
