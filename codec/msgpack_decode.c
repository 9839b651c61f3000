/* msgpack_decode.c - a guest's map to a struct. The guest is not trusted: a list grows with the
 * elements that were really read, and anything that is not as the table says ends it. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "codec.h"
#include "pack.h"

static int decode_map(const struct type *type, struct pack_reader *reader, void *to);

/* SPAN with a NUL behind it. */
static int copy_span(struct span span, char **ret_text)
{
    char *copy = malloc(span.size + 1);

    if (!copy)
        return -ENOMEM;
    memcpy(copy, span.data, span.size);
    copy[span.size] = 0;
    *ret_text = copy;
    return 0;
}

static bool size_fits(const struct field *field, size_t size)
{
    return field->max == 0 || (size >= (uint64_t)field->min && size <= field->max);
}

static int decode_text(const struct field *field, const struct pack_item *item, char **ret_text)
{
    if (item->kind != PACK_TEXT || !size_fits(field, item->span.size) ||
        memchr(item->span.data, 0, item->span.size))
        return -EPROTO;
    return copy_span(item->span, ret_text);
}

static int decode_blob(const struct pack_item *item, struct blob *blob)
{
    if (item->kind != PACK_TEXT)
        return -EPROTO;
    blob->size = item->span.size;
    return copy_span(item->span, &blob->data);
}

static int decode_unsigned(const struct field *field, const struct pack_item *item,
                           uint64_t *ret_value)
{
    if (item->kind != PACK_UINT || item->number > field->max ||
        (field->min > 0 && item->number < (uint64_t)field->min))
        return -EPROTO;
    *ret_value = item->number;
    return 0;
}

static int decode_signed(const struct field *field, const struct pack_item *item,
                         int64_t *ret_value)
{
    if (item->kind == PACK_INT && item->integer >= field->min) {
        *ret_value = item->integer;
        return 0;
    }
    return decode_unsigned(field, item, (uint64_t *)ret_value);
}

static int decode_integer(const struct field *field, const struct pack_item *item, void *member)
{
    int64_t value;
    uint64_t number;

    if (field->kind == FIELD_U64 || field->kind == FIELD_U32) {
        if (decode_unsigned(field, item, &number) < 0)
            return -EPROTO;
    } else {
        if (decode_signed(field, item, &value) < 0)
            return -EPROTO;
        number = (uint64_t)value;
    }
    if (field->kind == FIELD_U64 || field->kind == FIELD_I64)
        *(uint64_t *)member = number;
    else
        *(uint32_t *)member = (uint32_t)number;
    return 0;
}

/* Room for one more element of SIZE bytes, zeroed, behind the COUNT that are there. */
static int list_grow(void **items, size_t count, size_t size)
{
    char *grown;

    if (count >= LIMIT_LIST_ENTRIES)
        return -EPROTO;
    if ((count & (count - 1)) != 0)
        return 0; /* between two powers of two there is room */
    grown = reallocarray(*items, count ? count * 2 : 1, size);
    if (!grown)
        return -ENOMEM;
    memset(grown + count * size, 0, (count ? count : 1) * size);
    *items = grown;
    return 0;
}

static const struct field element_text = { .kind = FIELD_TEXT };

static int decode_texts(struct pack_reader *reader, const struct pack_item *head,
                        struct text_list *list)
{
    if (head->kind != PACK_ARRAY)
        return -EPROTO;
    for (uint32_t i = 0; i < head->count; i++, list->count++) {
        struct pack_item item;
        void *items = list->items;
        int result = list_grow(&items, i, sizeof(*list->items));

        list->items = items;
        if (result < 0 || pack_read(reader, &item) < 0)
            return result < 0 ? result : -EPROTO;
        result = decode_text(&element_text, &item, &list->items[i]);
        if (result < 0)
            return result;
    }
    return 0;
}

static int decode_objects(const struct type *type, struct pack_reader *reader,
                          const struct pack_item *head, struct object_list *list)
{
    if (head->kind != PACK_ARRAY)
        return -EPROTO;
    for (uint32_t i = 0; i < head->count; i++) {
        void *items = list->items;
        int result = list_grow(&items, i, type->size);

        list->items = items;
        if (result < 0)
            return result;
        list->count++;
        result = decode_map(type, reader, list->items + i * type->size);
        if (result < 0)
            return result;
    }
    return 0;
}

static int decode_item(const struct field *field, struct pack_reader *reader,
                       const struct pack_item *item, void *member)
{
    switch (field->kind) {
    case FIELD_TEXT:
    case FIELD_B64:
        return decode_text(field, item, member);
    case FIELD_BLOB:
        return decode_blob(item, member);
    case FIELD_BOOL:
        *(bool *)member = item->flag;
        return item->kind == PACK_BOOL ? 0 : -EPROTO;
    case FIELD_U32:
    case FIELD_U64:
    case FIELD_I32:
    case FIELD_I64:
        return decode_integer(field, item, member);
    case FIELD_TEXTS:
        return decode_texts(reader, item, member);
    case FIELD_OBJECTS:
        return decode_objects(field->type, reader, item, member);
    default: /* these never travel to a guest or back */
        return -EPROTO;
    }
}

static int decode_value(const struct field *field, struct pack_reader *reader, void *member)
{
    struct pack_item item = { 0 };

    if (field->kind == FIELD_OBJECT)
        return decode_map(field->type, reader, member);
    if (pack_read(reader, &item) < 0)
        return -EPROTO;
    return decode_item(field, reader, &item, member);
}

/* The index of the field under KEY; the count of fields: none. */
static size_t field_find(const struct type *type, struct span key)
{
    size_t i = 0;

    while (i < type->field_count && !span_equals(key, type->fields[i].name))
        i++;
    return i;
}

/* A key and its value; SEEN has a bit for each field that came before. */
static int decode_pair(const struct type *type, struct pack_reader *reader, uint32_t *seen,
                       void *to)
{
    struct pack_item key;
    const struct field *field;
    size_t i;

    if (pack_read(reader, &key) < 0 || key.kind != PACK_TEXT)
        return -EPROTO;
    i = field_find(type, key.span);
    if (i == type->field_count || pack_at_nil(reader))
        return pack_skip(reader);
    if (*seen & 1u << i)
        return -EPROTO;
    *seen |= 1u << i;
    field = &type->fields[i];
    *((bool *)((char *)to + field->has_offset)) = true;
    return decode_value(field, reader, (char *)to + field->offset);
}

static int fill_absent(const struct type *type, uint32_t seen, void *to)
{
    for (size_t i = 0; i < type->field_count; i++) {
        const struct field *field = &type->fields[i];
        int result = 0;

        if (seen & 1u << i)
            continue;
        if (field->presence == FIELD_REQUIRED)
            return -EPROTO;
        if (field->presence == FIELD_DEFAULT)
            result = codec_set_default(field, to);
        if (result < 0)
            return result;
    }
    return 0;
}

static int decode_map(const struct type *type, struct pack_reader *reader, void *to)
{
    struct pack_item head;
    uint32_t seen = 0;

    static_assert(CODEC_FIELDS_MAX <= 32, "a bit of SEEN for each field");
    assert(type->field_count <= CODEC_FIELDS_MAX);
    if (pack_read(reader, &head) < 0 || head.kind != PACK_MAP)
        return -EPROTO;
    for (uint32_t i = 0; i < head.count; i++) {
        int result = decode_pair(type, reader, &seen, to);

        if (result < 0)
            return result;
    }
    return fill_absent(type, seen, to);
}

int codec_decode_msgpack(const struct type *type, const uint8_t *data, size_t size,
                         void *ret_value)
{
    struct pack_reader reader = pack_reader(data, size);
    int result;

    memset(ret_value, 0, type->size);
    result = decode_map(type, &reader, ret_value);
    if (result == 0 && reader.at != reader.end)
        result = -EPROTO;
    if (result < 0)
        codec_free(type, ret_value);
    return result;
}
