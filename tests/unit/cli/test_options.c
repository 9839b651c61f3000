/* Options anywhere, their values, what is wrong with them, and what was meant instead. */
#include <errno.h>

#include "options.h"
#include "suggest.h"
#include "unit.h"

struct values {
    bool flag;
    const char *text;
    struct option_number number;
    struct option_number duration;
    struct option_texts texts;
};

static const struct option_row rows[] = {
    { .name = "flag",
      .letter = 'f',
      .kind = OPTION_FLAG,
      .offset = offsetof(struct values, flag),
      .text = "a flag" },
    { .name = "text",
      .letter = 't',
      .kind = OPTION_TEXT,
      .offset = offsetof(struct values, text),
      .value = "TEXT",
      .text = "a text" },
    { .name = "number",
      .kind = OPTION_NUMBER,
      .offset = offsetof(struct values, number),
      .value = "N",
      .text = "a number",
      .min = 1,
      .max = 100 },
    { .name = "duration",
      .kind = OPTION_DURATION,
      .offset = offsetof(struct values, duration),
      .value = "D",
      .text = "a duration",
      .max = UINT32_MAX },
    { .name = "many",
      .letter = 'e',
      .kind = OPTION_PAIRS,
      .offset = offsetof(struct values, texts),
      .value = "X",
      .text = "many" },
};
static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

#define ARGS_MAX 12

static int parse(const char *const *words, struct values *values, struct option_rest *rest,
                 struct buf *error)
{
    static char *argv[ARGS_MAX];
    int argc = 0;

    for (; words[argc]; argc++)
        argv[argc] = (char *)(uintptr_t)words[argc];
    return options_parse(&table, argc, argv, values, rest, error);
}

START_TEST(options_stand_anywhere)
{
    static const char *const words[] = { "a",        "--flag", "--text=x=y", "b",
                                         "--number", "7",      "--many",     "A=1",
                                         "-e",       "B=2=3",  "-",          NULL };
    struct values values = { 0 };
    struct option_rest rest;
    struct buf error = { 0 };

    ck_assert_int_eq(parse(words, &values, &rest, &error), 0);
    ck_assert(values.flag);
    ck_assert_str_eq(values.text, "x=y");
    ck_assert(values.number.given);
    ck_assert_uint_eq(values.number.value, 7);
    ck_assert_uint_eq(values.texts.count, 2);
    ck_assert_str_eq(values.texts.items[1], "B=2=3");
    ck_assert_uint_eq(rest.word_count, 3);
    ck_assert_str_eq(rest.words[0], "a");
    ck_assert_str_eq(rest.words[1], "b");
    ck_assert_str_eq(rest.words[2], "-");
    ck_assert(!rest.has_command);
}
END_TEST

START_TEST(two_dashes_end_them)
{
    static const char *const words[] = { "id", "-f", "--", "cmd", "--text", "--", NULL };
    struct values values = { 0 };
    struct option_rest rest;
    struct buf error = { 0 };

    ck_assert_int_eq(parse(words, &values, &rest, &error), 0);
    ck_assert_uint_eq(rest.word_count, 1);
    ck_assert(rest.has_command);
    ck_assert_uint_eq(rest.command_count, 3);
    ck_assert_str_eq(rest.command[1], "--text");
}
END_TEST

START_TEST(a_value_may_begin_with_a_dash)
{
    static const char *const words[] = { "--text", "--flag", NULL };
    struct values values = { 0 };
    struct option_rest rest;
    struct buf error = { 0 };

    ck_assert_int_eq(parse(words, &values, &rest, &error), 0);
    ck_assert_str_eq(values.text, "--flag");
    ck_assert(!values.flag);
}
END_TEST

static const struct {
    const char *text;
    uint64_t ms;
} durations_cases[] = {
    { "500ms", 500 }, { "30s", 30000 }, { "5m", 300000 }, { "7", 7000 }, { "0", 0 }
};

START_TEST(durations)
{
    const char *words[] = { "--duration", durations_cases[_i].text, NULL };
    struct values values = { 0 };
    struct option_rest rest;
    struct buf error = { 0 };

    ck_assert_int_eq(parse(words, &values, &rest, &error), 0);
    ck_assert_uint_eq(values.duration.value, durations_cases[_i].ms);
}
END_TEST

static const struct {
    const char *words[3];
    const char *error;
} complaints_cases[] = {
    { { "--flga" }, "--flga; did you mean --flag?" },
    { { "--nothing-like-it" }, "unknown option --nothing-like-it" },
    { { "-x" }, "unknown option -x" },
    { { "-tx" }, "unknown option -tx" },
    { { "--flag=1" }, "takes no value" },
    { { "--text" }, "wants a value: TEXT" },
    { { "--number", "0" }, "wants 1 to 100" },
    { { "--number", "101" }, "wants 1 to 100" },
    { { "--number", "7x" }, "whole number" },
    { { "--number", "-7" }, "whole number" },
    { { "--number", "99999999999999999999" }, "whole number" },
    { { "--number=" }, "whole number" },
    { { "--duration", "5h" }, "duration" },
    { { "--duration", "1.5s" }, "duration" },
    { { "--duration", "ms" }, "duration" },
    { { "--duration", "4294968s" }, "wants 0 to" },
    { { "-e", "A" }, "--many A: wants NAME=VALUE" },
    { { "-e", "=1" }, "--many =1: wants NAME=VALUE" },
    { { "--text", "\xff" }, "--text \xff: is not UTF-8" },
    { { "-e", "A=\xff" }, "--many A=\xff: is not UTF-8" },
};

START_TEST(complaints)
{
    struct values values = { 0 };
    struct option_rest rest;
    struct buf error = { 0 };

    ck_assert_int_eq(parse(complaints_cases[_i].words, &values, &rest, &error), -EINVAL);
    ck_assert_msg(strstr(buf_text(&error), complaints_cases[_i].error) != NULL, "%s",
                  buf_text(&error));
    buf_done(&error);
}
END_TEST

START_TEST(an_option_repeated_without_end)
{
    static char *argv[2 * OPTION_TEXTS_MAX + 2];
    struct values values = { 0 };
    struct option_rest rest;
    struct buf error = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(argv); i += 2) {
        argv[i] = (char *)(uintptr_t) "-e";
        argv[i + 1] = (char *)(uintptr_t) "x=";
    }
    ck_assert_int_eq(options_parse(&table, ARRAY_SIZE(argv), argv, &values, &rest, &error),
                     -EINVAL);
    buf_done(&error);
}
END_TEST

static const struct {
    const char *word;
    const char *best;
} suggestions_cases[] = {
    { "trigger", "trigger" },
    { "triger", "trigger" },
    { "tirgger", "trigger" },
    { "sandbx", "sandbox" },
    { "completely", NULL },
    { "", NULL },
    { "x", NULL },
    { "sandbox1", "sandbox" },
};

START_TEST(suggestions)
{
    struct suggest suggest;

    suggest_init(&suggest, suggestions_cases[_i].word, strlen(suggestions_cases[_i].word));
    suggest_offer(&suggest, "sandbox");
    suggest_offer(&suggest, "trigger");
    if (suggestions_cases[_i].best)
        ck_assert_str_eq(suggest.best, suggestions_cases[_i].best);
    else
        ck_assert_ptr_null(suggest.best);
}
END_TEST

UNIT_MAIN_ROWS("options", UNIT_TEST(options_stand_anywhere), UNIT_TEST(two_dashes_end_them),
               UNIT_TEST(a_value_may_begin_with_a_dash), UNIT_ROWS(durations, durations_cases),
               UNIT_ROWS(complaints, complaints_cases),
               UNIT_TEST(an_option_repeated_without_end),
               UNIT_ROWS(suggestions, suggestions_cases))
