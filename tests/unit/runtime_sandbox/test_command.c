/* test_command.c - command shapes and the splitting of a command line (contract 5.2.3). */
#include "command.h"

#include <string.h>

#include "codec.h"
#include "unit.h"

/* Words joined by |. */
static void expect_words(const char *line, const char *wanted)
{
    struct text_list words = { 0 };
    struct sandbox_error err = { 0 };
    char joined[256] = "";

    ck_assert_msg(command_split(line, &words, &err) == 0, "%s: %s", line, err.message);
    for (size_t i = 0; i < words.count; i++) {
        if (i > 0)
            strcat(joined, "|");
        strcat(joined, words.items[i]);
    }
    ck_assert_msg(strcmp(joined, wanted) == 0, "%s: %s, not %s", line, joined, wanted);
    text_list_done(&words);
}

static void expect_split_error(const char *line, const char *part)
{
    struct text_list words = { 0 };
    struct sandbox_error err = { 0 };

    ck_assert_int_eq(command_split(line, &words, &err), -1);
    ck_assert_int_eq(err.code, S001);
    ck_assert_msg(strstr(err.message, part) != NULL, "%s: %s", line, err.message);
    text_list_done(&words);
}

START_TEST(test_separators)
{
    expect_words("a b\tc\nd", "a|b|c|d");
    expect_words("  a   b  ", "a|b");
    expect_words("", "");
    expect_words(" \t\n", "");
    expect_words("a\u00a0b c", "a\u00a0b|c");
    expect_words("a\rb\vc", "a\rb\vc");
}
END_TEST

START_TEST(test_quotes)
{
    expect_words("'a b' c", "a b|c");
    expect_words("'a\\b$`\"' c", "a\\b$`\"|c");
    expect_words("\"a b\"'c d'e", "a bc de");
    expect_words("\"\\$\\`\\\"\\\\\\x\"", "$`\"\\\\x");
    expect_words("\"a\\\nb\"", "ab");
    expect_words("x '' \"\" y", "x|||y");
    expect_words("'a\nb'", "a\nb");
}
END_TEST

START_TEST(test_escapes)
{
    expect_words("a\\ b", "a b");
    expect_words("\\a\\\"\\'", "a\"'");
    expect_words("a\\\nb", "ab");
    expect_words("a \\\n b", "a|b");
    expect_words("\\#a", "#a");
}
END_TEST

START_TEST(test_comments)
{
    expect_words("a # b c\nd", "a|d");
    expect_words("a#b #c", "a#b");
    expect_words("'' #x", "");
    expect_words("''#x", "#x");
    expect_words("#all", "");
    expect_words("a \\\n#b", "a");
}
END_TEST

START_TEST(test_no_shell)
{
    expect_words("echo $HOME *.c | cat > x && y; z", "echo|$HOME|*.c|||cat|>|x|&&|y;|z");
}
END_TEST

START_TEST(test_unbalanced)
{
    expect_split_error("a 'b", "unbalanced");
    expect_split_error("a \"b", "unbalanced");
    expect_split_error("a \"b\\\"", "unbalanced");
    expect_split_error("a \"b\\", "unbalanced");
    expect_split_error("a \\", "lone");
}
END_TEST

static char *texts(struct text_list *list, const char *a, const char *b)
{
    if (a)
        ck_assert_int_eq(text_list_append(list, a), 0);
    if (b)
        ck_assert_int_eq(text_list_append(list, b), 0);
    return list->count > 0 ? list->items[0] : NULL;
}

struct shape {
    const char *cmd, *args[2], *argv[2];
    const char *words; /* NULL: S001 with ERROR */
    const char *error;
};

static const struct shape shapes[] = {
    { "ls", { NULL }, { NULL }, "ls", NULL },
    { "ls", { "-l a", "" }, { NULL }, "ls|-l a|", NULL },
    { "ls -l", { NULL }, { NULL }, "ls|-l", NULL },
    { "", { NULL }, { "a b", "c" }, "a b|c", NULL },
    { "'ls'", { NULL }, { NULL }, "'ls'", NULL },
    { "a\u2003b c", { NULL }, { NULL }, "a\u2003b|c", NULL },
    { "a\u2003b", { NULL }, { NULL }, "a\u2003b", NULL },
    { "a\u2003b", { "x" }, { NULL }, NULL, "ambiguous" },
    { "ls -l", { "x" }, { NULL }, NULL, "ambiguous" },
    { "ls", { NULL }, { "x" }, NULL, "argv" },
    { "", { "y" }, { "x" }, NULL, "argv" },
    { "", { NULL }, { NULL }, NULL, "cmd" },
    { "", { "x" }, { NULL }, NULL, "cmd" },
    { " ", { NULL }, { NULL }, NULL, "no word" },
    { "# x", { NULL }, { NULL }, NULL, "no word" },
    { "'' x", { NULL }, { NULL }, NULL, "empty" },
    { "", { NULL }, { "", "x" }, NULL, "argv" },
    { "a 'b", { NULL }, { NULL }, NULL, "unbalanced" },
};

static void join(const struct text_list *list, char joined[256])
{
    joined[0] = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            strcat(joined, "|");
        strcat(joined, list->items[i]);
    }
}

START_TEST(test_shapes)
{
    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
        const struct shape *shape = &shapes[i];
        struct exec_request request = { .cmd = (char *)shape->cmd };
        struct text_list argv = { 0 };
        struct sandbox_error err = { 0 };
        char joined[256];
        int result;

        (void)texts(&request.args, shape->args[0], shape->args[1]);
        (void)texts(&request.argv, shape->argv[0], shape->argv[1]);
        result = command_read(&request, &argv, &err);
        ck_assert_msg((result == 0) == (shape->words != NULL), "shape %zu: %s", i, err.message);
        join(&argv, joined);
        if (shape->words)
            ck_assert_str_eq(joined, shape->words);
        else
            ck_assert_msg(err.code == S001 && strstr(err.message, shape->error),
                          "shape %zu: %s", i, err.message);
        text_list_done(&request.args);
        text_list_done(&request.argv);
        text_list_done(&argv);
    }
}
END_TEST

UNIT_MAIN("command", test_separators, test_quotes, test_escapes, test_comments, test_no_shell,
          test_unbalanced, test_shapes)
