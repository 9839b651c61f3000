/* json_encode.c - a struct to compact JSON, keys in the order of the table. */
#include <inttypes.h>
#include <string.h>

#include "codec.h"

/* The first failure sticks; what is written afterwards changes nothing. */
struct writer {
    struct buf *to;
    int result;
};

static void put_object(struct writer *writer, const struct type *type, const void *value);

static void put(struct writer *writer, int result)
{
    if (writer->result == 0)
        writer->result = result;
}

static void put_raw(struct writer *writer, const char *text)
{
    put(writer, buf_append_text(writer->to, text));
}

/* NULL is written as "": a reply keeps its keys. */
static void put_text(struct writer *writer, const char *text)
{
    put(writer, json_append_string(writer->to, text ? text : "", text ? strlen(text) : 0));
}

static void put_blob(struct writer *writer, const struct blob *blob)
{
    put(writer, json_append_string(writer->to, blob->data ? blob->data : "", blob->size));
}

static void put_texts(struct writer *writer, const struct text_list *list)
{
    put_raw(writer, "[");
    for (size_t i = 0; i < list->count && writer->result == 0; i++) {
        if (i > 0)
            put_raw(writer, ",");
        put_text(writer, list->items[i]);
    }
    put_raw(writer, "]");
}

/* A list entry is one text again, as it was given. */
static void put_env_text(struct writer *writer, const struct env_entry *entry)
{
    struct buf text = { 0 };

    put(writer, buf_append_text(&text, entry->name));
    if (entry->value) {
        put(writer, buf_append_byte(&text, '='));
        put(writer, buf_append_text(&text, entry->value));
    }
    put(writer, json_append_string(writer->to, (const char *)text.data, text.size));
    buf_done(&text);
}

static void put_env(struct writer *writer, const struct env *env)
{
    put_raw(writer, env->is_object ? "{" : "[");
    for (size_t i = 0; i < env->count && writer->result == 0; i++) {
        if (i > 0)
            put_raw(writer, ",");
        if (!env->is_object) {
            put_env_text(writer, &env->entries[i]);
            continue;
        }
        put_text(writer, env->entries[i].name);
        put_raw(writer, ":");
        put_text(writer, env->entries[i].value);
    }
    put_raw(writer, env->is_object ? "}" : "]");
}

static void put_stream(struct writer *writer, const struct channel_ref *ref)
{
    put_raw(writer, "{\"channel_id\":");
    put_text(writer, ref->channel_id);
    put_raw(writer, ",\"access_key\":");
    put_text(writer, ref->access_key);
    put_raw(writer, ",\"direction\":");
    put_text(writer, ref->direction);
    put_raw(writer, "}");
}

static void put_objects(struct writer *writer, const struct type *type,
                        const struct object_list *list)
{
    put_raw(writer, "[");
    for (size_t i = 0; i < list->count && writer->result == 0; i++) {
        if (i > 0)
            put_raw(writer, ",");
        put_object(writer, type, list->items + i * type->size);
    }
    put_raw(writer, "]");
}

static void put_value(struct writer *writer, const struct field *field, const void *member)
{
    const struct content *content = member;

    switch (field->kind) {
    case FIELD_TEXT:
    case FIELD_B64:
        put_text(writer, *(char *const *)member);
        break;
    case FIELD_BLOB:
        put_blob(writer, member);
        break;
    case FIELD_BOOL:
        put_raw(writer, *(const bool *)member ? "true" : "false");
        break;
    case FIELD_U32:
        put(writer, buf_printf(writer->to, "%" PRIu32, *(const uint32_t *)member));
        break;
    case FIELD_U64:
        put(writer, buf_printf(writer->to, "%" PRIu64, *(const uint64_t *)member));
        break;
    case FIELD_I32:
        put(writer, buf_printf(writer->to, "%" PRId32, *(const int32_t *)member));
        break;
    case FIELD_I64:
        put(writer, buf_printf(writer->to, "%" PRId64, *(const int64_t *)member));
        break;
    case FIELD_TEXTS:
        put_texts(writer, member);
        break;
    case FIELD_ENV:
        put_env(writer, member);
        break;
    case FIELD_CONTENT:
        if (content->is_stream)
            put_stream(writer, &content->stream);
        else
            put_blob(writer, &content->text);
        break;
    case FIELD_STREAM:
        put_stream(writer, member);
        break;
    case FIELD_OBJECT:
        put_object(writer, field->type, member);
        break;
    case FIELD_OBJECTS:
        put_objects(writer, field->type, member);
        break;
    case FIELD_KIND_MAX:
        break;
    }
}

static void put_object(struct writer *writer, const struct type *type, const void *value)
{
    const char *separator = "{\"";

    for (size_t i = 0; i < type->field_count; i++) {
        const struct field *field = &type->fields[i];
        bool has = *((const bool *)((const char *)value + field->has_offset));

        if (field->presence == FIELD_OPTIONAL && !has)
            continue;
        put_raw(writer, separator);
        put_raw(writer, field->name);
        put_raw(writer, "\":");
        if (field->presence == FIELD_NULLABLE && !has)
            put_raw(writer, "null");
        else
            put_value(writer, field, (const char *)value + field->offset);
        separator = ",\"";
    }
    put_raw(writer, separator[0] == '{' ? "{}" : "}");
}

int codec_encode_json(const struct type *type, const void *value, bool array, struct buf *to)
{
    struct writer writer = { .to = to };
    size_t old_size = to->size;

    if (array)
        put_value(&writer, &type->fields[0], (const char *)value + type->fields[0].offset);
    else
        put_object(&writer, type, value);
    if (writer.result < 0)
        to->size = old_size;
    return writer.result;
}
