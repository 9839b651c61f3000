/* json_place.c - see json_place.h. */
#include "json_place.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "json_scan.h"
#include "utf8.h"

#define VALUE_SHOWN_MAX 64

/* Appends the first bytes of TEXT, with … where something is missing. */
static void show_cut(struct buf *to, const char *text, size_t size)
{
    size_t shown = utf8_boundary(text, size, VALUE_SHOWN_MAX);

    (void)buf_append(to, text, shown); /* a message without it is still one */
    if (shown < size)
        (void)buf_append_text(to, "…");
}

static void show_path(struct buf *to, const struct place *place)
{
    if (!place)
        return;
    show_path(to, place->parent);
    if (!place->name) {
        (void)buf_printf(to, "[%zu]", place->index);
        return;
    }
    if (place->parent)
        (void)buf_append_byte(to, '.');
    show_cut(to, place->name, strlen(place->name));
}

static const char *const wishes[] = {
    [FIELD_TEXT] = "text",
    [FIELD_BLOB] = "text",
    [FIELD_B64] = "base64 text",
    [FIELD_BOOL] = "true or false",
    [FIELD_U32] = "an integer",
    [FIELD_U64] = "an integer",
    [FIELD_I32] = "an integer",
    [FIELD_I64] = "an integer",
    [FIELD_TEXTS] = "a list of texts",
    [FIELD_ENV] = "a list of \"NAME=VALUE\" or an object of texts",
    [FIELD_CONTENT] = "text or a channel reference",
    [FIELD_STREAM] = "a channel reference {channel_id, access_key, direction}",
    [FIELD_OBJECT] = "an object",
    [FIELD_OBJECTS] = "a list of objects",
};
static_assert(ARRAY_SIZE(wishes) == FIELD_KIND_MAX, "a wish for each kind");

static void show_wish(struct buf *to, const struct field *field)
{
    (void)buf_append_text(to, wishes[field->kind]);
    switch (field->kind) {
    case FIELD_TEXT:
    case FIELD_B64:
        if (field->max > 0)
            (void)buf_printf(to, " of %" PRId64 " to %" PRIu64 " bytes", field->min,
                             field->max);
        else if (field->min > 0)
            (void)buf_printf(to, " of at least %" PRId64 " bytes", field->min);
        break;
    case FIELD_U32:
    case FIELD_U64:
    case FIELD_I32:
    case FIELD_I64:
        (void)buf_printf(to, " from %" PRId64 " to %" PRIu64, field->min, field->max);
        break;
    default:
        break;
    }
}

/* A secret is not shown, not even to the one who sent it: messages are logged. */
static bool is_secret(const struct field *field)
{
    return field->name &&
           (strcmp(field->name, "auth_token") == 0 || strcmp(field->name, "access_key") == 0);
}

static void show_value(struct buf *to, const struct field *field, struct span value)
{
    if (!value.data) {
        (void)buf_append_text(to, "nothing");
        return;
    }
    switch (json_kind(value)) {
    case JSON_ARRAY:
        (void)buf_append_text(to, "a list");
        break;
    case JSON_OBJECT:
        (void)buf_append_text(to, "an object");
        break;
    default:
        if (is_secret(field))
            (void)buf_append_text(to, "another type");
        else
            show_cut(to, value.data, value.size);
    }
}

static int fail_with(struct buf *own_message, struct sandbox_error *err)
{
    const char *text = buf_text(own_message);

    (void)sandbox_error_set(err, S001, "%s", text ? text : "malformed request");
    buf_done(own_message);
    return -1;
}

static void begin(struct buf *message, const struct place *place, const struct field *field)
{
    show_path(message, place);
    (void)buf_append_text(message, ": expected ");
    show_wish(message, field);
    (void)buf_append_text(message, ", got ");
}

int place_fail(const struct place *place, const struct field *field, struct span value,
               struct sandbox_error *err)
{
    struct buf message = { 0 };

    begin(&message, place, field);
    show_value(&message, field, value);
    return fail_with(&message, err);
}

int place_fail_text(const struct place *place, const struct field *field, const char *got,
                    struct sandbox_error *err)
{
    struct buf message = { 0 };

    begin(&message, place, field);
    (void)buf_append_text(&message, got);
    return fail_with(&message, err);
}

int place_fail_count(const struct place *place, size_t max, size_t count,
                     struct sandbox_error *err)
{
    struct buf message = { 0 };

    show_path(&message, place);
    (void)buf_printf(&message, ": expected at most %zu entries, got %zu", max, count);
    return fail_with(&message, err);
}

/* Four hex digits at AT, as json_scan() checked them. */
static unsigned hex4(const char *at)
{
    char digits[5] = { at[0], at[1], at[2], at[3] };

    return (unsigned)strtoul(digits, NULL, 16);
}

/* AT is behind a backslash. The escape's size without it; 0: half a surrogate pair. */
static size_t escape_size(const char *at)
{
    unsigned unit;

    if (at[0] != 'u')
        return 1;
    unit = hex4(at + 1);
    if (unit < 0xD800 || unit >= 0xE000)
        return 5;
    if (unit >= 0xDC00 || at[5] != '\\' || at[6] != 'u')
        return 0;
    unit = hex4(at + 7);
    return unit >= 0xDC00 && unit < 0xE000 ? 11 : 0;
}

/* Behind the string that begins at AT; NULL: it holds half a surrogate pair. The text is
 * checked, so a closing quote ends each loop. */
static const char *string_check(const char *at)
{
    for (at++; *at != '"'; at++) {
        size_t size;

        if (*at != '\\')
            continue;
        size = escape_size(at + 1);
        if (size == 0)
            return NULL;
        at += size;
    }
    return at + 1;
}

/* What json_scan() allows and contract 4.1 does not. */
static int strict_check(struct span body, struct sandbox_error *err)
{
    const char *end = body.data + body.size;
    unsigned depth = 0;

    for (const char *at = body.data; at < end;) {
        if (*at == '"') {
            const char *behind = string_check(at);

            if (!behind)
                return sandbox_error_set(err, S001,
                                         "body: expected valid text, got half a surrogate pair "
                                         "in the string at byte %zu",
                                         (size_t)(at - body.data));
            at = behind;
            continue;
        }
        if (*at == '{' || *at == '[')
            depth++;
        else if (*at == '}' || *at == ']')
            depth--;
        if (depth > LIMIT_NESTING)
            return sandbox_error_set(
                err, S001, "body: expected nesting of at most %d, got more", LIMIT_NESTING);
        at++;
    }
    return 0;
}

static int fail_scan(int error, const char *json, size_t size, size_t offset,
                     struct sandbox_error *err)
{
    if (error == -E2BIG)
        return sandbox_error_set(err, S001, "body: expected nesting of at most %d, got more",
                                 LIMIT_NESTING);
    if (!utf8_valid(json, size))
        return sandbox_error_set(err, S001, "body: expected UTF-8, got other bytes");
    return sandbox_error_set(
        err, S001, "body: expected one JSON object, got text that is no JSON at byte %zu",
        offset);
}

int json_body_check(const char *json, size_t size, struct span *ret_body,
                    struct sandbox_error *err)
{
    size_t offset = 0;
    int result;

    if (size == 0)
        return sandbox_error_set(err, S001, "body: expected one JSON object, got nothing");
    result = json_scan(json, size, ret_body, &offset);
    if (result < 0)
        return fail_scan(result, json, size, offset, err);
    if (json_kind(*ret_body) != JSON_OBJECT) {
        static const struct field object = { .kind = FIELD_OBJECT };
        static const struct place place = { .name = "body" };

        return place_fail(&place, &object, *ret_body, err);
    }
    return strict_check(*ret_body, err);
}
