/* json_decode.c - a caller's body to a struct, as strict as contract 4.1.
 *
 * The text is checked once as a whole (json_scan, then nesting and surrogates); afterwards each
 * field of the table looks up its value in it. No tree is built, so a body costs what its
 * fields hold and no more. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "json_decode.h"
#include "json_scan.h"

static int decode_object(const struct type *type, struct span object, const struct place *place,
                         void *to, struct sandbox_error *err);

int json_decode_no_memory(struct sandbox_error *err)
{
    return sandbox_error_set(err, S300, "out of memory for the request");
}

/* STRING is a JSON string. The raw text is never shorter than what it means, so the room is
 * known beforehand. */
static int decode_string(struct span string, struct blob *ret_blob, struct sandbox_error *err)
{
    struct buf to = { .data = malloc(string.size), .capacity = string.size };
    int result;

    if (!to.data)
        return json_decode_no_memory(err);
    result = json_string_decode(string, &to);
    assert(result == 0); /* surrogates were checked, room is there */
    (void)result;
    to.data[to.size] = 0;
    *ret_blob = (struct blob){ .data = (char *)to.data, .size = to.size };
    return 0;
}

int json_decode_text(const struct field *field, struct span value, const struct place *place,
                     char **ret_text, struct sandbox_error *err)
{
    struct blob blob;

    if (json_kind(value) != JSON_STRING)
        return place_fail(place, field, value, err);
    if (decode_string(value, &blob, err) < 0)
        return -1;
    if (memchr(blob.data, 0, blob.size)) {
        free(blob.data);
        return place_fail_text(place, field, "text with a NUL character", err);
    }
    if (blob.size < (uint64_t)field->min || (field->max > 0 && blob.size > field->max)) {
        char got[32];

        (void)snprintf(got, sizeof(got), "%zu bytes", blob.size);
        free(blob.data);
        return place_fail_text(place, field, got, err);
    }
    *ret_text = blob.data;
    return 0;
}

static int decode_blob(const struct field *field, struct span value, const struct place *place,
                       struct blob *ret_blob, struct sandbox_error *err)
{
    if (json_kind(value) != JSON_STRING)
        return place_fail(place, field, value, err);
    return decode_string(value, ret_blob, err);
}

static int decode_bool(const struct field *field, struct span value, const struct place *place,
                       bool *ret_flag, struct sandbox_error *err)
{
    if (json_kind(value) != JSON_BOOL)
        return place_fail(place, field, value, err);
    *ret_flag = value.data[0] == 't';
    return 0;
}

/* An integer as sign and size, so that both u64 and i64 are whole. */
struct integer {
    bool negative;
    uint64_t magnitude;
};

static bool integer_parse(struct span value, struct integer *ret_integer)
{
    struct span digits = value;

    if (json_kind(value) != JSON_NUMBER)
        return false;
    ret_integer->negative = digits.data[0] == '-';
    if (ret_integer->negative) {
        digits.data++;
        digits.size--;
    }
    /* A fraction or an exponent is no digit; too large for 64 bits is too large for all. */
    return json_as_u64(digits, &ret_integer->magnitude) == 0;
}

static bool integer_in_range(const struct integer *integer, const struct field *field)
{
    if (integer->negative && integer->magnitude > 0)
        return field->min < 0 && integer->magnitude - 1 <= (uint64_t)(-(field->min + 1));
    return integer->magnitude <= field->max &&
           (field->min <= 0 || integer->magnitude >= (uint64_t)field->min);
}

static int decode_integer(const struct field *field, struct span value,
                          const struct place *place, void *member, struct sandbox_error *err)
{
    struct integer integer;
    uint64_t bits;

    if (!integer_parse(value, &integer) || !integer_in_range(&integer, field))
        return place_fail(place, field, value, err);
    bits = integer.negative ? -integer.magnitude : integer.magnitude;
    if (field->kind == FIELD_U64 || field->kind == FIELD_I64)
        memcpy(member, &bits, sizeof(bits));
    else
        *(uint32_t *)member = (uint32_t)bits;
    return 0;
}

static size_t count_elements(struct span container)
{
    struct json_iterator iterator = json_iterate(container);
    struct span key, value;
    size_t count = 0;

    while (json_next(&iterator, &key, &value))
        count++;
    return count;
}

/* Room for the elements of LIST, of SIZE bytes each, zeroed. *ret_items is NULL for none. */
int json_decode_prepare(struct span list, size_t size, const struct place *place,
                        void **ret_items, struct sandbox_error *err)
{
    size_t count = count_elements(list);

    *ret_items = NULL;
    if (count > LIMIT_LIST_ENTRIES)
        return place_fail_count(place, LIMIT_LIST_ENTRIES, count, err);
    if (count > 0) {
        *ret_items = calloc(count, size);
        if (!*ret_items)
            return json_decode_no_memory(err);
    }
    return 0;
}

const struct field json_decode_element = { .kind = FIELD_TEXT };

static int decode_texts(const struct field *field, struct span value, const struct place *place,
                        struct text_list *list, struct sandbox_error *err)
{
    struct json_iterator iterator = json_iterate(value);
    struct span key, element;
    void *items;

    if (json_kind(value) != JSON_ARRAY)
        return place_fail(place, field, value, err);
    if (json_decode_prepare(value, sizeof(*list->items), place, &items, err) < 0)
        return -1;
    list->items = items;
    for (; json_next(&iterator, &key, &element); list->count++) {
        struct place inner = { .parent = place, .index = list->count };

        if (json_decode_text(&json_decode_element, element, &inner, &list->items[list->count],
                             err) < 0)
            return -1;
    }
    return 0;
}

static int decode_channel_ref(struct span value, const struct place *place,
                              struct channel_ref *ref, struct sandbox_error *err)
{
    static const struct field secret = { .name = "access_key", .kind = FIELD_TEXT };
    struct json_member members[] = { { .name = "channel_id" },
                                     { .name = "access_key" },
                                     { .name = "direction" } };
    char **texts[] = { &ref->channel_id, &ref->access_key, &ref->direction };

    json_find(value, members, ARRAY_SIZE(members));
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        struct place inner = { .parent = place, .name = members[i].name };

        if (!members[i].value.data)
            return place_fail(&inner, &json_decode_element, members[i].value, err);
        if (json_decode_text(&secret, members[i].value, &inner, texts[i], err) < 0)
            return -1;
    }
    if (strcmp(ref->direction, "read") != 0 && strcmp(ref->direction, "write") != 0)
        return sandbox_error_set(err, S001,
                                 "%s.direction: expected \"read\" or \"write\", got \"%.64s\"",
                                 place->name, ref->direction);
    return 0;
}

static int decode_content(const struct field *field, struct span value,
                          const struct place *place, struct content *content,
                          struct sandbox_error *err)
{
    switch (json_kind(value)) {
    case JSON_STRING:
        return decode_string(value, &content->text, err);
    case JSON_OBJECT:
        content->is_stream = true;
        return decode_channel_ref(value, place, &content->stream, err);
    default:
        return place_fail(place, field, value, err);
    }
}

static int decode_stream(const struct field *field, struct span value,
                         const struct place *place, struct channel_ref *ref,
                         struct sandbox_error *err)
{
    if (json_kind(value) != JSON_OBJECT)
        return place_fail(place, field, value, err);
    return decode_channel_ref(value, place, ref, err);
}

static int decode_nested(const struct field *field, struct span value,
                         const struct place *place, void *member, struct sandbox_error *err)
{
    if (json_kind(value) != JSON_OBJECT)
        return place_fail(place, field, value, err);
    return decode_object(field->type, value, place, member, err);
}

static int decode_objects(const struct field *field, struct span value,
                          const struct place *place, struct object_list *list,
                          struct sandbox_error *err)
{
    struct json_iterator iterator = json_iterate(value);
    struct field element_object = { .kind = FIELD_OBJECT, .type = field->type };
    struct span key, element;
    void *items;

    if (json_kind(value) != JSON_ARRAY)
        return place_fail(place, field, value, err);
    if (json_decode_prepare(value, field->type->size, place, &items, err) < 0)
        return -1;
    list->items = items;
    while (json_next(&iterator, &key, &element)) {
        struct place inner = { .parent = place, .index = list->count };
        void *item = list->items + list->count++ * field->type->size;

        if (decode_nested(&element_object, element, &inner, item, err) < 0)
            return -1;
    }
    return 0;
}

static int decode_value(const struct field *field, struct span value, const struct place *place,
                        void *member, struct sandbox_error *err)
{
    switch (field->kind) {
    case FIELD_TEXT:
    case FIELD_B64:
        return json_decode_text(field, value, place, member, err);
    case FIELD_BLOB:
        return decode_blob(field, value, place, member, err);
    case FIELD_BOOL:
        return decode_bool(field, value, place, member, err);
    case FIELD_U32:
    case FIELD_U64:
    case FIELD_I32:
    case FIELD_I64:
        return decode_integer(field, value, place, member, err);
    case FIELD_TEXTS:
        return decode_texts(field, value, place, member, err);
    case FIELD_ENV:
        return json_decode_env(field, value, place, member, err);
    case FIELD_CONTENT:
        return decode_content(field, value, place, member, err);
    case FIELD_STREAM:
        return decode_stream(field, value, place, member, err);
    case FIELD_OBJECT:
        return decode_nested(field, value, place, member, err);
    case FIELD_OBJECTS:
        return decode_objects(field, value, place, member, err);
    case FIELD_KIND_MAX:
        break;
    }
    return 0;
}

int codec_set_default(const struct field *field, void *value)
{
    struct place place = { .name = field->name };
    struct sandbox_error err = { 0 }; /* the table's own text is right: only memory can fail */

    return decode_value(field, span_of_text(field->standard), &place,
                        (char *)value + field->offset, &err) < 0
               ? -ENOMEM
               : 0;
}

static int decode_field(const struct field *field, struct span value,
                        const struct place *parent, void *to, struct sandbox_error *err)
{
    struct place place = { .parent = parent, .name = field->name };
    void *member = (char *)to + field->offset;

    if (value.data && json_kind(value) != JSON_NULL) {
        *((bool *)((char *)to + field->has_offset)) = true;
        return decode_value(field, value, &place, member, err);
    }
    if (field->presence == FIELD_REQUIRED)
        return place_fail(&place, field, value, err);
    if (field->presence == FIELD_DEFAULT && codec_set_default(field, to) < 0)
        return json_decode_no_memory(err);
    return 0;
}

static int decode_object(const struct type *type, struct span object, const struct place *place,
                         void *to, struct sandbox_error *err)
{
    struct json_member members[CODEC_FIELDS_MAX];

    assert(type->field_count <= CODEC_FIELDS_MAX);
    for (size_t i = 0; i < type->field_count; i++)
        members[i].name = type->fields[i].name;
    json_find(object, members, type->field_count);
    for (size_t i = 0; i < type->field_count; i++) {
        if (decode_field(&type->fields[i], members[i].value, place, to, err) < 0)
            return -1;
    }
    return 0;
}

int codec_decode_json(const struct type *type, const char *json, size_t size, void *ret_value,
                      struct sandbox_error *err)
{
    struct span body;

    memset(ret_value, 0, type->size);
    if (json_body_check(json, size, &body, err) < 0)
        return -1;
    if (decode_object(type, body, NULL, ret_value, err) < 0) {
        codec_free(type, ret_value);
        return -1;
    }
    return 0;
}
