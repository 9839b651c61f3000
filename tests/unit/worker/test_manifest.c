/* test_manifest.c - iii.worker.yaml (contract 12.2): what is read, and what is refused where.
 */
#include "manifest.h"
#include "unit.h"

#include <string.h>

static struct manifest parse(const char *text)
{
    struct sandbox_error err = { 0 };
    struct manifest manifest;

    ck_assert_msg(manifest_parse("/m", text, strlen(text), &manifest, &err) == 0, "%s: %s",
                  text, err.message);
    return manifest;
}

START_TEST(test_whole)
{
    struct manifest manifest = parse(
        "name: w\n"
        "runtime: {base_image: python, other: [1, 2]}\n"
        "resources: {cpus: 3, memory: 512}\n"
        "scripts:\n  setup: a b\n  install: ''\n  start: |\n    x\n    y\n"
        "env: {A: b, C_1: \"5\"}\n"
        "further: {keys: are ignored}\n");

    ck_assert_str_eq(manifest.name, "w");
    ck_assert_str_eq(manifest.base_image, "python");
    ck_assert_str_eq(manifest.setup, "a b");
    ck_assert_str_eq(manifest.install, "");
    ck_assert_str_eq(manifest.start, "x\ny\n");
    ck_assert_uint_eq(manifest.cpus, 3);
    ck_assert_uint_eq(manifest.memory_mb, 512);
    ck_assert_uint_eq(manifest.env.count, 2);
    ck_assert_str_eq(manifest.env.items[0], "A=b");
    ck_assert_str_eq(manifest.env.items[1], "C_1=5");
    manifest_done(&manifest);
}
END_TEST

START_TEST(test_defaults)
{
    struct manifest manifest = parse("name: w\nscripts:\nresources: ~\nenv:\n");

    ck_assert_uint_eq(manifest.cpus, 2);
    ck_assert_uint_eq(manifest.memory_mb, 2048);
    ck_assert_ptr_null(manifest.base_image);
    ck_assert_ptr_null(manifest.start);
    ck_assert_uint_eq(manifest.env.count, 0);
    manifest_done(&manifest);
}
END_TEST

static const struct {
    const char *text;
    const char *says; /* behind the path */
} bad[] = {
    { "", "line 1: expected a map" },
    { "- a\n", "line 1: expected a map" },
    { "scripts: {start: x}\n", "line 1: name: is required" },
    { "name: ~\n", "line 1: name: is required" },
    { "name: 5\n", "line 1: name: expected text, got a number or truth value" },
    { "name: true\n", "line 1: name: expected text" },
    { "name: ''\n", "line 1: name: expected text of 1 to 128 bytes, got 0" },
    { "name: w\nruntime: python\n", "line 2: runtime: expected a map, got text" },
    { "name: w\nruntime:\n  base_image: [a]\n", "line 3: runtime.base_image: expected text" },
    { "name: w\nresources:\n  cpus: 0\n", "line 3: resources.cpus: expected 1 to 4294967295" },
    { "name: w\nresources:\n  cpus: two\n", "line 3: resources.cpus: expected a number" },
    { "name: w\nresources:\n  cpus: '2'\n", "line 3: resources.cpus: expected a number" },
    { "name: w\nresources:\n  memory: 127\n", "line 3: resources.memory: expected 128 to" },
    { "name: w\nresources:\n  memory: 4294967296\n", "line 3: resources.memory: expected" },
    { "name: w\nresources:\n  memory: -1\n", "line 3: resources.memory: expected" },
    { "name: w\nscripts:\n  start: ''\n", "line 3: scripts.start: expected text of 1 to" },
    { "name: w\nscripts:\n  setup: {a: b}\n",
      "line 3: scripts.setup: expected text, got a map" },
    { "name: w\nenv: [A=b]\n", "line 2: env: expected a map, got a list" },
    { "name: w\nenv:\n  A: 5\n", "line 3: env.A: expected text" },
    { "name: w\nenv:\n  1A: x\n", "line 3: env.1A: names must match" },
    { "name: w\nenv:\n  III_URL: x\n", "line 3: env.III_URL: this name is set by the adapter" },
    { "name: w\nenv:\n  III_ENGINE_URL: x\n", "line 3: env.III_ENGINE_URL" },
    { "name: w\nenv:\n  III_WORKER_NAME: x\n", "line 3: env.III_WORKER_NAME" },
    { "name: w\nname: x\n", "line 2" },
    { "name: &a w\nenv: {A: *a}\n", "line" },
    { "name: \"a\\0b\"\n", "line 1" },
    { "name: {\n", "line" },
};

START_TEST(test_refused)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct sandbox_error err = { 0 };
        struct manifest manifest;

        ck_assert_int_eq(
            manifest_parse("/m", bad[i].text, strlen(bad[i].text), &manifest, &err), -1);
        ck_assert_int_eq(err.code, S501);
        ck_assert_msg(strncmp(err.message, "/m: ", 4) == 0 && strstr(err.message, bad[i].says),
                      "%s: %s", bad[i].text, err.message);
        ck_assert_ptr_null(manifest.name);
    }
}
END_TEST

START_TEST(test_reserved)
{
    ck_assert(manifest_name_reserved("III_URL=x", 7));
    ck_assert(!manifest_name_reserved("III_URLS", 8));
    ck_assert(!manifest_name_reserved("III_UR", 6));
}
END_TEST

UNIT_MAIN("manifest", test_whole, test_defaults, test_refused, test_reserved)
