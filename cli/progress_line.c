/* progress_line.c - see progress_line.h. */
#include "progress_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "byte_count.h"

#define BAR_MIN 8u
#define BAR_MAX 30u
/* A rate over less than this says nothing. */
#define RATE_MIN_MS 200u

static bool has_total(const struct progress_line *line)
{
    return line->has_bytes && line->total_bytes > 0 && line->done_bytes <= line->total_bytes;
}

/* Bytes a second; 0: unknown. */
static uint64_t rate_of(const struct progress_line *line)
{
    if (line->bytes_per_second > 0)
        return line->bytes_per_second;
    if (line->step_ms < RATE_MIN_MS)
        return 0;
    return (uint64_t)((double)line->done_bytes * 1000 / (double)line->step_ms);
}

/* What stands behind the bar. */
static void write_counts(const struct progress_line *line,
                         char ret_text[PROGRESS_LINE_MAX_BYTES])
{
    char done[BYTE_COUNT_TEXT_BYTES], total[BYTE_COUNT_TEXT_BYTES], rate[BYTE_COUNT_TEXT_BYTES];
    char of[BYTE_COUNT_TEXT_BYTES + 8] = "", per_second[BYTE_COUNT_TEXT_BYTES + 8] = "";

    ret_text[0] = '\0';
    if (!line->has_bytes)
        return;
    byte_count_write(line->done_bytes, done);
    if (has_total(line)) {
        byte_count_write(line->total_bytes, total);
        (void)snprintf(of, sizeof(of), " of %s", total); /* all of these fit */
    }
    if (rate_of(line) > 0) {
        byte_count_write(rate_of(line), rate);
        (void)snprintf(per_second, sizeof(per_second), "  %s/s", rate);
    }
    (void)snprintf(ret_text, PROGRESS_LINE_MAX_BYTES, "  %s%s%s", done, of, per_second);
}

/* "  [=====>    ]  50 %", or nothing where there is no total or no room. */
static void write_bar(const struct progress_line *line, size_t room,
                      char ret_text[PROGRESS_LINE_MAX_BYTES])
{
    static const size_t around = sizeof("  []  100 %") - 1;
    size_t width = room < around ? 0 : room - around;
    char bar[BAR_MAX + 1];
    double share;
    size_t full;

    ret_text[0] = '\0';
    if (!has_total(line) || width < BAR_MIN)
        return;
    width = width > BAR_MAX ? BAR_MAX : width;
    share = (double)line->done_bytes / (double)line->total_bytes;
    full = (size_t)(share * (double)width);
    for (size_t i = 0; i < width; i++)
        bar[i] = i < full ? '=' : i == full ? '>' : ' ';
    bar[width] = '\0';
    (void)snprintf(ret_text, PROGRESS_LINE_MAX_BYTES, "  [%s]  %3u %%", bar,
                   (unsigned)(share * 100)); /* fits */
}

size_t progress_line_write(const struct progress_line *line, unsigned columns,
                           char ret_text[PROGRESS_LINE_MAX_BYTES])
{
    char counts[PROGRESS_LINE_MAX_BYTES], bar[PROGRESS_LINE_MAX_BYTES], time[32];
    size_t limit = columns < PROGRESS_LINE_MAX_BYTES ? columns : PROGRESS_LINE_MAX_BYTES;
    size_t used;
    int size;

    write_counts(line, counts);
    (void)snprintf(time, sizeof(time), "  %" PRIu64 ".%" PRIu64 "s", line->elapsed_ms / 1000,
                   line->elapsed_ms / 100 % 10); /* fits */
    used = strlen(line->step) + strlen(counts) + strlen(time) + 1;
    write_bar(line, limit > used ? limit - used : 0, bar);
    size = snprintf(ret_text, limit, "%s%s%s%s", line->step, bar, counts, time);
    return size < 0 || limit == 0 ? 0 : strnlen(ret_text, limit);
}
