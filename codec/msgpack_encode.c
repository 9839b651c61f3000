/* msgpack_encode.c - a struct as a map for the guest link. */
#include <errno.h>
#include <string.h>

#include "codec.h"
#include "pack.h"
#include "utf8.h"

/* The first failure sticks; what is written afterwards changes nothing. */
struct writer {
    struct buf *to;
    int result;
};

static void put_map(struct writer *writer, const struct type *type, const void *value);

static void put(struct writer *writer, int result)
{
    if (writer->result == 0)
        writer->result = result;
}

/* The peer refuses text that is not UTF-8, so such text is repaired here. */
static void put_span(struct writer *writer, const char *text, size_t size)
{
    struct buf repaired = { 0 };

    if (utf8_valid(text, size)) {
        put(writer, pack_text(writer->to, text, size));
        return;
    }
    put(writer, utf8_repair(&repaired, text, size));
    put(writer, pack_text(writer->to, (const char *)repaired.data, repaired.size));
    buf_done(&repaired);
}

static void put_text(struct writer *writer, const char *text)
{
    put_span(writer, text ? text : "", text ? strlen(text) : 0);
}

static void put_texts(struct writer *writer, const struct text_list *list)
{
    put(writer, pack_array(writer->to, (uint32_t)list->count));
    for (size_t i = 0; i < list->count && writer->result == 0; i++)
        put_text(writer, list->items[i]);
}

static void put_objects(struct writer *writer, const struct type *type,
                        const struct object_list *list)
{
    put(writer, pack_array(writer->to, (uint32_t)list->count));
    for (size_t i = 0; i < list->count && writer->result == 0; i++)
        put_map(writer, type, list->items + i * type->size);
}

static void put_value(struct writer *writer, const struct field *field, const void *member)
{
    const struct blob *blob = member;

    switch (field->kind) {
    case FIELD_TEXT:
    case FIELD_B64:
        put_text(writer, *(char *const *)member);
        break;
    case FIELD_BLOB:
        put_span(writer, blob->data ? blob->data : "", blob->size);
        break;
    case FIELD_BOOL:
        put(writer, pack_bool(writer->to, *(const bool *)member));
        break;
    case FIELD_U32:
        put(writer, pack_uint(writer->to, *(const uint32_t *)member));
        break;
    case FIELD_U64:
        put(writer, pack_uint(writer->to, *(const uint64_t *)member));
        break;
    case FIELD_I32:
        put(writer, pack_int(writer->to, *(const int32_t *)member));
        break;
    case FIELD_I64:
        put(writer, pack_int(writer->to, *(const int64_t *)member));
        break;
    case FIELD_TEXTS:
        put_texts(writer, member);
        break;
    case FIELD_OBJECT:
        put_map(writer, field->type, member);
        break;
    case FIELD_OBJECTS:
        put_objects(writer, field->type, member);
        break;
    case FIELD_ENV:
    case FIELD_CONTENT:
    case FIELD_STREAM:
    case FIELD_KIND_MAX:
        put(writer, -EINVAL);
        break;
    }
}

static bool has_member(const struct field *field, const void *value)
{
    bool may_lack = field->presence == FIELD_OPTIONAL || field->presence == FIELD_NULLABLE;

    return !may_lack || *((const bool *)((const char *)value + field->has_offset));
}

static void put_map(struct writer *writer, const struct type *type, const void *value)
{
    uint32_t count = 0;

    for (size_t i = 0; i < type->field_count; i++)
        count += has_member(&type->fields[i], value);
    put(writer, pack_map(writer->to, count));
    for (size_t i = 0; i < type->field_count; i++) {
        const struct field *field = &type->fields[i];

        if (!has_member(field, value))
            continue;
        put(writer, pack_text(writer->to, field->name, strlen(field->name)));
        put_value(writer, field, (const char *)value + field->offset);
    }
}

int codec_encode_msgpack(const struct type *type, const void *value, struct buf *to)
{
    struct writer writer = { .to = to };
    size_t old_size = to->size;

    put_map(&writer, type, value);
    if (writer.result < 0)
        to->size = old_size;
    return writer.result;
}
