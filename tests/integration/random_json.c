/* random_json.c - see random_json.h. */
#include "random_json.h"

#include <check.h>

#define DEPTH_MAX 5
#define MEMBERS_MAX 6
#define LONG_BYTES (1u << 20)

uint64_t random_json_next(struct random_json *random)
{
    random->state ^= random->state << 13; /* xorshift64 */
    random->state ^= random->state >> 7;
    random->state ^= random->state << 17;
    return random->state;
}

static unsigned below(struct random_json *random, unsigned limit)
{
    return (unsigned)(random_json_next(random) % limit);
}

static void put(struct buf *to, const char *text)
{
    ck_assert_int_eq(buf_append_text(to, text), 0);
}

static void put_space(struct random_json *random, struct buf *to)
{
    static const char *const spaces[] = { "", "", "", " ", "\t", "\r\n", "\n  " };

    put(to, spaces[below(random, ARRAY_SIZE(spaces))]);
}

static void put_number(struct random_json *random, struct buf *to)
{
    static const char *const odd[] = {
        "-0",
        "-0.0",
        "0e-0",
        "1E400",
        "-1e+400",
        "1e-400",
        "9007199254740993",
        "18446744073709551615",
        "-9223372036854775808",
        "18446744073709551616",
        "3.14159265358979323846264338327950288",
        "1.0",
        "1.50",
        "10E-1",
    };

    if (below(random, 2))
        put(to, odd[below(random, ARRAY_SIZE(odd))]);
    else
        ck_assert_int_eq(buf_printf(to, "%llu", (unsigned long long)random_json_next(random)),
                         0);
}

static void put_string(struct random_json *random, struct buf *to)
{
    static const char *const parts[] = {
        "a",       "key",  "\\/",       "/",   "\\u002f", "\\u0000",      "\\ud83d\\ude00",
        "😀",       "ä",    "\\u00e4",   "\\n", "\\\"",    "\\\\",         "</script>",
        "\\ud800", "\x7f", "e\xcc\x81", " ",   "\\u2028", "\xe2\x80\xa8",
    };
    unsigned count = below(random, 6);

    put(to, "\"");
    for (unsigned i = 0; i < count; i++)
        put(to, parts[below(random, ARRAY_SIZE(parts))]);
    put(to, "\"");
}

static void put_value(struct random_json *random, unsigned depth, struct buf *to);

static void put_array(struct random_json *random, unsigned depth, struct buf *to)
{
    unsigned count = below(random, MEMBERS_MAX);

    put(to, "[");
    put_space(random, to);
    for (unsigned i = 0; i < count; i++) {
        put(to, i ? "," : "");
        put_value(random, depth, to);
    }
    put(to, "]");
}

/* Few different keys, so that some come twice. */
static void put_members(struct random_json *random, unsigned depth, struct buf *to)
{
    static const char *const keys[] = { "\"a\"",          "\"\\u0061\"", "\"b\"",   "\"\"",
                                        "\"sandbox_id\"", "\"type\"",    "\"data\"" };
    unsigned count = below(random, MEMBERS_MAX);

    for (unsigned i = 0; i < count; i++) {
        put(to, i ? "," : "");
        put_space(random, to);
        put(to, keys[below(random, ARRAY_SIZE(keys))]);
        put_space(random, to);
        put(to, ":");
        put_value(random, depth, to);
    }
}

static void put_value(struct random_json *random, unsigned depth, struct buf *to)
{
    static const char *const words[] = { "null", "true", "false" };

    put_space(random, to);
    switch (below(random, depth < DEPTH_MAX ? 6 : 4)) {
    case 0:
        put(to, words[below(random, ARRAY_SIZE(words))]);
        break;
    case 1:
        put_number(random, to);
        break;
    case 2:
    case 3:
        put_string(random, to);
        break;
    case 4:
        put_array(random, depth + 1, to);
        break;
    default:
        put(to, "{");
        put_members(random, depth + 1, to);
        put(to, "}");
        break;
    }
    put_space(random, to);
}

static void put_long_string(struct random_json *random, struct buf *to)
{
    static const char *const parts[] = { "0123456789abcdef", "\\u00e4\\n", "ä😀" };
    size_t end = to->size + LONG_BYTES;

    put(to, "\"");
    while (to->size < end)
        put(to, parts[below(random, ARRAY_SIZE(parts))]);
    put(to, "\"");
}

void random_json_object(struct random_json *random, bool long_string, struct buf *to)
{
    put(to, "{");
    put_space(random, to);
    put(to, "\"z\":");
    put_value(random, 0, to);
    if (long_string) {
        put(to, ",\"long\" :");
        put_long_string(random, to);
    }
    put(to, ",\"a\":");
    put_value(random, 0, to);
    put(to, "}");
}
