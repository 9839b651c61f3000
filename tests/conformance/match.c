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

static bool match_regex(const char *regex, const json_t *value)
{
    const char *text = json_string_value(value);
    int error;
    PCRE2_SIZE offset;
    if (!text)
        return false;
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

static bool is_there(const json_t *value)
{
    return value != NULL;
}

static bool is_absent(const json_t *value)
{
    return value == NULL;
}

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

static bool is_integer(const json_t *value)
{
    return json_is_integer(value);
}

static bool is_bool(const json_t *value)
{
    return json_is_boolean(value);
}

static bool is_null(const json_t *value)
{
    return json_is_null(value);
}

static bool has_size(const char *argument, const json_t *value)
{
    return json_is_string(value) && json_string_length(value) == strtoull(argument, NULL, 10);
}

static bool has_length(const char *argument, const json_t *value)
{
    return json_is_array(value) && json_array_size(value) == strtoull(argument, NULL, 10);
}

static bool is_at_least(const char *argument, const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= strtoll(argument, NULL, 10);
}

static bool is_at_most(const char *argument, const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) <= strtoll(argument, NULL, 10);
}

static const struct {
    const char *name;
    bool (*matches)(const json_t *value);
} plain[] = {
    { "$any", is_there },   { "$absent", is_absent },  { "$text", is_text },
    { "$int", is_integer }, { "$bool", is_bool },      { "$null", is_null },
    { "$uuid", is_uuid },   { "$ref", is_reader_ref },
};

static const struct {
    const char *name; /* with its colon */
    bool (*matches)(const char *argument, const json_t *value);
} with_argument[] = {
    { "$re:", match_regex }, { "$size:", has_size }, { "$len:", has_length },
    { "$ge:", is_at_least }, { "$le:", is_at_most }, { "$has:", has_element },
};

/* 1: matches, 0: does not, -1: the text is no special pattern. */
static int match_special(const char *pattern, const json_t *value)
{
    for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
        if (strcmp(pattern, plain[i].name) == 0)
            return plain[i].matches(value);
    }
    for (size_t i = 0; i < ARRAY_SIZE(with_argument); i++) {
        size_t size = strlen(with_argument[i].name);
        if (strncmp(pattern, with_argument[i].name, size) == 0)
            return with_argument[i].matches(pattern + size, value);
    }
    return -1;
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
    int special = json_is_string(pattern) ? match_special(json_string_value(pattern), value)
                                          : -1;
    if (special >= 0)
        return special || differs(why, json_string_value(pattern), value);
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
