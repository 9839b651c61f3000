/* test_settings.c - the settings file: what it may say, and what is said of a wrong one. */
#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "unit.h"

static char directory[] = "/tmp/settings-XXXXXX";
static char file[64];

static int load_text(const char *text, struct settings **ret_settings,
                     char error[SETTINGS_ERROR_MAX])
{
    FILE *stream = fopen(file, "w");
    int result;

    ck_assert_ptr_nonnull(stream);
    ck_assert(fputs(text, stream) >= 0);
    ck_assert_int_eq(fclose(stream), 0);
    error[0] = 0;
    result = settings_load(file, ret_settings, error);
    return result;
}

static struct settings *load(const char *text)
{
    struct settings *settings = NULL;
    char error[SETTINGS_ERROR_MAX];

    ck_assert_msg(load_text(text, &settings, error) == 0, "%s", error);
    return settings;
}

/* ERROR is what stands behind the file's name. */
static void check_refused(const char *text, const char *expected)
{
    struct settings *settings = NULL;
    char error[SETTINGS_ERROR_MAX];

    ck_assert_msg(load_text(text, &settings, error) < 0, "accepted: %s", text);
    ck_assert_msg(strncmp(error, file, strlen(file)) == 0 && error[strlen(file)] == ':', "%s",
                  error);
    ck_assert_str_eq(error + strlen(file) + 1, expected);
}

/* At a start nothing is the defaults; later it is a file that is being saved. */
START_TEST(test_reload_of_nothing)
{
    static const char *const nothing[] = { "", " \n\n", "# a comment\n", "---\n", "null\n" };
    static const char *const something[] = { "{}\n", "other: 1\n", "sandbox:\n" };
    struct settings *settings = NULL;
    char error[SETTINGS_ERROR_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(nothing); i++) {
        settings_free(load(nothing[i]));
        ck_assert_int_eq(settings_reload(file, &settings, error), -ENODATA);
        ck_assert_ptr_null(settings);
        ck_assert_ptr_nonnull(strstr(error, ": holds no settings"));
    }
    for (size_t i = 0; i < ARRAY_SIZE(something); i++) {
        settings_free(load(something[i]));
        ck_assert_int_eq(settings_reload(file, &settings, error), 0);
        settings_free(take_ptr(settings));
    }
    settings_free(load("sandbox: {adapter: a}\n"));
    ck_assert_int_eq(settings_reload("/no/such/file", &settings, error), -ENOENT);
}
END_TEST

START_TEST(test_defaults)
{
    static const char *const silent[] = {
        "", "{}", "other: [1, 2]\n", "sandbox:\n", "engine:\n", "workers:\n  other: {}\n"
    };

    for (size_t i = 0; i < ARRAY_SIZE(silent); i++) {
        struct settings *settings = load(silent[i]);

        ck_assert_ptr_null(settings->router.adapter);
        ck_assert(settings->router.managed);
        ck_assert_uint_eq(settings->router.max_message_bytes, 16777216);
        ck_assert_uint_eq(settings->router.listen.count, 2);
        ck_assert_str_eq(settings->router.listen.items[1], "[::1]:49134");
        ck_assert_str_eq(settings->router.docs_base,
                         "https://iii.dev/docs/creating-workers/sandboxes#");
        ck_assert(settings->adapter.auto_install);
        ck_assert_uint_eq(settings->adapter.image_allowlist.count, 0);
        ck_assert_uint_eq(settings->adapter.default_memory_mb, 512);
        ck_assert_uint_eq(settings->adapter.default_idle_timeout_secs, 300);
        ck_assert_uint_eq(settings->adapter.max_output_bytes, 1048576);
        ck_assert_str_eq(settings->adapter.worker_engine_url, "ws://127.0.0.1:49134");
        ck_assert_ptr_null(settings->qemu);
        settings_free(settings);
    }
}
END_TEST

START_TEST(test_adapter_name)
{
    static const struct {
        const char *text;
        const char *adapter;
    } rows[] = {
        { "workers:\n  iii-sandbox:\n", "sandbox-qemu" },
        { "workers: {iii-sandbox: {auto_install: false}}\n", "sandbox-qemu" },
        { "engine: {workers: {iii-sandbox: }}\n", "sandbox-qemu" },
        { "sandbox: {adapter: sandbox-mock}\nworkers: {iii-sandbox: }\n", "sandbox-mock" },
        { "engine:\n  sandbox: {adapter: x}\n", "x" },
        { "sandbox: {settings: {}}\n", NULL },
        { "{\"sandbox\": {\"adapter\": \"json\"}}", "json" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct settings *settings = load(rows[i].text);

        if (rows[i].adapter)
            ck_assert_str_eq(settings->router.adapter, rows[i].adapter);
        else
            ck_assert_ptr_null(settings->router.adapter);
        settings_free(settings);
    }
}
END_TEST

START_TEST(test_values)
{
    struct settings *settings = load("engine:\n"
                                     "  sandbox:\n"
                                     "    managed: false\n"
                                     "    command: [prog, \"5\"]\n"
                                     "    listen: []\n"
                                     "    adapter_listen: tls+tcp://0.0.0.0:4000\n"
                                     "    tls: {cert: /c, key: /k, ca: /a}\n"
                                     "    qemu: {anything: 1}\n"
                                     "    settings:\n"
                                     "      image_allowlist: [python, tools]\n"
                                     "      custom_images: {tools: rootfs:/t, abc: oci:/x}\n"
                                     "      preset_sources: {node: debian:nodejs}\n"
                                     "      insecure_registries: [\"localhost:5000\", host]\n"
                                     "      per_image_caps:\n"
                                     "        python: {max_cpus: 2}\n"
                                     "        node:\n"
                                     "      default_idle_timeout_secs: 18446744073709551615\n"
                                     "      cache_dir: /c\n"
                                     "      allowed_roots: [/, /tmp]\n");

    ck_assert(!settings->router.managed);
    ck_assert_uint_eq(settings->router.command.count, 2);
    ck_assert_str_eq(settings->router.command.items[1], "5");
    ck_assert_uint_eq(settings->router.listen.count, 0);
    ck_assert_str_eq(settings->router.tls.key, "/k");
    ck_assert_ptr_nonnull(settings->qemu);
    ck_assert_ptr_null(settings->mock);
    ck_assert_uint_eq(settings->adapter.custom_images.count, 2);
    ck_assert_str_eq(settings->adapter.custom_images.items[0].key, "abc");
    ck_assert_str_eq(settings->adapter.custom_images.items[1].value, "rootfs:/t");
    ck_assert_uint_eq(settings->adapter.per_image_caps.count, 2);
    ck_assert_str_eq(settings->adapter.per_image_caps.items[0].name, "node");
    ck_assert_uint_eq(settings->adapter.per_image_caps.items[0].max_cpus, 0);
    ck_assert_uint_eq(settings->adapter.per_image_caps.items[1].max_cpus, 2);
    ck_assert_uint_eq(settings->adapter.per_image_caps.items[1].max_memory_mb, 0);
    ck_assert_uint_eq(settings->adapter.default_idle_timeout_secs, UINT64_MAX);
    ck_assert_str_eq(settings->adapter.cache_dir, "/c");
    ck_assert_uint_eq(settings->adapter.allowed_roots.count, 2);
    settings_free(settings);
}
END_TEST

/* What a file may not say, and what is said of it; NULL: in the words of base/yaml.c. */
static const struct {
    const char *text;
    const char *error;
} refusals[] = {
    { "[1]", "1: expected a map, got a list" },
    { "sandbox: 5", "1: sandbox: expected a map, got 5" },
    { "sandbox:\n  adaptor: x\n", "2: sandbox.adaptor: unknown key, did you mean adapter?" },
    { "sandbox:\n  zzzzzz: x\n", "2: sandbox.zzzzzz: unknown key" },
    { "sandbox:\n  qemo: {}\n", "2: sandbox.qemo: unknown key, did you mean qemu?" },
    { "sandbox:\n  adapter: x\n  auto_install: true\n",
      "3: sandbox.auto_install: is a setting of the adapter: move it to sandbox.settings" },
    { "sandbox: {settings: }\nworkers: {iii-sandbox: }\n",
      "1: sandbox.settings: workers.iii-sandbox is there too: keep one of them" },
    { "sandbox: {adapter: a}\nengine: {workers: {iii-sandbox: }}\n",
      "1: sandbox: stands at the top while engine holds settings too: keep one place" },
    { "sandbox: {adapter: \"\"}",
      "1: sandbox.adapter: expected a name without colons and white space, got \"\"" },
    { "sandbox: {adapter: \"a::b\"}",
      "1: sandbox.adapter: expected a name without colons and white space, got \"a::b\"" },
    { "sandbox: {adapter: true}", "1: sandbox.adapter: expected text, got true" },
    { "sandbox: {adapter: [a]}", "1: sandbox.adapter: expected text, got a list" },
    { "sandbox: {managed: \"true\"}",
      "1: sandbox.managed: expected true or false, got \"true\"" },
    { "sandbox: {managed: yes}", "1: sandbox.managed: expected true or false, got yes" },
    { "sandbox: {command: prog}", "1: sandbox.command: expected a list, got prog" },
    { "sandbox: {command: [\"\"]}",
      "1: sandbox.command: expected a program as the first text, got \"\"" },
    { "sandbox: {listen: [localhost]}",
      "1: sandbox.listen: expected HOST:PORT, got localhost" },
    { "sandbox: {listen: [\"a:65536\"]}",
      "1: sandbox.listen: expected HOST:PORT, got a:65536" },
    { "sandbox: {listen: [\"[::1:80\"]}",
      "1: sandbox.listen: expected HOST:PORT, got [::1:80" },
    { "sandbox: {runtime_dir: run}",
      "1: sandbox.runtime_dir: expected an absolute path, got run" },
    { "sandbox: {docs_base: \"https://x\"}",
      "1: sandbox.docs_base: expected text that ends in #, got https://x" },
    { "sandbox: {adapter_listen: \"tcp://a:1\"}",
      "1: sandbox.adapter_listen: expected tls+tcp://HOST:PORT, got tcp://a:1" },
    { "sandbox: {adapter_listen: \"tls+tcp://a:1\"}",
      "1: sandbox.tls: is needed with adapter_listen: {cert, key, ca}" },
    { "sandbox: {tls: {cert: /c, key: /k}}",
      "1: sandbox.tls: expected all of cert, key and ca" },
    { "sandbox: {max_message_bytes: 1}", "1: sandbox.max_message_bytes: expected an integer "
                                         "from 16777216 to 268435456, got 1" },
    { "engine:\n  workers:\n    iii-sandbox:\n      default_memory_mb: 127\n",
      "4: engine.workers.iii-sandbox.default_memory_mb: expected an integer from 128 to "
      "4294967295, got 127" },
    { "workers: {iii-sandbox: {max_cpus: 4294967296}}",
      "1: workers.iii-sandbox.max_cpus: expected an integer from 0 to 4294967295, got "
      "4294967296" },
    { "workers: {iii-sandbox: {max_cpus: -1}}", NULL },
    { "workers: {iii-sandbox: {max_cpus: 1.5}}",
      "1: workers.iii-sandbox.max_cpus: expected an integer, got 1.5" },
    { "workers: {iii-sandbox: {max_cpus: \"1\"}}",
      "1: workers.iii-sandbox.max_cpus: expected an integer, got \"1\"" },
    { "workers:\n  iii-sandbox:\n    custom_images:\n      a: rootfs:/a\n      python: x\n",
      "5: workers.iii-sandbox.custom_images.python: is a preset: give its source in "
      "preset_sources" },
    { "workers: {iii-sandbox: {custom_images: {\"\": x}}}", NULL },
    { "workers: {iii-sandbox: {custom_images: {a: \"\"}}}",
      "1: workers.iii-sandbox.custom_images.a: expected text that is not empty, got \"\"" },
    { "workers: {iii-sandbox: {preset_sources: {ruby: x}}}",
      "1: workers.iii-sandbox.preset_sources.ruby: is no preset: use custom_images for "
      "it" },
    { "workers: {iii-sandbox: {per_image_caps: {python: {max_cpu: 1}}}}",
      "1: workers.iii-sandbox.per_image_caps.python.max_cpu: unknown key, did you mean "
      "max_cpus?" },
    { "workers: {iii-sandbox: {insecure_registries: [\"http://x\"]}}",
      "1: workers.iii-sandbox.insecure_registries: expected HOST[:PORT], got http://x" },
    { "workers: {iii-sandbox: {max_output_bytes: 1392641}}",
      "1: workers.iii-sandbox.max_output_bytes: expected at most 1392640, so that a reply "
      "fits into max_message_bytes 16777216, got 1392641" },
    { "workers: {iii-sandbox: {allowed_roots: [/no/such/place]}}",
      "1: workers.iii-sandbox.allowed_roots: /no/such/place: No such file or directory" },
    { "workers: {iii-sandbox: {allowed_roots: [/etc/passwd]}}",
      "1: workers.iii-sandbox.allowed_roots: /etc/passwd is no directory" },
    { "workers: {iii-sandbox: {allowed_roots: [tmp]}}",
      "1: workers.iii-sandbox.allowed_roots: expected an absolute path, got tmp" },
    { "sandbox: {settings: 5}", "1: sandbox.settings: expected a map, got 5" },
    { "sandbox: {qemu: 5}", "1: sandbox.qemu: expected a map, got 5" },
    { "sandbox: {a: 1, a: 2}", NULL },
    { "a: [", NULL },
};

START_TEST(test_refused)
{
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        struct settings *settings = NULL;
        char error[SETTINGS_ERROR_MAX];

        if (refusals[i].error)
            check_refused(refusals[i].text, refusals[i].error);
        else
            ck_assert_msg(load_text(refusals[i].text, &settings, error) == -EINVAL, "%s",
                          refusals[i].text);
    }
}
END_TEST

/* A raised message limit raises the limit of what depends on it. */
START_TEST(test_output_bytes)
{
    struct settings *settings = load("sandbox: {max_message_bytes: 33554432}\n"
                                     "workers: {iii-sandbox: {max_output_bytes: 2790741}}\n");

    ck_assert_uint_eq(settings->adapter.max_output_bytes, 2790741);
    settings_free(settings);
    settings = load("workers: {iii-sandbox: {max_output_bytes: 1392640}}\n");
    settings_free(settings);
}
END_TEST

START_TEST(test_missing_file)
{
    struct settings *settings = NULL;
    char error[SETTINGS_ERROR_MAX];

    ck_assert_int_eq(settings_load("/no/such/file", &settings, error), -ENOENT);
    ck_assert_str_eq(error, "/no/such/file: No such file or directory");
    ck_assert_ptr_null(settings);
}
END_TEST

struct own {
    char *binary;
    uint32_t delay_ms;
};

START_TEST(test_own_section)
{
    static const struct setting_row rows[] = {
        { .name = "binary",
          .kind = SETTING_PATH,
          .standard = "/bin/x",
          .offset = offsetof(struct own, binary) },
        { .name = "delay_ms",
          .kind = SETTING_U32,
          .standard = "7",
          .max = 100,
          .offset = offsetof(struct own, delay_ms) },
    };
    struct settings *settings = load("sandbox:\n  mock:\n    delay_ms: 9\n");
    char error[SETTINGS_ERROR_MAX];
    struct own own;

    ck_assert_int_eq(
        settings_read(settings->mock, "sandbox.mock", rows, ARRAY_SIZE(rows), &own, error), 0);
    ck_assert_str_eq(own.binary, "/bin/x");
    ck_assert_uint_eq(own.delay_ms, 9);
    settings_release(rows, ARRAY_SIZE(rows), &own);
    ck_assert_ptr_null(own.binary);
    ck_assert_int_eq(settings_read(NULL, "sandbox.mock", rows, ARRAY_SIZE(rows), &own, error),
                     0);
    ck_assert_uint_eq(own.delay_ms, 7);
    settings_release(rows, ARRAY_SIZE(rows), &own);
    settings_free(settings);

    settings = load("sandbox:\n  mock:\n    delay: 9\n");
    ck_assert_int_eq(
        settings_read(settings->mock, "sandbox.mock", rows, ARRAY_SIZE(rows), &own, error),
        -EINVAL);
    ck_assert_str_eq(error, "3: sandbox.mock.delay: unknown key, did you mean delay_ms?");
    settings_free(settings);
}
END_TEST

/* Without root: the directories of the user. The cases run in processes of their own. */
START_TEST(test_directories)
{
    struct settings *settings = NULL;
    char error[SETTINGS_ERROR_MAX];

    ck_assert_int_eq(chmod(directory, 0777), 0);
    (void)unlink(file); /* another case's, which the user below may not write */
    ck_assert(getuid() != 0 || setuid(65534) == 0);
    ck_assert_int_eq(unsetenv("XDG_RUNTIME_DIR"), 0);
    ck_assert_int_lt(load_text("sandbox:\n  adapter: x\n", &settings, error), 0);
    ck_assert_str_eq(
        error + strlen(file),
        ":2: sandbox.runtime_dir: has no default here: XDG_RUNTIME_DIR is not set");
    ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", "/run/user/1", 1), 0);
    ck_assert_int_eq(setenv("HOME", "/home/a", 1), 0);
    ck_assert_int_eq(unsetenv("XDG_CACHE_HOME"), 0);
    ck_assert_int_eq(setenv("XDG_STATE_HOME", "/state", 1), 0);
    settings = load("");
    ck_assert_str_eq(settings->router.runtime_dir, "/run/user/1/iii-sandbox");
    ck_assert_str_eq(settings->adapter.cache_dir, "/home/a/.cache/iii-sandbox");
    ck_assert_str_eq(settings->adapter.state_dir, "/state/iii-sandbox");
    settings_free(settings);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        test_defaults,     test_reload_of_nothing, test_adapter_name,
        test_values,       test_refused,           test_output_bytes,
        test_missing_file, test_own_section,       test_directories,
    };
    int code;

    if (!mkdtemp(directory))
        return EXIT_FAILURE;
    (void)snprintf(file, sizeof(file), "%s/config.yaml", directory);
    code = unit_run("settings", tests, ARRAY_SIZE(tests));
    (void)unlink(file);
    (void)rmdir(directory);
    return code;
}
