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
        .bytes_per_second = progress->bytes_per_second,
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
    if (!progress->timer || (progress->step && strcmp(progress->step, step) == 0))
        return;
    progress->step = step;
    progress->step_begun_ms = loop_now_ms(progress->loop);
    progress->has_bytes = false;
    progress->bytes_per_second = 0;
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

/* Of an event; 0 when it is not there. */
static uint64_t number(struct span event, const char *key)
{
    uint64_t value = 0;

    (void)json_as_u64(json_get(event, key), &value); /* no number: 0 */
    return value;
}

static void take_bytes(struct progress *progress, struct span event)
{
    if (!json_get(event, "progress_bytes").data)
        return;
    progress_bytes(progress, number(event, "progress_bytes"), number(event, "total_bytes"));
    progress->bytes_per_second = number(event, "bytes_per_second");
}

/* STAGE of an unpacking; adapters of before name none. */
static const char *unpacking_step(struct span stage)
{
    static const struct {
        const char *stage;
        const char *step;
    } steps[] = { { "packing", "packing image" }, { "sealing", "sealing image" } };

    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        if (json_string_equals(stage, steps[i].stage))
            return steps[i].step;
    }
    return "unpacking image";
}

void progress_event(void *ctx, struct span event)
{
    struct progress *progress = ctx;
    struct span name = json_kind(event) == JSON_OBJECT ? json_get(event, "event")
                                                       : (struct span){ 0 };

    if (json_string_equals(name, "pulling_image"))
        progress_step(progress, "pulling image");
    else if (json_string_equals(name, "unpacking"))
        progress_step(progress, unpacking_step(json_get(event, "stage")));
    else if (json_string_equals(name, "booting_vm"))
        progress_step(progress, "booting");
    if (name.data)
        take_bytes(progress, event);
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
