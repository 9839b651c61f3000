/* log.h - one event, one line, on stderr. Edges log, the rest returns errors.
 *
 * A line is `ts=… level=… prog=… event=NAME key=value …` or, with LOG_FORMAT_JSON, the same
 * keys as a JSON object. Values are quoted and control characters escaped, so that nothing a
 * peer sends can forge a line. Thread-safe; a line is one write(2). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cleanup.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_FORMAT_KEY_VALUE, LOG_FORMAT_JSON };

/* One key and its value; made by the macros below. */
struct log_field {
    const char *key;
    enum { LOG_FIELD_TEXT, LOG_FIELD_INT, LOG_FIELD_UINT } kind;
    const char *text; /* NULL is logged as - */
    int64_t integer;
    uint64_t unsigned_integer;
};

#define log_text(k, v) ((struct log_field){ .key = (k), .kind = LOG_FIELD_TEXT, .text = (v) })
#define log_int(k, v) ((struct log_field){ .key = (k), .kind = LOG_FIELD_INT, .integer = (v) })
#define log_uint(k, v)                                                                         \
    ((struct log_field){ .key = (k), .kind = LOG_FIELD_UINT, .unsigned_integer = (v) })

/* PROGRAM is borrowed for ever. Without this call: key=value, LOG_INFO, program "-". */
void log_init(const char *program, enum log_format format, enum log_level max_level);
bool log_enabled(enum log_level level);
int log_level_parse(const char *text, enum log_level *ret_level); /* 0 or -EINVAL */
void log_write(enum log_level level, const char *event, const struct log_field *fields,
               unsigned count);

/* The same, said by another program at a time of its own, which is written as it stands. */
struct log_source {
    const char *time;
    const char *program;
};
void log_write_from(const struct log_source *source, enum log_level level, const char *event,
                    const struct log_field *fields, unsigned count);

/* log_event(LOG_INFO, "binding_state", log_text("from", a), log_text("to", b)); */
#define log_event(level, event, ...)                                                           \
    do {                                                                                       \
        if (log_enabled(level)) {                                                              \
            const struct log_field log_fields_[] = { __VA_ARGS__ };                            \
            log_write(level, event, log_fields_, ARRAY_SIZE(log_fields_));                     \
        }                                                                                      \
    } while (0)
