/* options.c - see options.h. */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "suggest.h"
#include "utf8.h"

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

const struct option_row *options_row(const struct option_table *table, size_t i)
{
    for (; table && i >= table->count; table = table->more)
        i -= table->count;
    return table ? &table->rows[i] : NULL;
}

/* Values. */

/* Digits alone, at most 64 bits; *ret_end is behind them. */
static bool read_digits(const char *text, uint64_t *ret_value, const char **ret_end)
{
    uint64_t value = 0;
    const char *at = text;

    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (unsigned)(*at - '0'), &value))
            return false;
    }
    *ret_value = value;
    *ret_end = at;
    return at > text;
}

static bool read_number(const char *text, uint64_t *ret_value)
{
    const char *end;

    return read_digits(text, ret_value, &end) && *end == '\0';
}

static bool read_duration(const char *text, uint64_t *ret_ms)
{
    static const struct {
        const char *suffix;
        uint64_t ms;
    } units[] = { { "", 1000 }, { "ms", 1 }, { "s", 1000 }, { "m", 60000 } };
    const char *end;
    uint64_t value;

    if (!read_digits(text, &value, &end))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (strcmp(end, units[i].suffix) == 0)
            return !__builtin_mul_overflow(value, units[i].ms, ret_ms);
    }
    return false;
}

static int store_number(const struct option_row *row, const char *text, void *place,
                        struct buf *ret_error)
{
    struct option_number *number = place;
    uint64_t value = 0;

    if (row->kind == OPTION_DURATION && !read_duration(text, &value))
        return complain(ret_error, "--%s %s: wants a duration such as 500ms, 30s or 5m",
                        row->name, text);
    if (row->kind == OPTION_NUMBER && !read_number(text, &value))
        return complain(ret_error, "--%s %s: wants a whole number", row->name, text);
    if (value < row->min || value > row->max)
        return complain(ret_error, "--%s %s: wants %llu to %llu", row->name, text,
                        (unsigned long long)row->min, (unsigned long long)row->max);
    *number = (struct option_number){ .given = true, .value = value };
    return 0;
}

static int store_text(const struct option_row *row, char *text, void *place,
                      struct buf *ret_error)
{
    struct option_texts *texts = place;

    if (!row->any_bytes && !utf8_valid(text, strlen(text)))
        return complain(ret_error, "--%s %s: is not UTF-8", row->name, text);
    if (strlen(text) < row->min)
        return complain(ret_error, "--%s: wants a text that is not empty", row->name);
    if (row->kind == OPTION_TEXT) {
        *(const char **)place = text;
        return 0;
    }
    if (strchr(text, '=') == NULL || text[0] == '=')
        return complain(ret_error, "--%s %s: wants NAME=VALUE", row->name, text);
    if (texts->count == OPTION_TEXTS_MAX)
        return complain(ret_error, "--%s: given more than %d times", row->name,
                        OPTION_TEXTS_MAX);
    texts->items[texts->count++] = text;
    return 0;
}

static int store(const struct option_row *row, char *text, void *values, struct buf *ret_error)
{
    void *place = (char *)values + row->offset;

    if (row->kind == OPTION_TEXT || row->kind == OPTION_PAIRS)
        return store_text(row, text, place, ret_error);
    return store_number(row, text, place, ret_error);
}

/* Names. */

static const struct option_row *find_row(const struct option_table *table, const char *word,
                                         size_t name_size)
{
    const struct option_row *row;

    for (size_t i = 0; (row = options_row(table, i)); i++) {
        bool is_letter = word[1] != '-' && row->letter && word[1] == row->letter;

        if (is_letter && name_size == 2)
            return row;
        if (word[1] == '-' && strlen(row->name) == name_size - 2 &&
            memcmp(word + 2, row->name, name_size - 2) == 0)
            return row;
    }
    return NULL;
}

static int complain_unknown(const struct option_table *table, const char *word,
                            size_t name_size, struct buf *ret_error)
{
    const struct option_row *row;
    struct suggest suggest;
    int result = complain(ret_error, "unknown option %.*s", (int)name_size, word);

    suggest_init(&suggest, word + 2, name_size > 2 ? name_size - 2 : 0);
    for (size_t i = 0; (row = options_row(table, i)); i++)
        suggest_offer(&suggest, row->name);
    if (suggest.best && buf_printf(ret_error, "; did you mean --%s?", suggest.best) < 0)
        return -ENOMEM;
    return result;
}

/* One option at argv[*index], which moves to its last word. */
static int parse_option(const struct option_table *table, int argc, char **argv, int *index,
                        void *values, struct buf *ret_error)
{
    char *word = argv[*index];
    char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    size_t name_size = equals ? (size_t)(equals - word) : strlen(word);
    const struct option_row *row = find_row(table, word, name_size);

    if (!row)
        return complain_unknown(table, word, name_size, ret_error);
    if (row->kind == OPTION_FLAG && equals)
        return complain(ret_error, "--%s takes no value", row->name);
    if (row->kind == OPTION_FLAG) {
        *(bool *)((char *)values + row->offset) = true;
        return 0;
    }
    if (!equals && *index + 1 >= argc)
        return complain(ret_error, "--%s wants a value: %s", row->name, row->value);
    return store(row, equals ? equals + 1 : argv[++*index], values, ret_error);
}

int options_parse(const struct option_table *table, int argc, char **argv, void *values,
                  struct option_rest *ret_rest, struct buf *ret_error)
{
    struct option_rest rest = { .words = argv };

    for (int i = 0; i < argc; i++) {
        int result = 0;

        if (strcmp(argv[i], "--") == 0) {
            rest.has_command = true;
            rest.command = argv + i + 1;
            rest.command_count = (size_t)(argc - i - 1);
            break;
        }
        if (argv[i][0] == '-' && argv[i][1] != '\0')
            result = parse_option(table, argc, argv, &i, values, ret_error);
        else
            argv[rest.word_count++] = argv[i];
        if (result < 0)
            return result;
    }
    *ret_rest = rest;
    return 0;
}

int options_describe(const struct option_table *table, struct buf *to)
{
    const struct option_row *row;
    int result = 0;

    for (size_t i = 0; result == 0 && (row = options_row(table, i)); i++) {
        char name[64], letter[8] = "    ";

        if (row->letter)
            (void)snprintf(letter, sizeof(letter), "-%c, ", row->letter);
        (void)snprintf(name, sizeof(name), "--%s%s%s", row->name, row->value ? " " : "",
                       row->value ? row->value : "");
        result = buf_printf(to, "  %s%-22s %s\n", letter, name, row->text);
    }
    return result;
}
