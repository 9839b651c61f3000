/* web_engine.c - see web_engine.h. One row a function. */
#include "web_engine.h"

#include <errno.h>

#include "error.h"
#include "schema.h"
#include "tables.h"

static int put_text(struct buf *to, const char *text)
{
    return text ? json_append_string(to, text, strlen(text)) : buf_append_text(to, "null");
}

/* engine::workers::register */

static void remember_identity(struct web_main *client, struct span data)
{
    static const char *const keys[WEB_IDENTITY_MAX] = { "name", "runtime", "version", "os" };

    if (!data.data || json_kind(data) != JSON_OBJECT)
        return;
    for (int i = 0; i < WEB_IDENTITY_MAX; i++) {
        free(client->identity[i]);
        client->identity[i] = web_text_of(json_get(data, keys[i]), WEB_IDENTITY_MAX_BYTES);
    }
}

static enum web_engine_result workers_register(struct web_main *client, struct span data,
                                               struct buf *to)
{
    remember_identity(client, data);
    return buf_append_text(to, "{\"success\":true}") < 0 ? WEB_ENGINE_NO_MEMORY
                                                         : WEB_ENGINE_DONE;
}

/* engine::workers::list */

static int put_registrations(const struct web_main *client, struct buf *to)
{
    int result = buf_printf(to, ",\"function_count\":%zu,\"functions\":[",
                            client->registration_count);

    for (size_t i = 0; i < client->registration_count && result == 0; i++) {
        if (i > 0)
            result = buf_append_byte(to, ',');
        if (result == 0)
            result = put_text(to, client->registrations[i]);
    }
    return result == 0 ? buf_append_byte(to, ']') : result;
}

static int put_worker(const struct web_main *client, struct buf *to)
{
    static const char *const keys[WEB_IDENTITY_MAX] = {
        [WEB_IDENTITY_NAME] = ",\"name\":",
        [WEB_IDENTITY_RUNTIME] = ",\"runtime\":",
        [WEB_IDENTITY_VERSION] = ",\"version\":",
        [WEB_IDENTITY_OS] = ",\"os\":",
    };
    int result = buf_printf(to, "{\"id\":\"%s\"", client->worker_id);

    for (int i = 0; i < WEB_IDENTITY_MAX && result == 0; i++) {
        result = buf_append_text(to, keys[i]);
        if (result == 0)
            result = put_text(to, client->identity[i]);
    }
    if (result == 0)
        result = buf_printf(to, ",\"status\":\"connected\",\"connected_at_ms\":%llu",
                            (unsigned long long)client->connected_at_ms);
    if (result == 0)
        result = put_registrations(client, to);
    return result == 0 ? buf_printf(to, ",\"active_invocations\":%u}", client->caller.in_flight)
                       : result;
}

static enum web_engine_result workers_list(struct web_main *client, struct span data,
                                           struct buf *to)
{
    int result = buf_append_text(to, "{\"workers\":[");
    bool first = true;

    LIST_FOREACH(node, &client->clients->mains)
    {
        const struct web_main *other = LIST_ENTRY(node, struct web_main, node);

        if (!other->speaks || result < 0)
            continue;
        result = first ? 0 : buf_append_byte(to, ',');
        first = false;
        if (result == 0)
            result = put_worker(other, to);
    }
    if (result == 0)
        result = buf_append_text(to, "]}");
    return result < 0 ? WEB_ENGINE_NO_MEMORY : WEB_ENGINE_DONE;
}

/* engine::functions::list and ::info */

/* The router answers this one itself, and not as adapters do (contract 13). */
#define INFO_REPLY_SCHEMA                                                                      \
    "{\"type\":\"object\",\"properties\":{\"adapter\":{\"type\":[\"string\",\"null\"]},"       \
    "\"namespace\":{\"type\":\"string\"},\"contract\":{\"type\":\"object\"},"                  \
    "\"info\":{\"type\":[\"object\",\"null\"]},\"status\":{\"type\":\"string\"}},"             \
    "\"required\":[\"adapter\",\"namespace\",\"contract\",\"info\",\"status\"]}"

static int put_reply_schema(const struct operation *operation, struct buf *to)
{
    return operation->id == OP_adapter_info ? buf_append_text(to, INFO_REPLY_SCHEMA)
                                            : schema_reply(operation, to);
}

/* KEYS: what the two schemas are called. */
static int put_function(const struct operation *operation, const char *const keys[2],
                        struct buf *to)
{
    int result = buf_printf(
        to, "{\"function_id\":\"sandbox::%s\",\"description\":", operation->name);

    if (result == 0)
        result = put_text(to, operation->text);
    if (result == 0)
        result = buf_printf(to, ",\"%s\":", keys[0]);
    if (result == 0)
        result = schema_request(operation->request, to);
    if (result == 0)
        result = buf_printf(to, ",\"%s\":", keys[1]);
    if (result == 0)
        result = put_reply_schema(operation, to);
    return result == 0 ? buf_append_byte(to, '}') : result;
}

static enum web_engine_result functions_list(struct web_main *client, struct span data,
                                             struct buf *to)
{
    static const char *const keys[] = { "request_format", "response_format" };
    int result = buf_append_text(to, "{\"functions\":[");

    for (int i = 0; i < OP_MAX && result == 0; i++) {
        if (i > 0)
            result = buf_append_byte(to, ',');
        if (result == 0)
            result = put_function(&operations[i], keys, to);
    }
    if (result == 0)
        result = buf_append_text(to, "]}");
    return result < 0 ? WEB_ENGINE_NO_MEMORY : WEB_ENGINE_DONE;
}

static const struct operation *find_function(const char *name)
{
    struct span span = span_of_text(name);

    return span_starts_with(span, "sandbox::") ? operation_find(name + 9, span.size - 9) : NULL;
}

static enum web_engine_result functions_info(struct web_main *client, struct span data,
                                             struct buf *to)
{
    static const char *const keys[] = { "request_schema", "response_schema" };
    _cleanup_free_ char *name = NULL;
    const struct operation *operation;
    int result;

    if (data.data && json_kind(data) == JSON_OBJECT)
        name = web_text_of(json_get(data, "function_id"), WEB_ID_MAX_BYTES);
    operation = name ? find_function(name) : NULL;
    if (operation)
        return put_function(operation, keys, to) < 0 ? WEB_ENGINE_NO_MEMORY : WEB_ENGINE_DONE;
    result = name ? buf_printf(to, "function not found: %s", name)
                  : buf_append_text(to, "function_id must be the name of a function");
    return result < 0 ? WEB_ENGINE_NO_MEMORY : WEB_ENGINE_REFUSED;
}

static const struct {
    const char *function;
    enum web_engine_result (*serve)(struct web_main *client, struct span data, struct buf *to);
} engine_functions[] = {
    { "engine::workers::register", workers_register },
    { "engine::workers::list", workers_list },
    { "engine::functions::list", functions_list },
    { "engine::functions::info", functions_info },
};

enum web_engine_result web_engine_serve(struct web_main *client, const char *function,
                                        struct span data, struct buf *ret_result)
{
    for (size_t i = 0; i < ARRAY_SIZE(engine_functions); i++) {
        if (strcmp(function, engine_functions[i].function) == 0)
            return engine_functions[i].serve(client, data, ret_result);
    }
    return WEB_ENGINE_NOT_MINE;
}
