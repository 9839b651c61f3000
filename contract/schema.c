/* schema.c - see schema.h. */
#include "schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error.h"

/* The first failure sticks; what is written afterwards changes nothing. */
struct writer {
    struct buf *to;
    int result;
    bool reply;
};

static void put_object(struct writer *writer, const struct type *type);

static void put(struct writer *writer, const char *text)
{
    if (writer->result == 0)
        writer->result = buf_append_text(writer->to, text);
}

static void put_string(struct writer *writer, const char *text)
{
    if (writer->result == 0)
        writer->result = json_append_string(writer->to, text, strlen(text));
}

#define SCHEMA_TEXT "{\"type\":\"string\"}"
#define SCHEMA_CHANNEL                                                                         \
    "\"type\":\"object\",\"properties\":{\"channel_id\":" SCHEMA_TEXT                          \
    ",\"access_key\":" SCHEMA_TEXT ",\"direction\":{\"enum\":[\"read\",\"write\"]}},"          \
    "\"required\":[\"channel_id\",\"access_key\",\"direction\"]"

/* What the kind alone says; NULL: more has to be written. */
static const char *const kind_texts[] = {
    [FIELD_TEXT] = "\"type\":\"string\"",
    [FIELD_BLOB] = "\"type\":\"string\"",
    [FIELD_B64] = "\"type\":\"string\",\"contentEncoding\":\"base64\"",
    [FIELD_BOOL] = "\"type\":\"boolean\"",
    [FIELD_U32] = "\"type\":\"integer\"",
    [FIELD_U64] = "\"type\":\"integer\"",
    [FIELD_I32] = "\"type\":\"integer\"",
    [FIELD_I64] = "\"type\":\"integer\"",
    [FIELD_TEXTS] = "\"type\":\"array\",\"items\":" SCHEMA_TEXT,
    [FIELD_ENV] = "\"anyOf\":[{\"type\":\"array\",\"items\":" SCHEMA_TEXT
                  "},{\"type\":\"object\",\"additionalProperties\":" SCHEMA_TEXT "}]",
    [FIELD_CONTENT] = "\"anyOf\":[" SCHEMA_TEXT ",{" SCHEMA_CHANNEL "}]",
    [FIELD_STREAM] = SCHEMA_CHANNEL,
    [FIELD_OBJECT] = NULL,
    [FIELD_OBJECTS] = NULL,
};
_Static_assert(ARRAY_SIZE(kind_texts) == FIELD_KIND_MAX, "a text for each kind");

static bool is_integer(const struct field *field)
{
    return field->kind >= FIELD_U32 && field->kind <= FIELD_I64;
}

static void put_number(struct writer *writer, const char *key, const char *number)
{
    if (writer->result == 0)
        writer->result = buf_printf(writer->to, ",\"%s\":%s", key, number);
}

/* Bounds of 64 bits are left out: many readers of JSON cannot hold them. */
static void put_range(struct writer *writer, const struct field *field)
{
    char number[24];

    if (is_integer(field) && field->min > INT64_MIN) {
        (void)snprintf(number, sizeof(number), "%" PRId64, field->min);
        put_number(writer, "minimum", number);
    }
    (void)snprintf(number, sizeof(number), "%" PRIu64, field->max);
    if (is_integer(field) && field->max < INT64_MAX)
        put_number(writer, "maximum", number);
    /* The limit is in bytes, the schema's in characters: never more than bytes. */
    if (field->kind == FIELD_TEXT && field->max > 0) {
        put_number(writer, "minLength", field->min > 0 ? "1" : "0");
        put_number(writer, "maxLength", number);
    }
}

/* A key that may be null has its type beside "null". */
static void put_nullable(struct writer *writer, const struct field *field)
{
    put(writer, field->kind == FIELD_TEXT ? "\"type\":[\"string\",\"null\"]"
                                          : "\"type\":[\"integer\",\"null\"]");
}

static void put_kind(struct writer *writer, const struct field *field)
{
    if (field->presence == FIELD_NULLABLE) {
        put_nullable(writer, field);
    } else if (field->kind == FIELD_OBJECT) {
        put_object(writer, field->type);
    } else if (field->kind == FIELD_OBJECTS) {
        put(writer, "\"type\":\"array\",\"items\":{");
        put_object(writer, field->type);
        put(writer, "}");
    } else {
        put(writer, kind_texts[field->kind]);
    }
}

static void put_field(struct writer *writer, const struct field *field)
{
    put_string(writer, field->name);
    put(writer, ":{");
    put_kind(writer, field);
    put_range(writer, field);
    if (field->standard[0]) {
        put(writer, ",\"default\":");
        put(writer, field->standard);
    }
    put(writer, ",\"description\":");
    put_string(writer, field->text);
    put(writer, "}");
}

static bool is_required(const struct writer *writer, const struct field *field)
{
    return field->presence == FIELD_REQUIRED ||
           (writer->reply && field->presence == FIELD_NULLABLE);
}

/* Without the braces, so that a description can follow. */
static void put_object(struct writer *writer, const struct type *type)
{
    const char *separator = "";

    put(writer, "\"type\":\"object\",\"properties\":{");
    for (size_t i = 0; i < type->field_count; i++) {
        put(writer, i > 0 ? "," : "");
        put_field(writer, &type->fields[i]);
    }
    put(writer, "},\"required\":[");
    for (size_t i = 0; i < type->field_count; i++) {
        if (!is_required(writer, &type->fields[i]))
            continue;
        put(writer, separator);
        put_string(writer, type->fields[i].name);
        separator = ",";
    }
    put(writer, "]");
}

static int finish(struct writer *writer, size_t old_size)
{
    put(writer, "}");
    if (writer->result < 0)
        writer->to->size = old_size;
    return writer->result;
}

int schema_request(const struct type *type, struct buf *to)
{
    struct writer writer = { .to = to };
    size_t old_size = to->size;

    put(&writer, "{");
    put_object(&writer, type);
    return finish(&writer, old_size);
}

int schema_reply(const struct operation *operation, struct buf *to)
{
    struct writer writer = { .to = to, .reply = true };
    size_t old_size = to->size;

    put(&writer, "{");
    if (operation->flags & ARRAY_REPLY)
        put_kind(&writer, &operation->reply->fields[0]);
    else
        put_object(&writer, operation->reply);
    return finish(&writer, old_size);
}
