/* match.c - see match.h. A mismatch is told with the path to it. */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "match.h"

#include <pcre2.h>
#include <string.h>

#include "uuid.h"

static bool differs(struct buf *why, const char *wanted, const json_t *value)
{
    char *got = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    (void)buf_printf(why, " wants %s, got %.300s", wanted, got ? got : "nothing");
    free(got);
    return false;
}

static bool match_regex(const char *regex, const char *text)
{
    int error;
    PCRE2_SIZE offset;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED, PCRE2_UTF,
                                     &error, &offset, NULL);
    if (!code)
        return false;
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
    int count = pcre2_match(code, (PCRE2_SPTR)text, strlen(text), 0, 0, data, NULL);
    pcre2_match_data_free(data);
    pcre2_code_free(code);
    return count >= 0;
}

static bool is_uuid(const json_t *value)
{
    char canonical[37];
    return json_is_string(value) && uuid_parse(json_string_value(value), canonical) == 0 &&
           strcmp(canonical, json_string_value(value)) == 0;
}

static bool is_reader_ref(const json_t *value)
{
    const char *direction = json_string_value(json_object_get(value, "direction"));
    return json_is_string(json_object_get(value, "channel_id")) &&
           json_is_string(json_object_get(value, "access_key")) && direction &&
           strcmp(direction, "read") == 0;
}

static bool has_element(const char *wanted, const json_t *value)
{
    if (json_is_string(value))
        return strstr(json_string_value(value), wanted) != NULL;
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *text = json_string_value(json_array_get(value, i));
        if (text && strcmp(text, wanted) == 0)
            return true;
    }
    return false;
}

/* The patterns with an argument. */
static bool match_argument(const char *name, const char *argument, const json_t *value)
{
    long long number = strtoll(argument, NULL, 10);
    if (strcmp(name, "$re") == 0)
        return json_is_string(value) && match_regex(argument, json_string_value(value));
    if (strcmp(name, "$size") == 0)
        return json_is_string(value) && json_string_length(value) == (size_t)number;
    if (strcmp(name, "$len") == 0)
        return json_is_array(value) && json_array_size(value) == (size_t)number;
    if (strcmp(name, "$ge") == 0)
        return json_is_integer(value) && json_integer_value(value) >= number;
    if (strcmp(name, "$le") == 0)
        return json_is_integer(value) && json_integer_value(value) <= number;
    return strcmp(name, "$has") == 0 && has_element(argument, value);
}

static bool match_special(const char *pattern, const json_t *value)
{
    if (strcmp(pattern, "$any") == 0)
        return value != NULL;
    if (strcmp(pattern, "$absent") == 0)
        return value == NULL;
    if (strcmp(pattern, "$text") == 0)
        return json_is_string(value);
    if (strcmp(pattern, "$int") == 0)
        return json_is_integer(value);
    if (strcmp(pattern, "$bool") == 0)
        return json_is_boolean(value);
    if (strcmp(pattern, "$null") == 0)
        return json_is_null(value);
    if (strcmp(pattern, "$uuid") == 0)
        return is_uuid(value);
    if (strcmp(pattern, "$ref") == 0)
        return is_reader_ref(value);
    const char *colon = strchr(pattern, ':');
    char name[16] = "";
    if (colon && (size_t)(colon - pattern) < sizeof(name)) {
        memcpy(name, pattern, (size_t)(colon - pattern));
        return match_argument(name, colon + 1, value);
    }
    return false;
}

static bool match_members(const json_t *pattern, const json_t *value, struct buf *why)
{
    const char *key;
    json_t *wanted;
    json_object_foreach((json_t *)pattern, key, wanted)
    {
        size_t mark = why->size;
        (void)buf_printf(why, ".%s", key);
        if (!match_json(wanted, json_object_get(value, key), why))
            return false;
        why->size = mark;
    }
    return true;
}

static bool match_elements(const json_t *pattern, const json_t *value, struct buf *why)
{
    if (json_array_size(pattern) != json_array_size(value))
        return differs(why, "as many elements as the pattern", value);
    for (size_t i = 0; i < json_array_size(pattern); i++) {
        size_t mark = why->size;
        (void)buf_printf(why, "[%zu]", i);
        if (!match_json(json_array_get(pattern, i), json_array_get(value, i), why))
            return false;
        why->size = mark;
    }
    return true;
}

bool match_json(const json_t *pattern, const json_t *value, struct buf *why)
{
    if (json_is_string(pattern) && json_string_value(pattern)[0] == '$')
        return match_special(json_string_value(pattern), value) ||
               differs(why, json_string_value(pattern), value);
    if (json_is_object(pattern) && json_is_object(value))
        return match_members(pattern, value, why);
    if (json_is_array(pattern) && json_is_array(value))
        return match_elements(pattern, value, why);
    if (value && json_equal((json_t *)pattern, (json_t *)value))
        return true;
    char *wanted = json_dumps(pattern, JSON_ENCODE_ANY | JSON_COMPACT);
    (void)differs(why, wanted ? wanted : "the pattern", value);
    free(wanted);
    return false;
}

bool match_text(const char *pattern, const json_t *value, struct buf *why)
{
    json_error_t error;
    json_t *parsed = json_loads(pattern, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!parsed) {
        (void)buf_printf(why, " the case's own pattern is no JSON: %s: %s", error.text,
                         pattern);
        return false;
    }
    bool matches = match_json(parsed, value, why);
    json_decref(parsed);
    return matches;
}
