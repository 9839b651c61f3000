/* older.c - see older.h. */
#include "older.h"

#include "json_scan.h"

#define ERROR_KEYS_SINCE 2u
#define FUTURE_MEMBER "\"x_future\":{\"list\":[1,null]}"

struct writer {
    unsigned minor;
    bool extra_keys;
    struct buf *to;
    int result; /* of the first failure */
};

static void put(struct writer *writer, const char *text, size_t size)
{
    if (writer->result == 0)
        writer->result = buf_append(writer->to, text, size);
}

static void put_text(struct writer *writer, const char *text)
{
    put(writer, text, strlen(text));
}

static const struct field *field_find(const struct type *type, struct span key)
{
    for (size_t i = 0; type && i < type->field_count; i++) {
        if (json_string_equals(key, type->fields[i].name))
            return &type->fields[i];
    }
    return NULL;
}

static bool is_newer(const struct writer *writer, const struct field *field, struct span key,
                     bool is_error)
{
    if (is_error)
        return writer->minor < ERROR_KEYS_SINCE &&
               (json_string_equals(key, "outcome") || json_string_equals(key, "partial"));
    return field && field->since > writer->minor;
}

static void put_value(struct writer *writer, const struct type *type, struct span value,
                      bool is_error);

/* Types nest a few levels at most, and what has no type is copied as it is. */
static void put_object(struct writer *writer, const struct type *type, struct span value,
                       bool is_error)
{
    struct json_iterator members = json_iterate(value);
    const char *comma = "";
    struct span key, member;

    put_text(writer, "{");
    while (json_next(&members, &key, &member)) {
        const struct field *field = field_find(type, key);

        if (is_newer(writer, field, key, is_error))
            continue;
        put_text(writer, comma);
        put(writer, key.data, key.size);
        put_text(writer, ":");
        put_value(writer, field ? field->type : NULL, member, false);
        comma = ",";
    }
    if (writer->extra_keys) {
        put_text(writer, comma);
        put_text(writer, FUTURE_MEMBER);
    }
    put_text(writer, "}");
}

static void put_list(struct writer *writer, const struct type *type, struct span value)
{
    struct json_iterator items = json_iterate(value);
    const char *comma = "";
    struct span key, item;

    put_text(writer, "[");
    while (json_next(&items, &key, &item)) {
        put_text(writer, comma);
        put_value(writer, type, item, false);
        comma = ",";
    }
    put_text(writer, "]");
}

static void put_value(struct writer *writer, const struct type *type, struct span value,
                      bool is_error)
{
    if (json_kind(value) == JSON_OBJECT && (type || is_error))
        put_object(writer, type, value, is_error);
    else if (json_kind(value) == JSON_ARRAY && type)
        put_list(writer, type, value);
    else
        put(writer, value.data, value.size);
}

int older_answer(const struct operation *operation, const char *json, size_t size,
                 unsigned minor, bool extra_keys, struct buf *to)
{
    struct writer writer = { .minor = minor, .extra_keys = extra_keys, .to = to };
    const struct type *type = operation ? operation->reply : NULL;
    struct span value;
    int result = json_scan(json, size, &value, NULL);
    bool is_error;

    if (result < 0)
        return result;
    is_error = json_kind(value) == JSON_OBJECT && json_get(value, "docs_url").data != NULL;
    if (operation && (operation->flags & ARRAY_REPLY))
        type = operation->reply->fields[0].type;
    put_value(&writer, is_error ? NULL : type, value, is_error);
    return writer.result;
}
