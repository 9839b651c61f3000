/* args.c - see args.h. */
#include "args.h"

#include <errno.h>

#include "error.h"
#include "json_scan.h"
#include "utf8.h"

struct pair {
    struct span key;
    const char *value;
};

static int complain(struct buf *ret_error, const char *format, ...) _printf_(2, 3);
static int complain(struct buf *ret_error, const char *format, ...)
{
    va_list arguments;
    int result;

    va_start(arguments, format);
    result = buf_vprintf(ret_error, format, arguments);
    va_end(arguments);
    return result < 0 ? result : -EINVAL;
}

const struct operation *args_operation(const char *function)
{
    const char *colons = strstr(function, "::");

    return colons ? operation_find(colons + 2, strlen(colons + 2)) : NULL;
}

/* What the table says of a value. */
static bool is_literal(const struct operation *operation, struct span key)
{
    if (!operation)
        return false;
    for (size_t i = 0; i < operation->request->field_count; i++) {
        const struct field *field = &operation->request->fields[i];

        if (span_equals(key, field->name))
            return field->kind == FIELD_TEXT || field->kind == FIELD_BLOB ||
                   field->kind == FIELD_B64 || field->kind == FIELD_CONTENT;
    }
    return false;
}

static int split(const char *word, struct pair *ret_pair, struct buf *ret_error)
{
    const char *equals = strchr(word, '=');

    if (!utf8_valid(word, strlen(word)))
        return complain(ret_error, "\"%s\" is not UTF-8", word);
    if (!equals)
        return complain(ret_error, "\"%s\" is no KEY=VALUE: it has no =", word);
    if (equals == word)
        return complain(ret_error, "\"%s\" is no KEY=VALUE: the key is empty", word);
    ret_pair->key = (struct span){ .data = word, .size = (size_t)(equals - word) };
    ret_pair->value = equals + 1;
    return 0;
}

/* The pair whose key comes again later does not count. */
static bool is_repeated_later(const struct args *args, size_t index, struct span key)
{
    for (size_t i = index + 1; i < args->pair_count; i++) {
        if (strncmp(args->pairs[i], key.data, key.size) == 0 && args->pairs[i][key.size] == '=')
            return true;
    }
    return false;
}

static int put_pair(const struct pair *pair, const struct operation *operation, struct buf *to)
{
    struct span text = span_of_text(pair->value);
    struct span value;
    int result = json_append_string(to, pair->key.data, pair->key.size);

    if (result == 0)
        result = buf_append_byte(to, ':');
    if (result < 0)
        return result;
    if (!is_literal(operation, pair->key) && json_scan(text.data, text.size, &value, NULL) == 0)
        return buf_append(to, value.data, value.size);
    return json_append_string(to, text.data, text.size);
}

static int put_separator(struct buf *to)
{
    return to->data[to->size - 1] == '{' ? 0 : buf_append_byte(to, ',');
}

static int put_pairs(const struct args *args, struct buf *to, struct buf *ret_error)
{
    const struct operation *operation = args_operation(args->function);
    int result = 0;

    for (size_t i = 0; i < args->pair_count && result == 0; i++) {
        struct pair pair = { 0 };

        result = split(args->pairs[i], &pair, ret_error);
        if (result < 0 || is_repeated_later(args, i, pair.key))
            continue;
        result = put_separator(to);
        if (result == 0)
            result = put_pair(&pair, operation, to);
    }
    return result;
}

/* A member of the payload that a pair replaces. */
static bool is_replaced(const struct args *args, struct span raw_key)
{
    for (size_t i = 0; i < args->pair_count; i++) {
        size_t size = strcspn(args->pairs[i], "=");
        _cleanup_free_ char *key = strndup(args->pairs[i], size);

        if (key && json_string_equals(raw_key, key))
            return true;
    }
    return false;
}

static int put_base(const struct args *args, struct span base, struct buf *to)
{
    struct json_iterator iterator = json_iterate(base);
    struct span key, value;
    int result = 0;

    while (result == 0 && json_next(&iterator, &key, &value)) {
        if (is_replaced(args, key))
            continue;
        result = put_separator(to);
        if (result == 0)
            result = buf_append(to, key.data, key.size);
        if (result == 0)
            result = buf_append_byte(to, ':');
        if (result == 0)
            result = buf_append(to, value.data, value.size);
    }
    return result;
}

static int read_base(const struct args *args, struct span *ret_base, struct buf *ret_error)
{
    size_t offset = 0;
    int result = json_scan(args->json.data, args->json.size, ret_base, &offset);

    if (result == -E2BIG)
        return complain(ret_error, "%s nests deeper than %d", args->source, JSON_DEPTH_MAX);
    if (result < 0)
        return complain(ret_error, "%s is no JSON: it goes wrong at position %zu", args->source,
                        offset + 1);
    if (args->pair_count > 0 && json_kind(*ret_base) != JSON_OBJECT)
        return complain(ret_error, "%s must be an object when there are KEY=VALUE words",
                        args->source);
    return 0;
}

int args_payload(const struct args *args, struct buf *ret_payload, struct buf *ret_error)
{
    struct span base = { 0 };
    int result = args->json.data ? read_base(args, &base, ret_error) : 0;

    if (result < 0)
        return result;
    if (base.data && args->pair_count == 0)
        return buf_append(ret_payload, base.data, base.size);
    result = buf_append_byte(ret_payload, '{');
    if (result == 0)
        result = put_base(args, base, ret_payload);
    if (result == 0)
        result = put_pairs(args, ret_payload, ret_error);
    return result == 0 ? buf_append_byte(ret_payload, '}') : result;
}
