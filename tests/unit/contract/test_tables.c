/* test_tables.c - the tables hold what the contract says and contradict themselves nowhere. */
#include <string.h>

#include "all_types.h"
#include "cleanup.h"
#include "error.h"
#include "unit.h"

static bool is_number(const struct field *field)
{
    return field->kind >= FIELD_U32 && field->kind <= FIELD_I64;
}

static uint64_t kind_max(enum field_kind kind)
{
    switch (kind) {
    case FIELD_U32:
        return UINT32_MAX;
    case FIELD_I32:
        return INT32_MAX;
    case FIELD_I64:
        return INT64_MAX;
    default:
        return UINT64_MAX;
    }
}

static int64_t kind_min(enum field_kind kind)
{
    switch (kind) {
    case FIELD_I32:
        return INT32_MIN;
    case FIELD_I64:
        return INT64_MIN;
    default:
        return 0;
    }
}

static void check_field(const struct type *type, const struct field *field)
{
    bool is_nested = field->kind == FIELD_OBJECT || field->kind == FIELD_OBJECTS;

    ck_assert_msg(field->kind < FIELD_KIND_MAX, "%s.%s", type->name, field->name);
    ck_assert_msg(field->text[0], "%s.%s has no text", type->name, field->name);
    ck_assert_msg(is_nested == !!field->type, "%s.%s", type->name, field->name);
    ck_assert_msg((field->presence == FIELD_DEFAULT) == !!field->standard[0], "%s.%s",
                  type->name, field->name);
    ck_assert_uint_lt(field->offset, type->size);
    ck_assert_uint_lt(field->has_offset, field->offset);
    ck_assert_uint_le(field->since, 2);
    if (is_number(field)) {
        ck_assert_msg(field->max <= kind_max(field->kind), "%s.%s", type->name, field->name);
        ck_assert_msg(field->min >= kind_min(field->kind), "%s.%s", type->name, field->name);
        ck_assert_msg(field->min < 0 || (uint64_t)field->min <= field->max, "%s.%s", type->name,
                      field->name);
    }
    /* What schema.c can write as nullable. */
    if (field->presence == FIELD_NULLABLE)
        ck_assert_msg(field->kind == FIELD_TEXT || field->kind == FIELD_I32, "%s.%s",
                      type->name, field->name);
}

START_TEST(test_fields)
{
    for (size_t i = 0; i < ALL_TYPES_COUNT; i++) {
        const struct type *type = all_types[i];

        ck_assert_ptr_null(type->fields[type->field_count].name);
        for (size_t j = 0; j < type->field_count; j++) {
            check_field(type, &type->fields[j]);
            for (size_t k = 0; k < j; k++)
                ck_assert_str_ne(type->fields[j].name, type->fields[k].name);
        }
    }
}
END_TEST

START_TEST(test_operations)
{
    unsigned optional = 0;

    ck_assert_int_eq(OP_MAX, 23); /* 16 of the base, 6 worker::*, adapter::info */
    for (size_t i = 0; i < OP_MAX; i++) {
        const struct operation *operation = &operations[i];
        size_t size = strlen(operation->name);

        ck_assert_uint_eq(operation->id, i);
        ck_assert_msg(operation->text[0], "%s has no text", operation->name);
        ck_assert_ptr_eq(operation_find(operation->name, size), operation);
        ck_assert_ptr_null(operation_find(operation->name, size - 1));
        optional += !!(operation->flags & OPTIONAL_OP);
        if (operation->flags & ARRAY_REPLY) {
            ck_assert_uint_eq(operation->reply->field_count, 1);
            ck_assert_int_eq(operation->reply->fields[0].kind, FIELD_OBJECTS);
        }
    }
    ck_assert_uint_eq(optional, 6);
    ck_assert_ptr_null(operation_find("execute", 7));
    ck_assert_ptr_null(operation_find("", 0));
    ck_assert_ptr_eq(operation_find("exec and more", 4), &operations[OP_exec]);
}
END_TEST

/* Contract 1: the table of side effects. */
START_TEST(test_side_effects)
{
    static const char *const without[] = { "list",           "catalog::list", "fs::ls",
                                           "fs::stat",       "fs::grep",      "fs::read",
                                           "worker::status", "worker::list",  "worker::logs",
                                           "adapter::info" };

    for (size_t i = 0; i < OP_MAX; i++) {
        bool expected = true;

        for (size_t j = 0; j < ARRAY_SIZE(without); j++)
            expected = expected && strcmp(operations[i].name, without[j]) != 0;
        ck_assert_msg(expected == !!(operations[i].flags & SIDE_EFFECTS), "%s",
                      operations[i].name);
    }
}
END_TEST

START_TEST(test_guest_operations)
{
    for (size_t i = 0; i < GUEST_MAX; i++) {
        const struct guest_operation *operation = &guest_operations[i];

        ck_assert_uint_eq(operation->id, i);
        ck_assert_ptr_nonnull(operation->request);
        ck_assert_ptr_nonnull(operation->reply);
        ck_assert_ptr_eq(guest_operation_find(operation->name, strlen(operation->name)),
                         operation);
    }
    ck_assert_ptr_null(guest_operation_find("fs::", 4));
}
END_TEST

static bool is_type(const char *name)
{
    static const char *const types[] = {
#define ERROR_TYPE(type) #type,
#include "errors.def"
    };

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        if (strcmp(types[i], name) == 0)
            return true;
    }
    return false;
}

START_TEST(test_codes)
{
    ck_assert_int_eq(SANDBOX_CODE_MAX - 1, 30);
    for (enum sandbox_code code = SANDBOX_OK + 1; code < SANDBOX_CODE_MAX; code++) {
        const struct error_info *info = error_info_get(code);

        ck_assert_int_eq(error_code_parse(info->code), code);
        ck_assert_msg(is_type(info->type), "%s: %s", info->code, info->type);
        ck_assert_int_eq(info->retryable, strcmp(info->type, "transient") == 0);
        ck_assert_msg(info->name[0] && info->meaning[0] && info->cause[0] && info->cure[0] &&
                          info->example[0],
                      "%s lacks a text", info->code);
    }
    ck_assert_int_eq(error_code_parse("S999"), SANDBOX_OK);
    ck_assert_int_eq(error_code_parse(""), SANDBOX_OK);
    ck_assert_int_eq(error_code_parse("s001"), SANDBOX_OK);
}
END_TEST

/* Contract 3.3: where fix_note is null unless a fix comes with it. */
START_TEST(test_notes)
{
    static const enum sandbox_code without[] = { S210, S211, S212, S213, S214, S215,
                                                 S216, S217, S501, S504, S505 };

    for (enum sandbox_code code = SANDBOX_OK + 1; code < SANDBOX_CODE_MAX; code++) {
        bool expected = true;

        for (size_t i = 0; i < ARRAY_SIZE(without); i++)
            expected = expected && code != without[i];
        ck_assert_msg(expected == !!error_info_get(code)->note[0], "%s",
                      error_info_get(code)->code);
    }
}
END_TEST

START_TEST(test_limits)
{
    for (size_t i = 0; i < limit_count; i++) {
        ck_assert_uint_gt(limits[i].value, 0);
        ck_assert(limits[i].text[0] && limits[i].answer[0]);
    }
    ck_assert_int_eq(LIMIT_INLINE_BYTES, 2 * 1024 * 1024);
    ck_assert_int_eq(LIMIT_NESTING, 64);
}
END_TEST

UNIT_MAIN("tables", test_fields, test_operations, test_side_effects, test_guest_operations,
          test_codes, test_notes, test_limits)
