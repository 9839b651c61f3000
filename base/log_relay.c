/* log_relay.c - see log_relay.h. A line is read into fields and written anew, so that what
 * comes out is well-formed whatever came in. */
#include "log_relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json_scan.h"
#include "log.h"

#define RELAY_FIELDS_MAX 32u
#define RELAY_HEAD_FIELDS 4u /* ts, level, prog, event */
#define RELAY_EVENT_MAX_BYTES 128u

struct relay {
    struct buf texts; /* keys and values, each ended by a NUL; never moves */
    struct log_field fields[RELAY_FIELDS_MAX];
    unsigned count;
};

static bool is_key_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* A key or a value, kept; NULL: it holds a NUL or does not fit. */
static const char *keep(struct relay *relay, const char *text, size_t size)
{
    const char *kept = (const char *)relay->texts.data + relay->texts.size;

    if (memchr(text, '\0', size) || buf_append(&relay->texts, text, size) < 0 ||
        buf_append_byte(&relay->texts, 0) < 0)
        return NULL;
    return kept;
}

/* What a JSON string means, kept; NULL as above. */
static const char *keep_string(struct relay *relay, struct span string)
{
    size_t before = relay->texts.size;
    const char *kept = (const char *)relay->texts.data + before;

    if (json_string_decode(string, &relay->texts) < 0 ||
        memchr(kept, '\0', relay->texts.size - before) || buf_append_byte(&relay->texts, 0) < 0)
        return NULL;
    return kept;
}

/* A whole number is one again, so that JSON shows it as one; all else is text. */
static struct log_field field_of_word(const char *key, const char *word)
{
    char *end = NULL;
    bool negative = word[0] == '-';
    size_t digits = strspn(word + negative, "0123456789");

    errno = 0;
    if (digits == 0 || word[negative + digits] != '\0')
        return log_text(key, negative && word[1] == '\0' ? NULL : word);
    if (negative) {
        int64_t number = strtoll(word, &end, 10);

        return errno ? log_text(key, word) : log_int(key, number);
    }
    uint64_t number = strtoull(word, &end, 10);

    return errno ? log_text(key, word) : log_uint(key, number);
}

static bool add_field(struct relay *relay, struct log_field field)
{
    if (relay->count == RELAY_FIELDS_MAX)
        return false;
    relay->fields[relay->count++] = field;
    return true;
}

/* key=value */

static const char *read_key(struct relay *relay, const char **at, const char *end)
{
    const char *begin = *at;
    const char *key;

    while (*at < end && is_key_character(**at))
        (*at)++;
    if (*at == begin || *at == end || **at != '=')
        return NULL;
    key = keep(relay, begin, (size_t)(*at - begin));
    (*at)++;
    return key;
}

/* The escapes of log.c are some of JSON's. */
static const char *read_quoted(struct relay *relay, const char **at, const char *end)
{
    const char *begin = *at;
    struct span string;

    for ((*at)++; *at < end && **at != '"'; (*at)++) {
        if (**at == '\\')
            (*at)++;
    }
    if (*at >= end)
        return NULL;
    (*at)++;
    if (json_scan(begin, (size_t)(*at - begin), &string, NULL) < 0)
        return NULL;
    return keep_string(relay, string);
}

static const char *read_word(struct relay *relay, const char **at, const char *end)
{
    const char *begin = *at;

    while (*at<end &&* * at> ' ' && **at < 0x7f && **at != '"' && **at != '\\')
        (*at)++;
    return *at > begin ? keep(relay, begin, (size_t)(*at - begin)) : NULL;
}

static bool read_value(struct relay *relay, const char *key, const char **at, const char *end)
{
    bool quoted = *at < end && **at == '"';
    const char *value = quoted ? read_quoted(relay, at, end) : read_word(relay, at, end);

    return value && add_field(relay, quoted ? log_text(key, value) : field_of_word(key, value));
}

/* One pair and the space behind it, if another follows. */
static bool read_pair(struct relay *relay, const char **at, const char *end)
{
    const char *key = read_key(relay, at, end);

    if (!key || !read_value(relay, key, at, end))
        return false;
    if (*at == end)
        return true;
    return *(*at)++ == ' ' && *at < end;
}

static bool read_pairs(struct relay *relay, const char *line, size_t size)
{
    const char *at = line;
    const char *end = line + size;

    while (at < end) {
        if (!read_pair(relay, &at, end))
            return false;
    }
    return true;
}

/* JSON */

static bool is_key(const char *text)
{
    const char *at = text;

    while (is_key_character(*at))
        at++;
    return at > text && *at == '\0';
}

static bool read_member(struct relay *relay, struct span key, struct span value)
{
    const char *name = keep(relay, key.data + 1, key.size - 2); /* without its quotes */
    bool number = json_kind(value) == JSON_NUMBER;
    const char *text;

    if (!name || !is_key(name) || (!number && json_kind(value) != JSON_STRING))
        return false;
    text = number ? keep(relay, value.data, value.size) : keep_string(relay, value);
    return text && add_field(relay, number ? field_of_word(name, text) : log_text(name, text));
}

static bool read_object(struct relay *relay, const char *line, size_t size)
{
    struct span object, key, value;
    struct json_iterator iterator;

    if (json_scan(line, size, &object, NULL) < 0 || json_kind(object) != JSON_OBJECT)
        return false;
    iterator = json_iterate(object);
    while (json_next(&iterator, &key, &value)) {
        if (!read_member(relay, key, value))
            return false;
    }
    return true;
}

/* Telling. What stands without quotes in one format is judged alike in both. */

static bool has_head(const struct relay *relay)
{
    static const char *const keys[RELAY_HEAD_FIELDS] = { "ts", "level", "prog", "event" };

    if (relay->count < RELAY_HEAD_FIELDS)
        return false;
    for (unsigned i = 0; i < RELAY_HEAD_FIELDS; i++) {
        if (strcmp(relay->fields[i].key, keys[i]) != 0 || !relay->fields[i].text)
            return false;
    }
    return true;
}

/* 2026-01-02T03:04:05.678Z, as log.c writes it. */
static bool is_time(const char *text)
{
    static const char shape[] = "0000-00-00T00:00:00.000Z";

    for (size_t i = 0; i < sizeof(shape); i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';

        if (shape[i] == '0' ? !digit : text[i] != shape[i])
            return false;
    }
    return true;
}

/* Not a number, that is. */
static bool is_event(const char *text)
{
    return text[0] >= 'a' && text[0] <= 'z' && is_key(text) &&
           strlen(text) <= RELAY_EVENT_MAX_BYTES;
}

static bool tell(const char *program, const struct relay *relay)
{
    const struct log_field *head = relay->fields;
    struct log_source source = { .time = head[0].text, .program = program };
    enum log_level level;

    if (!has_head(relay) || !is_time(source.time) ||
        log_level_parse(head[1].text, &level) < 0 || !is_event(head[3].text))
        return false;
    if (log_enabled(level))
        log_write_from(&source, level, head[3].text, head + RELAY_HEAD_FIELDS,
                       relay->count - RELAY_HEAD_FIELDS);
    return true;
}

/* A program's name stands without quotes. */
static bool is_name(const char *text)
{
    const char *at = text;

    while (*at > ' ' && *at < 0x7f && *at != '"' && *at != '\\' && *at != '=')
        at++;
    return at > text && *at == '\0';
}

bool log_relay(const char *program, const char *line, size_t size)
{
    /* No text is longer than it was in the line, and two NULs a pair are little beside it. */
    struct relay relay = { .texts.limit = 2 * size + 2 };
    bool told = false;

    if (size == 0 || !is_name(program) || buf_ensure(&relay.texts, relay.texts.limit) < 0)
        return false;
    if (line[0] == '{' ? read_object(&relay, line, size) : read_pairs(&relay, line, size))
        told = tell(program, &relay);
    buf_done(&relay.texts);
    return told;
}
