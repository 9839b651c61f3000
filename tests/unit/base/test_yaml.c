/* test_yaml.c - trees with lines, strict scalars, limits and refusals. */
#include "yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "buf.h"
#include "unit.h"

static struct yaml_node *parse(const char *text)
{
    struct yaml_node *root = NULL;
    char error[200] = "";

    ck_assert_msg(yaml_parse(text, strlen(text), &root, error, sizeof(error)) == 0, "%s",
                  error);
    ck_assert_ptr_nonnull(root);
    return root;
}

static void check_refused(const char *text, size_t size, int result, const char *error_part)
{
    struct yaml_node *root = NULL;
    char error[200] = "";

    ck_assert_int_eq(yaml_parse(text, size, &root, error, sizeof(error)), result);
    ck_assert_msg(strstr(error, error_part), "'%s' is not in '%s'", error_part, error);
    ck_assert_ptr_null(root);
}

START_TEST(test_tree)
{
    _cleanup_(yaml_freep)
    struct yaml_node *root = parse("# settings\n"
                                   "name: box\n"
                                   "list:\n"
                                   "  - 1\n"
                                   "  - [a, 'b']\n"
                                   "none:\n"
                                   "text: |\n"
                                   "  two\n"
                                   "  lines\n"
                                   "null: ~\n");
    const struct yaml_node *list = yaml_get(root, "list");

    ck_assert_int_eq(root->kind, YAML_MAP);
    ck_assert_uint_eq(root->count, 5);
    ck_assert_str_eq(yaml_get(root, "name")->text, "box");
    ck_assert_uint_eq(yaml_get(root, "name")->line, 2);
    ck_assert_uint_eq(list->count, 2);
    ck_assert_uint_eq(list->items[1]->items[1]->line, 5);
    ck_assert(list->items[1]->items[1]->quoted && !list->items[1]->items[0]->quoted);
    ck_assert_int_eq(yaml_get(root, "none")->kind, YAML_NULL);
    ck_assert_str_eq(yaml_get(root, "text")->text, "two\nlines\n");
    ck_assert_int_eq(yaml_get(root, "null")->kind, YAML_NULL);
    ck_assert_ptr_null(yaml_get(root, "absent"));
    ck_assert_ptr_null(yaml_get(list, "name"));
    ck_assert_ptr_null(yaml_get(NULL, "name"));
}
END_TEST

START_TEST(test_empty_documents)
{
    static const char *const texts[] = {
        "", "\n\n", "# only a comment\n", "---\n", "~", "null"
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        _cleanup_(yaml_freep)
        struct yaml_node *root = parse(texts[i]);

        ck_assert_int_eq(root->kind, YAML_NULL);
        ck_assert_uint_ge(root->line, 1);
    }
}
END_TEST

START_TEST(test_refusals)
{
    check_refused("a: 1\na: 2\n", 10, -EINVAL, "line 2: duplicate key a");
    check_refused("a: &x 1\n", 8, -EINVAL, "line 1: anchors");
    check_refused("a: 1\nb: *x\n", 11, -EINVAL, "line 2: ");
    check_refused("a: !!int 1\n", 11, -EINVAL, "line 1: tags");
    check_refused("a: !x [1]\n", 10, -EINVAL, "line 1: tags");
    check_refused("a: 1\n---\nb: 2\n", 14, -EINVAL, "more than one document");
    check_refused("? [a]\n: 1\n", 10, -EINVAL, "a key must be plain text");
    check_refused("a: \"x\\0y\"\n", 10, -EINVAL, "line 1: a NUL");
    check_refused("a: x\0y\n", 7, -EINVAL, "line 1: ");
    check_refused("? \n: 1\n", 7, -EINVAL, "an empty key");
    check_refused("a: [1\n", 6, -EINVAL, "line ");
    check_refused("a: 1\n  b: 2\n", 12, -EINVAL, "line 2: ");
    check_refused("\ta: 1\n", 6, -EINVAL, "line 1: ");
    check_refused("a: \xFF\n", 5, -EINVAL, "line 1: ");
    check_refused("a: \"never closed\n", 17, -EINVAL, "line ");
}
END_TEST

START_TEST(test_depth_limit)
{
    char text[200] = "";
    struct yaml_node *root;

    for (int i = 0; i < 32; i++)
        (void)strcat(text, "[");
    for (int i = 0; i < 32; i++)
        (void)strcat(text, "]");
    root = parse(text);
    yaml_free(root);
    memset(text, '[', 33);
    memset(text + 33, ']', 33);
    check_refused(text, 66, -E2BIG, "nested deeper than 32");
}
END_TEST

START_TEST(test_size_limits)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    struct yaml_node *root;

    ck_assert_int_eq(buf_append_text(&text, "["), 0);
    for (int i = 0; i < 65535; i++)
        ck_assert_int_eq(buf_append_text(&text, "1,"), 0);
    ck_assert_int_eq(buf_append_text(&text, "]"), 0);
    root = parse(buf_text(&text));
    ck_assert_uint_eq(root->count, 65535);
    yaml_free(root);
    text.data[text.size - 1] = '1';
    ck_assert_int_eq(buf_append_text(&text, "]"), 0);
    check_refused(buf_text(&text), text.size, -E2BIG, "more than 65536 nodes");
    buf_clear(&text);
    while (text.size <= 1024 * 1024)
        ck_assert_int_eq(buf_append_text(&text, "#####################################\n"), 0);
    check_refused(buf_text(&text), text.size, -E2BIG, "more than 1048576 bytes");
}
END_TEST

static struct yaml_node *scalar(const char *text)
{
    return parse(text);
}

START_TEST(test_bool)
{
    static const char *const others[] = { "yes", "True", "1", "'true'", "~", "[true]" };
    bool value = false;

    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        _cleanup_(yaml_freep)
        struct yaml_node *node = scalar(others[i]);

        ck_assert_msg(yaml_as_bool(node, &value) == -EINVAL, "%s", others[i]);
    }
    ck_assert_int_eq(yaml_as_bool(NULL, &value), -EINVAL);
    for (int expected = 0; expected < 2; expected++) {
        _cleanup_(yaml_freep)
        struct yaml_node *node = scalar(expected ? "true" : "false");

        ck_assert_int_eq(yaml_as_bool(node, &value), 0);
        ck_assert_int_eq(value, expected);
    }
}
END_TEST

START_TEST(test_u64)
{
    static const struct {
        const char *text;
        int result;
        uint64_t value;
    } rows[] = {
        { "0", 0, 0 },
        { "18446744073709551615", 0, UINT64_MAX },
        { "18446744073709551616", -ERANGE, 0 },
        { "99999999999999999999999", -ERANGE, 0 },
        { "-1", -ERANGE, 0 },
        { "007", -EINVAL, 0 },
        { "0x10", -EINVAL, 0 },
        { "1_000", -EINVAL, 0 },
        { "+1", -EINVAL, 0 },
        { "-", -EINVAL, 0 },
        { "1.0", -EINVAL, 0 },
        { "99999999999999999999999x", -EINVAL, 0 },
        { "'1'", -EINVAL, 0 },
        { "one", -EINVAL, 0 },
        { "~", -EINVAL, 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(yaml_freep)
        struct yaml_node *node = scalar(rows[i].text);
        uint64_t value = 77;

        ck_assert_msg(yaml_as_u64(node, &value) == rows[i].result, "%s", rows[i].text);
        ck_assert_uint_eq(value, rows[i].result == 0 ? rows[i].value : 77);
    }
}
END_TEST

START_TEST(test_load)
{
    struct yaml_node *root = NULL;
    char path[] = "/tmp/unit-yaml.XXXXXX";
    char error[200] = "";
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "a: b\n", 5), 5);
    closep(&fd);
    ck_assert_int_eq(yaml_load(path, &root, error, sizeof(error)), 0);
    ck_assert_str_eq(yaml_get(root, "a")->text, "b");
    yaml_free(root);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(yaml_load(path, &root, error, sizeof(error)), -ENOENT);
    ck_assert_str_eq(error, "No such file or directory");
    ck_assert_int_eq(yaml_load("/dev/zero", &root, error, sizeof(error)), -ENOTSUP);
    ck_assert_str_eq(error, "is no regular file");
    ck_assert_int_eq(mkfifo(path, 0600), 0); /* that nobody writes into: no waiting for one */
    ck_assert_int_eq(yaml_load(path, &root, error, sizeof(error)), -ENOTSUP);
    ck_assert_str_eq(error, "is no regular file");
    ck_assert_int_eq(unlink(path), 0);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, 1024 * 1024 + 1), 0);
    closep(&fd);
    ck_assert_int_eq(yaml_load(path, &root, error, sizeof(error)), -EFBIG);
    ck_assert_str_eq(error, "more than 1048576 bytes");
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

UNIT_MAIN("yaml", test_tree, test_empty_documents, test_refusals, test_depth_limit,
          test_size_limits, test_bool, test_u64, test_load)
