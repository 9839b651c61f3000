/* plain_work.c - see plain_work.h. Ordinary code, full of branches: a loop that waits for its
 * own results would not notice that its processor is shared. */
#include "plain_work.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define NUMBERS 4096u
#define TRIAL 16u

struct work {
    unsigned repetitions, pieces;
    atomic_uint begun;
    double begin;
    double done[WORK_PIECES_MAX]; /* since BEGIN */
};

static int by_number(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static void sort_numbers(void)
{
    uint32_t numbers[NUMBERS], number = 1;
    for (size_t i = 0; i < NUMBERS; i++)
        numbers[i] = number = number * 1664525u + 1013904223u;
    qsort(numbers, NUMBERS, sizeof(numbers[0]), by_number);
}

unsigned work_repetitions(double ms)
{
    double start = bench_now_ms();
    for (unsigned i = 0; i < TRIAL; i++)
        sort_numbers();
    double repetitions = ms * TRIAL / (bench_now_ms() - start);
    return repetitions < 1 ? 1 : (unsigned)repetitions;
}

static void *run_lane(void *ctx)
{
    struct work *work = ctx;
    unsigned piece;
    while ((piece = atomic_fetch_add(&work->begun, 1)) < work->pieces) {
        for (unsigned i = 0; i < work->repetitions; i++)
            sort_numbers();
        work->done[piece] = bench_now_ms() - work->begin;
    }
    return NULL;
}

/* Those that could be started are waited for in any case. */
static int run_lanes(struct work *work, unsigned lanes)
{
    pthread_t threads[WORK_PIECES_MAX];
    unsigned started = 0;
    int error = 0;
    work->begin = bench_now_ms();
    while (started < lanes && error == 0) {
        error = pthread_create(&threads[started], NULL, run_lane, work);
        started += error == 0;
    }
    for (unsigned i = 0; i < started; i++)
        (void)pthread_join(threads[i], NULL); /* it is ours, and is joined once */
    return -error;
}

int work_run(unsigned repetitions, unsigned pieces, unsigned lanes, struct samples *samples)
{
    struct work work = { .repetitions = repetitions,
                         .pieces = pieces < WORK_PIECES_MAX ? pieces : WORK_PIECES_MAX };
    int ret = run_lanes(&work, lanes < work.pieces ? lanes : work.pieces);
    for (unsigned i = 0; i < work.pieces && ret == 0; i++) {
        double before = lanes == 1 && i > 0 ? work.done[i - 1] : 0;
        ret = samples_add(samples, work.done[i] - before);
    }
    return ret;
}
