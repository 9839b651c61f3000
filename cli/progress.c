/* progress.c - see progress.h. */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "json_scan.h"
#include "output.h"

#define REDRAW_MS 100

static void draw(struct progress *progress)
{
    uint64_t tenths = (loop_now_ms(progress->loop) - progress->begun_ms) / 100;
    char line[PROGRESS_TEXT_MAX_BYTES + 64];
    int size = snprintf(line, sizeof(line), "\r\033[K%s… %" PRIu64 ".%" PRIu64 "s",
                        progress->text, tenths / 10, tenths % 10);

    (void)output_write(STDERR_FILENO, line, (size_t)size); /* a hint, no more */
}

static void on_timer(void *ctx)
{
    struct progress *progress = ctx;

    draw(progress);
    loop_timer_arm(progress->timer, REDRAW_MS);
}

void progress_begin(struct progress *progress, struct loop *loop, const char *text)
{
    *progress = (struct progress){ .loop = loop, .begun_ms = loop_now_ms(loop) };
    if (!isatty(STDERR_FILENO) ||
        loop_timer_new(loop, on_timer, progress, &progress->timer) < 0)
        return;
    progress_step(progress, text);
    loop_timer_arm(progress->timer, REDRAW_MS);
}

void progress_step(struct progress *progress, const char *text)
{
    if (!progress->timer)
        return;
    (void)snprintf(progress->text, sizeof(progress->text), "%s", text); /* cut is fine */
    draw(progress);
}

void progress_bytes(struct progress *progress, const char *verb, uint64_t bytes)
{
    if (progress->timer)
        (void)snprintf(progress->text, sizeof(progress->text), "%s, %" PRIu64 " KiB", verb,
                       bytes / 1024);
}

/* What a pull has done, in percent where the total is known. */
static void pulling(struct progress *progress, struct span event)
{
    uint64_t done = 0, total = 0;
    char text[PROGRESS_TEXT_MAX_BYTES];

    (void)json_as_u64(json_get(event, "progress_bytes"), &done); /* 0 when it is not there */
    (void)json_as_u64(json_get(event, "total_bytes"), &total);
    if (total > 0 && done <= total)
        (void)snprintf(text, sizeof(text), "pulling image, %u %%",
                       (unsigned)((double)done * 100.0 / (double)total));
    else
        (void)snprintf(text, sizeof(text), "pulling image, %" PRIu64 " KiB", done / 1024);
    progress_step(progress, text);
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
    (void)fputs("\r\033[K", stderr);
    if (summary)
        (void)fprintf(stderr, "✓ %s in %" PRIu64 ".%" PRIu64 "s\n", summary, tenths / 10,
                      tenths % 10);
}
