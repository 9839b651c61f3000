/* test_schema.c - the schemas are JSON and say what the tables say. */
#include "schema.h"

#include <string.h>

#include <jansson.h>

#include "unit.h"

static json_t *parse(struct buf *text)
{
    json_error_t error;
    json_t *json = json_loadb((const char *)text->data, text->size, 0, &error);

    ck_assert_msg(json, "%s: %s", error.text, buf_text(text));
    buf_done(text);
    return json;
}

static json_t *request_schema(enum operation_id operation)
{
    struct buf text = { 0 };

    ck_assert_int_eq(schema_request(operations[operation].request, &text), 0);
    return parse(&text);
}

static json_t *reply_schema(enum operation_id operation)
{
    struct buf text = { 0 };

    ck_assert_int_eq(schema_reply(&operations[operation], &text), 0);
    return parse(&text);
}

static json_t *property(json_t *schema, const char *name)
{
    json_t *found = json_object_get(json_object_get(schema, "properties"), name);

    ck_assert_msg(found, "no property %s", name);
    return found;
}

static const char *text_of(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static bool has_text(json_t *list, const char *text)
{
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item)
    {
        if (strcmp(json_string_value(item), text) == 0)
            return true;
    }
    return false;
}

START_TEST(test_all_parse)
{
    for (enum operation_id operation = 0; operation < OP_MAX; operation++) {
        json_t *request = request_schema(operation);
        json_t *reply = reply_schema(operation);

        ck_assert_str_eq(text_of(request, "type"), "object");
        ck_assert_uint_eq(json_object_size(json_object_get(request, "properties")),
                          operations[operation].request->field_count);
        ck_assert(json_is_array(json_object_get(request, "required")));
        ck_assert_str_eq(text_of(reply, "type"),
                         operations[operation].flags & ARRAY_REPLY ? "array" : "object");
        json_decref(request);
        json_decref(reply);
    }
}
END_TEST

START_TEST(test_request)
{
    json_t *schema = request_schema(OP_create);
    json_t *required = json_object_get(schema, "required");
    json_t *memory = property(schema, "memory_mb");

    ck_assert_uint_eq(json_array_size(required), 1);
    ck_assert(has_text(required, "image"));
    ck_assert_int_eq(json_integer_value(json_object_get(memory, "minimum")), 128);
    ck_assert_str_eq(text_of(memory, "type"), "integer");
    ck_assert(json_is_false(json_object_get(property(schema, "network"), "default")));
    ck_assert_int_eq(
        json_integer_value(json_object_get(property(schema, "image"), "maxLength")), 512);
    ck_assert_uint_eq(json_array_size(json_object_get(property(schema, "env"), "anyOf")), 2);
    ck_assert(text_of(property(schema, "image"), "description")[0]);
    json_decref(schema);
}
END_TEST

START_TEST(test_nested)
{
    json_t *schema = request_schema(OP_run);
    json_t *item = json_object_get(property(schema, "files"), "items");

    ck_assert_str_eq(text_of(property(item, "content"), "type"), "string");
    ck_assert_uint_eq(json_array_size(json_object_get(item, "required")), 2);
    json_decref(schema);
}
END_TEST

START_TEST(test_reply)
{
    json_t *schema = reply_schema(OP_exec);

    ck_assert(has_text(json_object_get(schema, "required"), "exit_code"));
    ck_assert(has_text(json_object_get(property(schema, "exit_code"), "type"), "null"));
    json_decref(schema);
    schema = reply_schema(OP_list);
    ck_assert_str_eq(text_of(property(json_object_get(schema, "items"), "cpus"), "type"),
                     "integer");
    json_decref(schema);
    schema = reply_schema(OP_fs_read);
    ck_assert(!has_text(json_object_get(schema, "required"), "body"));
    ck_assert_uint_eq(json_array_size(json_object_get(property(schema, "content"), "required")),
                      3);
    json_decref(schema);
}
END_TEST

UNIT_MAIN("schema", test_all_parse, test_request, test_nested, test_reply)
