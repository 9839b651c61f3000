/* log.c - see log.h. A line is built on the stack: no memory, no lock, one write(2).
 * A value that does not fit is cut and marked with "…"; the line stays well-formed. */
#include "log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "utf8.h"

#define LOG_LINE_BYTES 8192
#define LOG_TAIL_BYTES 16 /* kept back: the mark, a quote, a brace, the newline */
#define LOG_TIME_BYTES 40
#define LOG_CUT_MARK "\xE2\x80\xA6"

struct log_line {
    char text[LOG_LINE_BYTES];
    size_t size;
    bool full; /* something did not fit; nothing more is added */
};

static struct {
    const char *program;
    enum log_format format;
    enum log_level max_level;
} log_state = { .program = "-", .format = LOG_FORMAT_KEY_VALUE, .max_level = LOG_INFO };

static const char *const level_names[] = {
    [LOG_ERROR] = "error",
    [LOG_WARN] = "warn",
    [LOG_INFO] = "info",
    [LOG_DEBUG] = "debug",
};

void log_init(const char *program, enum log_format format, enum log_level max_level)
{
    log_state.program = program;
    log_state.format = format;
    log_state.max_level = max_level;
}

int log_level_parse(const char *text, enum log_level *ret_level)
{
    for (size_t i = 0; i < ARRAY_SIZE(level_names); i++) {
        if (strcmp(text, level_names[i]) != 0)
            continue;
        *ret_level = (enum log_level)i;
        return 0;
    }
    return -EINVAL;
}

bool log_enabled(enum log_level level)
{
    return level <= log_state.max_level;
}

/* Adds all of TEXT or nothing. */
static bool line_add(struct log_line *line, const char *text, size_t size)
{
    if (line->full || line->size + size > LOG_LINE_BYTES - LOG_TAIL_BYTES) {
        line->full = true;
        return false;
    }
    memcpy(line->text + line->size, text, size);
    line->size += size;
    return true;
}

/* What ends a value or the line; its room was kept back. */
static void line_close(struct log_line *line, const char *text)
{
    size_t size = strlen(text);

    memcpy(line->text + line->size, text, size);
    line->size += size;
}

/* One character or one invalid part of TEXT in a form that is safe between quotes; its length.
 */
static size_t line_add_escaped(struct log_line *line, const char *text, size_t size)
{
    uint32_t code_point = 0;
    size_t invalid = 1;
    size_t length = utf8_decode(text, size, &code_point, &invalid);
    char escape[16];

    if (length == 0) {
        (void)line_add(line, "\xEF\xBF\xBD", 3);
        return invalid;
    }
    if (code_point == '"' || code_point == '\\')
        (void)snprintf(escape, sizeof(escape), "\\%c", (char)code_point);
    else if (code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0) ||
             code_point == 0x2028 || code_point == 0x2029)
        (void)snprintf(escape, sizeof(escape), "\\u%04" PRIx32, code_point);
    else {
        (void)line_add(line, text, length);
        return length;
    }
    (void)line_add(line, escape, strlen(escape));
    return length;
}

static void line_add_quoted(struct log_line *line, const char *text)
{
    size_t size = strlen(text);

    if (!line_add(line, "\"", 1))
        return;
    for (size_t i = 0; i < size && !line->full;)
        i += line_add_escaped(line, text + i, size - i);
    line_close(line, line->full ? LOG_CUT_MARK "\"" : "\"");
}

static void line_add_key(struct log_line *line, const char *key)
{
    char text[128];
    bool json = log_state.format == LOG_FORMAT_JSON;
    int size = snprintf(text, sizeof(text),
                        json ? "%s\"%s\":" : "%s%s=", line->size <= 1 ? "" : (json ? "," : " "),
                        key);

    if (size < 0 || (size_t)size >= sizeof(text))
        line->full = true;
    else if (line->size + (size_t)size + 1 > LOG_LINE_BYTES - LOG_TAIL_BYTES)
        line->full = true; /* a key never stands without the beginning of its value */
    else
        (void)line_add(line, text, (size_t)size);
}

/* A word of ours: quoted in JSON only. */
static void line_add_word(struct log_line *line, const char *key, const char *word)
{
    line_add_key(line, key);
    if (log_state.format == LOG_FORMAT_JSON)
        line_add_quoted(line, word);
    else
        (void)line_add(line, word, strlen(word));
}

static void line_add_number(struct log_line *line, const struct log_field *field)
{
    char text[24];

    if (field->kind == LOG_FIELD_INT)
        (void)snprintf(text, sizeof(text), "%" PRId64, field->integer);
    else
        (void)snprintf(text, sizeof(text), "%" PRIu64, field->unsigned_integer);
    if (line->size + 128 + sizeof(text) > LOG_LINE_BYTES - LOG_TAIL_BYTES) {
        line->full = true;
        return;
    }
    line_add_key(line, field->key);
    (void)line_add(line, text, strlen(text));
}

static void line_add_field(struct log_line *line, const struct log_field *field)
{
    if (line->full)
        return;
    if (field->kind != LOG_FIELD_TEXT) {
        line_add_number(line, field);
    } else if (field->text) {
        line_add_key(line, field->key);
        line_add_quoted(line, field->text);
    } else {
        line_add_word(line, field->key, "-");
    }
}

static void format_now(char ret_text[LOG_TIME_BYTES])
{
    struct timespec now;
    struct tm parts;
    size_t size;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &parts);
    size = strftime(ret_text, LOG_TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(ret_text + size, LOG_TIME_BYTES - size, ".%03ldZ", now.tv_nsec / 1000000);
}

void log_write_from(const struct log_source *source, enum log_level level, const char *event,
                    const struct log_field *fields, unsigned count)
{
    struct log_line line;
    bool json = log_state.format == LOG_FORMAT_JSON;
    ssize_t written;

    line.size = 0;
    line.full = false;
    if (json)
        (void)line_add(&line, "{", 1);
    line_add_word(&line, "ts", source->time);
    line_add_word(&line, "level", level_names[level]);
    line_add_word(&line, "prog", source->program);
    line_add_word(&line, "event", event);
    for (unsigned i = 0; i < count; i++)
        line_add_field(&line, &fields[i]);
    line_close(&line, json ? "}\n" : "\n");
    written = write(STDERR_FILENO, line.text, line.size);
    (void)written; /* a log that cannot be written has nobody to tell */
}

void log_write(enum log_level level, const char *event, const struct log_field *fields,
               unsigned count)
{
    char now[LOG_TIME_BYTES];

    format_now(now);
    log_write_from(&(struct log_source){ .time = now, .program = log_state.program }, level,
                   event, fields, count);
}
