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

double bench_now_ms(void); /* monotonic */
