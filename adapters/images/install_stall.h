/* install_stall.h - whether a pull still gets on: a source that trickles holds nobody up until
 * pull_timeout_ms. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "loop.h"

/* A pull that brings less, on the average of one time limit, stands still. */
#define INSTALL_LEAST_BYTES_PER_SECOND 1024

struct install_stall {
    struct loop_timer *timer;
    uint32_t timeout_ms; /* 0: it is not watched */
    bool pulling;        /* the timer is armed */
    uint64_t mark_bytes; /* what had come when it was armed */
};

/* STALLED is told once for each time that the limit passes. 0 or -ENOMEM. */
int install_stall_init(struct install_stall *stall, struct loop *loop, uint32_t timeout_ms,
                       void (*stalled)(void *ctx), void *ctx);
void install_stall_done(struct install_stall *stall);

/* What has come so far; PULLING false: nothing is waited for. */
void install_stall_note(struct install_stall *stall, bool pulling, uint64_t bytes);
/* What has to come within the limit. */
uint64_t install_stall_least_bytes(const struct install_stall *stall);
