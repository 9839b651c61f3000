/* quiet.c - see quiet.h. */
#include "quiet.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define LOOK_MS 50u
#define RESTS_US 2000u /* of LOOK_MS at most: an idle QEMU takes a quarter of it */
#define RESTS 2u       /* looks in a row: one may only have got no processor */

struct quiet {
    struct loop *loop;
    struct loop_timer *timer;
    clockid_t clock; /* processor time of all its threads */
    uint64_t used_us;
    uint64_t until_ms;
    unsigned rests;
    void (*done)(void *ctx);
    void *ctx;
};

static int used_us(clockid_t clock, uint64_t *ret_us)
{
    struct timespec used;

    if (clock_gettime(clock, &used) < 0)
        return -errno;
    *ret_us = (uint64_t)used.tv_sec * 1000000u + (uint64_t)used.tv_nsec / 1000u;
    return 0;
}

static void on_look(void *ctx)
{
    struct quiet *quiet = ctx;
    uint64_t now_us = quiet->used_us;

    if (used_us(quiet->clock, &now_us) < 0) {
        quiet->done(quiet->ctx);
        return;
    }
    quiet->rests = now_us - quiet->used_us <= RESTS_US ? quiet->rests + 1 : 0;
    quiet->used_us = now_us;
    if (quiet->rests == RESTS || loop_now_ms(quiet->loop) >= quiet->until_ms)
        quiet->done(quiet->ctx);
    else
        loop_timer_arm(quiet->timer, LOOK_MS);
}

int quiet_new(struct loop *loop, pid_t pid, void (*done)(void *ctx), void *ctx,
              struct quiet **ret_quiet)
{
    struct quiet *quiet = calloc(1, sizeof(*quiet));
    int result;

    if (!quiet)
        return -ENOMEM;
    *quiet = (struct quiet){ .loop = loop,
                             .until_ms = loop_now_ms(loop) + QUIET_PATIENCE_MS,
                             .done = done,
                             .ctx = ctx };
    result = -clock_getcpuclockid(pid, &quiet->clock);
    if (result == 0)
        result = used_us(quiet->clock, &quiet->used_us);
    if (result == 0)
        result = loop_timer_new(loop, on_look, quiet, &quiet->timer);
    if (result < 0) {
        quiet_free(quiet);
        return result;
    }
    loop_timer_arm(quiet->timer, LOOK_MS);
    *ret_quiet = quiet;
    return 0;
}

void quiet_free(struct quiet *quiet)
{
    if (!quiet)
        return;
    loop_timer_free(quiet->timer);
    free(quiet);
}
