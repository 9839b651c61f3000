/* progress.c - see progress.h. */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "colour.h"
#include "json_scan.h"
#include "output.h"
#include "progress_line.h"

#define REDRAW_MS 100
#define COLUMNS_UNKNOWN 80u
#define WIPE "\r\033[K"

static unsigned columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return COLUMNS_UNKNOWN;
    return size.ws_col;
}

static void draw(const struct progress *progress)
{
    uint64_t now_ms = loop_now_ms(progress->loop);
    const struct progress_line line = {
        .step = progress->step,
        .has_bytes = progress->has_bytes,
        .done_bytes = progress->done_bytes,
        .total_bytes = progress->total_bytes,
        .step_ms = now_ms - progress->step_begun_ms,
        .elapsed_ms = now_ms - progress->begun_ms,
    };
    char text[sizeof(WIPE) + PROGRESS_LINE_MAX_BYTES] = WIPE;
    size_t size = sizeof(WIPE) - 1;

    size += progress_line_write(&line, columns(), text + size);
    (void)output_write(STDERR_FILENO, text, size); /* a hint, no more */
}

static void on_timer(void *ctx)
{
    struct progress *progress = ctx;

    draw(progress);
    loop_timer_arm(progress->timer, REDRAW_MS);
}

void progress_begin(struct progress *progress, struct loop *loop, const char *step)
{
    *progress = (struct progress){ .loop = loop, .begun_ms = loop_now_ms(loop) };
    if (!colour_is_screen(STDERR_FILENO) ||
        loop_timer_new(loop, on_timer, progress, &progress->timer) < 0)
        return;
    progress_step(progress, step);
    loop_timer_arm(progress->timer, REDRAW_MS);
}

void progress_step(struct progress *progress, const char *step)
{
    if (!progress->timer || progress->step == step)
        return;
    progress->step = step;
    progress->step_begun_ms = loop_now_ms(progress->loop);
    progress->has_bytes = false;
    draw(progress);
}

void progress_bytes(struct progress *progress, uint64_t done_bytes, uint64_t total_bytes)
{
    bool first = !progress->has_bytes;

    progress->has_bytes = true;
    progress->done_bytes = done_bytes;
    progress->total_bytes = total_bytes;
    if (first && progress->timer)
        draw(progress);
}

static void pulling(struct progress *progress, struct span event)
{
    uint64_t done = 0, total = 0;

    (void)json_as_u64(json_get(event, "progress_bytes"), &done); /* 0 when it is not there */
    (void)json_as_u64(json_get(event, "total_bytes"), &total);
    progress_step(progress, "pulling image");
    progress_bytes(progress, done, total);
}

void progress_event(void *ctx, struct span event)
{
    struct progress *progress = ctx;
    struct span name = json_kind(event) == JSON_OBJECT ? json_get(event, "event")
                                                       : (struct span){ 0 };

    if (json_string_equals(name, "pulling_image"))
        pulling(progress, event);
    else if (json_string_equals(name, "unpacking"))
        progress_step(progress, "unpacking image");
    else if (json_string_equals(name, "booting_vm"))
        progress_step(progress, "booting");
}

void progress_end(struct progress *progress, const char *summary)
{
    uint64_t tenths;

    if (!progress->timer)
        return;
    tenths = (loop_now_ms(progress->loop) - progress->begun_ms) / 100;
    loop_timer_free(take_ptr(progress->timer));
    (void)fputs(WIPE, stderr);
    if (summary)
        (void)fprintf(stderr, "%s✓%s %s in %" PRIu64 ".%" PRIu64 "s\n",
                      colour(STDERR_FILENO, COLOUR_GREEN), colour(STDERR_FILENO, COLOUR_NONE),
                      summary, tenths / 10, tenths % 10);
}
