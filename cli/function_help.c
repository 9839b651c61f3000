/* function_help.c - see function_help.h. Router and built-in tables give the same JSON, so
 * there is one way of printing it. */
#include "function_help.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "args.h"
#include "error.h"
#include "hint.h"
#include "json_scan.h"
#include "output.h"
#include "sandbox_call.h"
#include "schema.h"

/* How the type of a property reads. */
static int put_type(struct span property, struct buf *to)
{
    struct span any_of = json_get(property, "anyOf");
    struct json_iterator iterator;
    struct span key, value;
    const char *separator = "";
    int result = 0;

    if (!any_of.data)
        return output_member_text(property, "type", to);
    iterator = json_iterate(any_of);
    while (result == 0 && json_next(&iterator, &key, &value)) {
        result = buf_append_text(to, separator);
        if (result == 0)
            result = output_member_text(value, "type", to);
        separator = "|";
    }
    return result;
}

static bool is_required(struct span schema, struct span name)
{
    struct json_iterator iterator = json_iterate(json_get(schema, "required"));
    struct span key, value;

    while (json_next(&iterator, &key, &value)) {
        if (value.size == name.size && memcmp(value.data, name.data, name.size) == 0)
            return true;
    }
    return false;
}

/* One line of the table. */
static int put_property(struct span schema, struct span raw_name, struct span property,
                        struct buf *to)
{
    _cleanup_(buf_done)
    struct buf name = { 0 }, type = { 0 }, text = { 0 };
    struct span standard = json_get(property, "default");
    int result = json_string_decode(raw_name, &name);

    if (result == 0)
        result = put_type(property, &type);
    if (result == 0)
        result = output_member_text(property, "description", &text);
    if (result < 0 || !buf_text(&name) || !buf_text(&type) || !buf_text(&text))
        return result < 0 ? result : -ENOMEM;
    return buf_printf(to, "  %-18s %-14s %-9s %-10.*s %s\n", buf_text(&name), buf_text(&type),
                      is_required(schema, raw_name) ? "yes" : "no", (int)standard.size,
                      standard.data ? standard.data : "", buf_text(&text));
}

static int put_properties(struct span schema, struct buf *to)
{
    struct json_iterator iterator = json_iterate(json_get(schema, "properties"));
    struct span key, value;
    int result = buf_printf(to, "\n  %-18s %-14s %-9s %-10s %s\n", "NAME", "TYPE", "REQUIRED",
                            "DEFAULT", "");
    size_t before = to->size;

    while (result == 0 && json_next(&iterator, &key, &value))
        result = put_property(schema, key, value, to);
    if (result == 0 && to->size == before)
        result = buf_append_text(to, "  (none)\n");
    return result;
}

/* INFO: the reply of engine::functions::info. */
static int print_info(struct span info)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    int result = output_member_text(info, "function_id", &text);

    if (result == 0)
        result = buf_append_text(&text, "\n");
    if (result == 0)
        result = output_member_text(info, "description", &text);
    if (result == 0)
        result = buf_append_text(&text, "\n");
    if (result == 0)
        result = put_properties(json_get(info, "request_schema"), &text);
    return result < 0 ? sandbox_complain("%s", strerror(-result))
                      : sandbox_print(text.data, text.size);
}

static int unknown(const char *function)
{
    const char *nearest = hint_nearest_function(function);

    (void)fprintf(stderr, "Error: function not found: %s%s%s%s\n", function,
                  nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
    return EXIT_CODE_FAILED;
}

static int print_built_in(const char *function)
{
    _cleanup_(buf_done)
    struct buf json = { 0 };
    const struct operation *operation = args_operation(function);
    struct span info;
    int result;

    if (!operation)
        return unknown(function);
    result = buf_append_text(&json, "{\"function_id\":");
    if (result == 0)
        result = json_append_string(&json, function, strlen(function));
    if (result == 0)
        result = buf_append_text(&json, ",\"description\":");
    if (result == 0)
        result = json_append_string(&json, operation->text, strlen(operation->text));
    if (result == 0)
        result = buf_append_text(&json, ",\"request_schema\":");
    if (result == 0)
        result = schema_request(operation->request, &json);
    if (result == 0)
        result = buf_append_byte(&json, '}');
    if (result == 0)
        result = json_scan((const char *)json.data, json.size, &info, NULL);
    if (result < 0) {
        (void)fprintf(stderr, "Error: %s\n", strerror(-result));
        return EXIT_CODE_FAILED;
    }
    return print_info(info);
}

static int ask(struct client *client, uint64_t timeout_ms, const char *function)
{
    _cleanup_(buf_done)
    struct buf payload = { 0 };
    struct client_request request = { .function = "engine::functions::info" };
    struct client_call call = { 0 };
    enum client_outcome outcome = CLIENT_LOST;
    int code;

    if (buf_append_text(&payload, "{\"function_id\":") == 0 &&
        json_append_string(&payload, function, strlen(function)) == 0 &&
        buf_append_byte(&payload, '}') == 0) {
        request.payload = (struct span){ (const char *)payload.data, payload.size };
        outcome = client_run(client, &call, &request, client_now_ms(client) + timeout_ms);
    }
    if (outcome == CLIENT_INTERRUPTED) {
        code = 128 + client->interrupt.caught;
    } else if (outcome != CLIENT_ANSWERED) {
        (void)fprintf(stderr,
                      "The router does not answer at %s port %u; this is from the built-in "
                      "tables:\n",
                      client->endpoint.host, client->endpoint.port);
        code = print_built_in(function);
    } else if (call.is_error) {
        code = unknown(function);
    } else {
        code = print_info((struct span){ (const char *)call.answer.data, call.answer.size });
    }
    client_call_done(&call);
    return code;
}

int function_help(struct client *client, uint64_t timeout_ms, const char *function)
{
    int code = ask(client, timeout_ms, function);

    client_close(client);
    return code;
}
