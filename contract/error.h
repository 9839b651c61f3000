/* error.h - the error value that IS the wire error (contract 3).
 *
 * Caller-owned and of fixed size; zero-initialised means no error. The first error wins:
 * setting one that is set already changes nothing. Type, retryable and docs_url come from the
 * code table, never from the call site. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "cleanup.h"

enum sandbox_code {
    SANDBOX_OK = 0,
#define ERROR_CODE(code, ...) code,
#include "errors.def"
    SANDBOX_CODE_MAX
};

enum sandbox_outcome { OUTCOME_NONE = 0, OUTCOME_NEVER_RAN, OUTCOME_MAY_HAVE_RUN };

/* A longer text is cut at a character boundary and marked with …. */
#define ERROR_MESSAGE_MAX 8192
#define ERROR_FIX_MAX 4
#define ERROR_FIX_VALUE_MAX 640
#define ERROR_NOTE_MAX 512

/* One pair of `fix`: merged into the original request by the caller. */
struct error_fix {
    const char *key; /* static */
    bool is_bool;
    bool flag;
    char text[ERROR_FIX_VALUE_MAX];
};

/* Contract 3.5; the texts are owned, valid UTF-8. */
struct error_partial {
    struct buf stdout_text;
    struct buf stderr_text;
    bool stdout_truncated;
    bool stderr_truncated;
};

struct sandbox_error {
    enum sandbox_code code;
    enum sandbox_outcome outcome;
    unsigned fix_count;
    struct error_partial *partial; /* owned, or NULL */
    char message[ERROR_MESSAGE_MAX];
    char fix_note[ERROR_NOTE_MAX]; /* "": null */
    struct error_fix fix[ERROR_FIX_MAX];
};

/* What the table says of a code. */
struct error_info {
    const char *code;
    const char *type;
    bool retryable;
    const char *name;
    const char *meaning;
    const char *cause;
    const char *cure;
    const char *note;    /* default fix_note, "" for null */
    const char *example; /* a message as callers see it */
};
const struct error_info *error_info_get(enum sandbox_code code); /* never NULL for a code */
enum sandbox_code error_code_parse(const char *text); /* SANDBOX_OK: not in the table */

/* Sets code and message; always -1, so that `return sandbox_error_set(…)` reads well. The
 * default fix_note of the code is added by the table. */
int sandbox_error_set(struct sandbox_error *err, enum sandbox_code code, const char *format,
                      ...) _printf_(3, 4);
void sandbox_error_set_outcome(struct sandbox_error *err, enum sandbox_outcome outcome);
void sandbox_error_set_note(struct sandbox_error *err, const char *format, ...) _printf_(2, 3);
void sandbox_error_add_fix_text(struct sandbox_error *err, const char *key, const char *value);
/* Adds the note `merge `KEY: VALUE` into the original request` when the code has none. */
void sandbox_error_add_fix_bool(struct sandbox_error *err, const char *key, bool value);
/* Attaches the tails of the streams (contract 3.5); consumed. */
void sandbox_error_set_partial(struct sandbox_error *err, struct error_partial *own_partial);

void sandbox_error_done(struct sandbox_error *err);
void sandbox_error_move(struct sandbox_error *to, struct sandbox_error *from);
void error_partial_free(struct error_partial *partial);

/* Appends the envelope of contract 3.1 as compact JSON. DOCS_BASE ends in '#'. 0 or -errno. */
#define ERROR_DOCS_BASE_DEFAULT "https://iii.dev/docs/creating-workers/sandboxes#"
int sandbox_error_encode(const struct sandbox_error *err, const char *docs_base,
                         struct buf *to);

/* Appends TEXT (SIZE bytes) as a JSON string, quotes included; what is not UTF-8 becomes
 * U+FFFD. */
int json_append_string(struct buf *to, const char *text, size_t size);
