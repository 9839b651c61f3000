/* install_rate.h - how often the progress of an install is told, and how fast it goes. */
#pragma once

#include <stdbool.h>

#include "image.h"

/* Zero-initialised is ready. */
struct install_rate {
    bool begun;
    enum image_stage stage; /* the last one that was told */
    uint64_t told_ms, told_bytes;
    uint64_t bytes_per_second; /* of the last second or two */
};

/* True: PROGRESS is to be told now, and has its rate filled in. False: too early after the last
 * one, or the stages go backwards (contract 5.1.3). */
bool install_rate_take(struct install_rate *rate, uint64_t now_ms,
                       struct image_progress *progress);
