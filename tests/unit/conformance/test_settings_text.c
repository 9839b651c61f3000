/* test_settings_text.c - a file's settings go before those of the command line. */
#include <errno.h>

#include "settings_text.h"
#include "unit.h"

static const struct variables variables;

static void writes(const char *settings, const char *const *sets, size_t set_count,
                   const char *wanted)
{
    struct buf out = { 0 };
    char error[256];
    struct yaml_node *root = NULL;
    if (settings)
        ck_assert_msg(yaml_parse(settings, strlen(settings), &root, error, sizeof(error)) == 0,
                      "%s", error);
    const struct case_file file = { .settings = root };
    const struct settings_source source = { &file, sets, set_count, "python", &variables };
    ck_assert_int_eq(settings_text(&source, NULL, &out), 0);
    ck_assert_str_eq(buf_text(&out), wanted);
    yaml_free(root);
    buf_done(&out);
}

START_TEST(test_allowlist)
{
    writes(NULL, NULL, 0, "    image_allowlist: [python]\n");
    writes("image_allowlist: []", NULL, 0, "    image_allowlist: []\n");
}
END_TEST

START_TEST(test_sets)
{
    static const char *const sets[] = { "default_memory_mb=256", "max_cpus=4" };
    writes("max_cpus: 1", sets, 2,
           "    image_allowlist: [python]\n    default_memory_mb: 256\n    max_cpus: 1\n");
}
END_TEST

START_TEST(test_nested)
{
    writes("per_image_caps: { a: { max_cpus: 1 } }\ncustom_images: { x: \"rootfs:/a \\\"b\" }",
           NULL, 0,
           "    image_allowlist: [python]\n    per_image_caps: {a: {max_cpus: 1}}\n"
           "    custom_images: {x: \"rootfs:/a \\\"b\"}\n");
}
END_TEST

START_TEST(test_no_set)
{
    static const char *const sets[] = { "nonsense" };
    struct buf out = { 0 };
    const struct case_file file = { 0 };
    const struct settings_source source = { &file, sets, 1, "python", &variables };
    ck_assert_int_eq(settings_text(&source, NULL, &out), -EINVAL);
    buf_done(&out);
}
END_TEST

static struct yaml_node *parsed(const char *text)
{
    char error[256];
    struct yaml_node *root;
    ck_assert_msg(yaml_parse(text, strlen(text), &root, error, sizeof(error)) == 0, "%s",
                  error);
    return root;
}

START_TEST(test_changes)
{
    static const char *const sets[] = { "max_cpus=4", "max_disk_mb=64" };
    struct yaml_node *settings = parsed("max_cpus: 1\nauto_install: false");
    struct yaml_node *changes = parsed("auto_install: true\nmax_disk_mb: 128");
    const struct case_file file = { .settings = settings };
    const struct settings_source source = { &file, sets, 2, "python", &variables };
    struct buf out = { 0 };
    ck_assert_int_eq(settings_text(&source, changes, &out), 0);
    ck_assert_str_eq(buf_text(&out), "    image_allowlist: [python]\n    max_cpus: 1\n"
                                     "    auto_install: true\n    max_disk_mb: 128\n");
    yaml_free(settings);
    yaml_free(changes);
    buf_done(&out);
}
END_TEST

START_TEST(test_section)
{
    struct yaml_node *section = parsed("docs_base: \"https://x#\"");
    const struct case_file file = { .section = section };
    struct buf out = { 0 };
    ck_assert_int_eq(settings_section_text(&file, "  mock: {}", &out), 0);
    ck_assert_str_eq(buf_text(&out), "  mock: {}\n  docs_base: \"https://x#\"\n");
    yaml_free(section);
    buf_done(&out);
}
END_TEST

UNIT_MAIN("settings_text", test_allowlist, test_sets, test_nested, test_no_set, test_changes,
          test_section)
