/* tables.c - the rows of all_types.def, guest.def and operations.def as tables; see tables.h.
 */
#include "tables.h"

#include <assert.h>
#include <string.h>

#include "cleanup.h"

/* Fields of each type, with one empty row at the end so that a type without fields is no empty
 * array. */
#define TYPE(owner, type_text) static const struct field fields_##owner[] = {
#define FIELD(owner, field_kind, member, field_presence, field_standard, field_min, field_max, \
              field_since, field_text)                                                         \
    { .name = #member,                                                                         \
      .kind = FIELD_##field_kind,                                                              \
      .presence = FIELD_##field_presence,                                                      \
      .standard = field_standard,                                                              \
      .min = field_min,                                                                        \
      .max = field_max,                                                                        \
      .since = field_since,                                                                    \
      .text = field_text,                                                                      \
      .offset = offsetof(struct owner, member),                                                \
      .has_offset = offsetof(struct owner, has_##member) },
#define TABLE_FIELDS_NESTED(owner, field_kind, of_type, member, field_presence, field_since,   \
                            field_text)                                                        \
    { .name = #member,                                                                         \
      .kind = field_kind,                                                                      \
      .presence = FIELD_##field_presence,                                                      \
      .standard = "",                                                                          \
      .since = field_since,                                                                    \
      .text = field_text,                                                                      \
      .offset = offsetof(struct owner, member),                                                \
      .has_offset = offsetof(struct owner, has_##member),                                      \
      .type = &type_##of_type },
#define OBJECT(owner, ...) TABLE_FIELDS_NESTED(owner, FIELD_OBJECT, __VA_ARGS__)
#define OBJECTS(owner, ...) TABLE_FIELDS_NESTED(owner, FIELD_OBJECTS, __VA_ARGS__)
#define END(owner)                                                                             \
    {                                                                                          \
        .name = NULL                                                                           \
    }                                                                                          \
    }                                                                                          \
    ;

#include "all_types.def"

#define TYPE(type_name, type_text)                                                             \
    static_assert(offsetof(struct type_name##_list, items) ==                                  \
                      offsetof(struct object_list, items),                                     \
                  "lists look alike");                                                         \
    const struct type type_##type_name = {                                                     \
        .name = #type_name,                                                                    \
        .text = type_text,                                                                     \
        .size = sizeof(struct type_name),                                                      \
        .fields = fields_##type_name,                                                          \
        .field_count = ARRAY_SIZE(fields_##type_name) - 1,                                     \
    };

#define FIELD(...)
#define OBJECT(...)
#define OBJECTS(...)
#define END(name)
#include "all_types.def"

const struct operation operations[] = {
#define OPERATION(op, op_name, op_group, op_flags, op_request, op_reply, op_since, op_text)    \
    [OP_##op] = {                                                                              \
        .id = OP_##op,                                                                         \
        .name = op_name,                                                                       \
        .group = #op_group,                                                                    \
        .flags = op_flags,                                                                     \
        .request = &type_##op_request,                                                         \
        .reply = &type_##op_reply,                                                             \
        .since = op_since,                                                                     \
        .text = op_text,                                                                       \
    },
#include "operations.def"
};
static_assert(ARRAY_SIZE(operations) == OP_MAX, "a row for each operation");

const struct guest_operation guest_operations[] = {
#define GUEST_OPERATION(op, op_name, op_request, op_reply)                                     \
    [GUEST_##op] = {                                                                           \
        .id = GUEST_##op,                                                                      \
        .name = op_name,                                                                       \
        .request = &type_##op_request,                                                         \
        .reply = &type_##op_reply,                                                             \
    },
#include "guest.def"
};
static_assert(ARRAY_SIZE(guest_operations) == GUEST_MAX, "a row for each guest operation");

const struct limit limits[] = {
#define LIMIT(limit_id, limit_value, limit_answer, limit_text)                                 \
    { .name = #limit_id, .value = limit_value, .answer = limit_answer, .text = limit_text },
#include "limits.def"
};
const size_t limit_count = ARRAY_SIZE(limits);

static bool name_equals(const char *wanted, const char *name, size_t size)
{
    return strlen(wanted) == size && memcmp(wanted, name, size) == 0;
}

const struct operation *operation_find(const char *name, size_t size)
{
    for (size_t i = 0; i < OP_MAX; i++) {
        if (name_equals(operations[i].name, name, size))
            return &operations[i];
    }
    return NULL;
}

const struct guest_operation *guest_operation_find(const char *name, size_t size)
{
    for (size_t i = 0; i < GUEST_MAX; i++) {
        if (name_equals(guest_operations[i].name, name, size))
            return &guest_operations[i];
    }
    return NULL;
}
