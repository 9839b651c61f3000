/* error.c - the code table and the error value; see error.h. error_json.c writes the envelope.
 */
#include "error.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

static const struct error_info infos[] = {
    [SANDBOX_OK] = { .code = "",
                     .type = "",
                     .name = "",
                     .meaning = "",
                     .cause = "",
                     .cure = "",
                     .note = "",
                     .example = "" },
#define ERROR_CODE(error, error_type, is_retryable, error_name, error_meaning, error_cause,    \
                   error_cure, error_note, error_example)                                      \
    [error] = {                                                                                \
        .code = #error,                                                                        \
        .type = #error_type,                                                                   \
        .retryable = is_retryable,                                                             \
        .name = error_name,                                                                    \
        .meaning = error_meaning,                                                              \
        .cause = error_cause,                                                                  \
        .cure = error_cure,                                                                    \
        .note = error_note,                                                                    \
        .example = error_example,                                                              \
    },
#include "errors.def"
};
static_assert(ARRAY_SIZE(infos) == SANDBOX_CODE_MAX, "a row for each code");

const struct error_info *error_info_get(enum sandbox_code code)
{
    assert(code < SANDBOX_CODE_MAX);
    return &infos[code];
}

enum sandbox_code error_code_parse(const char *text)
{
    for (enum sandbox_code code = SANDBOX_OK + 1; code < SANDBOX_CODE_MAX; code++) {
        if (strcmp(infos[code].code, text) == 0)
            return code;
    }
    return SANDBOX_OK;
}

#define ELLIPSIS "…"

/* TO holds the first bytes of a text that did not fit: ends it at a character and marks it. */
static void mark_cut(char *to, size_t to_size)
{
    size_t room = to_size - sizeof(ELLIPSIS);
    size_t end = utf8_boundary(to, to_size - 1, room);

    memcpy(to + end, ELLIPSIS, sizeof(ELLIPSIS));
}

static void format_into(char *to, size_t to_size, const char *format, va_list arguments)
{
    int size = vsnprintf(to, to_size, format, arguments);

    if (size < 0)
        to[0] = 0;
    else if ((size_t)size >= to_size)
        mark_cut(to, to_size);
}

int sandbox_error_set(struct sandbox_error *err, enum sandbox_code code, const char *format,
                      ...)
{
    va_list arguments;

    assert(code > SANDBOX_OK && code < SANDBOX_CODE_MAX);
    if (err->code != SANDBOX_OK)
        return -1;
    err->code = code;
    va_start(arguments, format);
    format_into(err->message, sizeof(err->message), format, arguments);
    va_end(arguments);
    (void)snprintf(err->fix_note, sizeof(err->fix_note), "%s", infos[code].note);
    return -1;
}

void sandbox_error_set_outcome(struct sandbox_error *err, enum sandbox_outcome outcome)
{
    err->outcome = outcome;
}

void sandbox_error_set_note(struct sandbox_error *err, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    format_into(err->fix_note, sizeof(err->fix_note), format, arguments);
    va_end(arguments);
}

static struct error_fix *fix_new(struct sandbox_error *err, const char *key)
{
    struct error_fix *fix;

    assert(err->fix_count < ERROR_FIX_MAX);
    fix = &err->fix[err->fix_count++];
    *fix = (struct error_fix){ .key = key };
    return fix;
}

void sandbox_error_add_fix_text(struct sandbox_error *err, const char *key, const char *value)
{
    struct error_fix *fix = fix_new(err, key);
    size_t size = strlen(value);

    if (size < sizeof(fix->text)) {
        memcpy(fix->text, value, size + 1);
        return;
    }
    memcpy(fix->text, value, sizeof(fix->text) - 1);
    mark_cut(fix->text, sizeof(fix->text));
}

void sandbox_error_add_fix_bool(struct sandbox_error *err, const char *key, bool value)
{
    struct error_fix *fix = fix_new(err, key);

    fix->is_bool = true;
    fix->flag = value;
    if (err->fix_note[0] == 0)
        sandbox_error_set_note(err, "merge `%s: %s` into the original request", key,
                               value ? "true" : "false");
}

void sandbox_error_set_partial(struct sandbox_error *err, struct error_partial *own_partial)
{
    error_partial_free(err->partial);
    err->partial = own_partial;
}

void error_partial_free(struct error_partial *partial)
{
    if (!partial)
        return;
    buf_done(&partial->stdout_text);
    buf_done(&partial->stderr_text);
    free(partial);
}

void sandbox_error_done(struct sandbox_error *err)
{
    error_partial_free(err->partial);
    *err = (struct sandbox_error){ 0 };
}

void sandbox_error_move(struct sandbox_error *to, struct sandbox_error *from)
{
    sandbox_error_done(to);
    *to = *from;
    from->partial = NULL;
    sandbox_error_done(from);
}
