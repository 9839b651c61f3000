/* install_output.c - see install_output.h. */
#include "install_output.h"

#include <errno.h>
#include <string.h>

#include "utf8.h"

#define LINE_MAX_BYTES 4096
#define TAIL_BYTES 1024
#define TAIL_LINES 6

/* Decimal digits alone; what is behind them goes to *ret_rest. */
static bool read_number(const char *text, uint64_t *ret_number, const char **ret_rest)
{
    char *rest;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *ret_number = strtoull(text, &rest, 10);
    *ret_rest = rest;
    return errno == 0;
}

/* STAGE BYTES [TOTAL] */
static void take_progress(const struct install_output *output, const char *text)
{
    size_t size = strcspn(text, " ");
    char stage[INSTALL_STAGE_MAX];
    uint64_t bytes, total_bytes = 0;
    const char *rest;

    if (size == 0 || size >= sizeof(stage) || text[size] != ' ')
        return;
    memcpy(stage, text, size);
    stage[size] = '\0';
    if (!read_number(text + size + 1, &bytes, &rest))
        return;
    if (*rest == ' ' && !read_number(rest + 1, &total_bytes, &rest))
        return;
    if (*rest == '\0')
        output->progress(output->ctx, stage, bytes, total_bytes);
}

static void take_line(struct install_output *output, const char *line)
{
    static const char progress[] = "progress ";

    output->done = strcmp(line, "done") == 0;
    if (strncmp(line, progress, strlen(progress)) == 0)
        take_progress(output, line + strlen(progress));
}

void install_output_take(struct install_output *output, const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (data[i] != '\n') {
            if (output->line.size == LINE_MAX_BYTES ||
                buf_append_byte(&output->line, (uint8_t)data[i]) < 0)
                output->line_too_long = true;
            continue;
        }
        if (output->line_too_long || !buf_text(&output->line))
            output->done = false;
        else
            take_line(output, buf_text(&output->line));
        buf_clear(&output->line);
        output->line_too_long = false;
    }
}

void install_output_done(struct install_output *output)
{
    buf_done(&output->line);
}

void install_errors_take(struct install_errors *errors, const char *data, size_t size)
{
    struct buf *tail = &errors->tail;

    if (size > TAIL_BYTES) {
        data += size - TAIL_BYTES;
        size = TAIL_BYTES;
    }
    if (tail->size + size > TAIL_BYTES)
        buf_consume(tail, tail->size + size - TAIL_BYTES);
    (void)buf_append(tail, data, size); /* without memory the reason is shorter */
}

static void replace_controls(struct buf *tail)
{
    for (size_t i = 0; i < tail->size; i++)
        if ((tail->data[i] < ' ' && tail->data[i] != '\n') || tail->data[i] == 0x7f)
            tail->data[i] = '?';
}

/* What is no UTF-8 takes three bytes for each: the front goes again. */
static void cut_front(struct buf *text)
{
    size_t at = text->size > TAIL_BYTES ? text->size - TAIL_BYTES : 0;

    while (at > 0 && at < text->size && (text->data[at] & 0xc0) == 0x80)
        at++; /* inside a character */
    buf_consume(text, at);
}

const char *install_errors_text(struct install_errors *errors)
{
    struct buf *tail = &errors->tail;
    unsigned lines = 0;
    size_t at;

    while (tail->size > 0 && tail->data[tail->size - 1] == '\n')
        tail->size--;
    for (at = tail->size; at > 0; at--)
        if (tail->data[at - 1] == '\n' && ++lines == TAIL_LINES)
            break;
    buf_consume(tail, at);
    replace_controls(tail);
    buf_clear(&errors->text);
    if (utf8_repair(&errors->text, tail->data, tail->size) < 0)
        return "";
    cut_front(&errors->text);
    return buf_text(&errors->text) ? buf_text(&errors->text) : "";
}

void install_errors_done(struct install_errors *errors)
{
    buf_done(&errors->tail);
    buf_done(&errors->text);
}
