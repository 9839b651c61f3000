/* byte_count.c - see byte_count.h. */
#include "byte_count.h"

#include <inttypes.h>
#include <stdio.h>

#include "cleanup.h"

void byte_count_write(uint64_t bytes, char ret_text[BYTE_COUNT_TEXT_BYTES])
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double value = (double)bytes / 1024;
    size_t unit = 0;

    for (; value >= 1024 && unit + 1 < ARRAY_SIZE(units); unit++)
        value /= 1024;
    if (bytes < 1024)
        (void)snprintf(ret_text, BYTE_COUNT_TEXT_BYTES, "%" PRIu64 " B", bytes); /* fits */
    else
        (void)snprintf(ret_text, BYTE_COUNT_TEXT_BYTES, "%.1f %s", value, units[unit]);
}
