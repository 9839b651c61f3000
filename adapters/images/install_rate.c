/* install_rate.c - see install_rate.h. */
#include "install_rate.h"

#define INTERVAL_MS 100 /* between two reports of one stage */
#define WINDOW_MS 1500  /* the rate follows what happens over so long */

/* An exponential mean: what came in the last WINDOW_MS counts most. */
static uint64_t mean_rate(const struct install_rate *rate, uint64_t elapsed_ms, uint64_t bytes)
{
    uint64_t now_rate = bytes * 1000 / elapsed_ms;
    uint64_t weight_ms = elapsed_ms < WINDOW_MS ? elapsed_ms : WINDOW_MS;

    if (rate->bytes_per_second == 0)
        return now_rate;
    return (rate->bytes_per_second * (WINDOW_MS - weight_ms) + now_rate * weight_ms) /
           WINDOW_MS;
}

bool install_rate_take(struct install_rate *rate, uint64_t now_ms,
                       struct image_progress *progress)
{
    uint64_t elapsed_ms = now_ms - rate->told_ms;

    if (rate->begun && progress->stage < rate->stage)
        return false;
    if (!rate->begun || progress->stage != rate->stage) {
        rate->begun = true;
        rate->stage = progress->stage;
        rate->bytes_per_second = 0;
    } else if (elapsed_ms < INTERVAL_MS) {
        return false;
    } else if (progress->bytes >= rate->told_bytes) {
        rate->bytes_per_second = mean_rate(rate, elapsed_ms,
                                           progress->bytes - rate->told_bytes);
    }
    rate->told_ms = now_ms;
    rate->told_bytes = progress->bytes;
    progress->bytes_per_second = rate->bytes_per_second;
    return true;
}
