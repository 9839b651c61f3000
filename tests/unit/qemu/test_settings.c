/* test_settings.c - the section `sandbox.qemu`: lists of ports, and what is said of bad ones.
 */
#include "qemu_settings.h"

#include <stdio.h>
#include <unistd.h>

#include "unit.h"

/* The section's text, read; 0 or -1. */
static int read_section(const char *section, struct qemu_settings *ret_settings,
                        struct sandbox_error *err)
{
    char path[] = "/tmp/test-qemu-settings-XXXXXX", error[SETTINGS_ERROR_MAX];
    struct settings *settings;
    int fd = mkstemp(path), result;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt(dprintf(fd, "sandbox:\n  adapter: sandbox-qemu\n  qemu:\n%s", section), 0);
    (void)close(fd);
    ck_assert_msg(settings_load(path, &settings, error) == 0, "%s", error);
    result = qemu_settings_read(settings, ret_settings, err);
    settings_free(settings);
    (void)unlink(path);
    return result;
}

START_TEST(test_network_is_closed_by_default)
{
    struct qemu_settings settings;
    struct sandbox_error err = { 0 };

    ck_assert_int_eq(read_section("    pool_size: 1\n", &settings, &err), 0);
    ck_assert(!settings.allow_private_networks);
    ck_assert_uint_eq(settings.host_ports.count, 0);
    qemu_settings_done(&settings);
}
END_TEST

START_TEST(test_network)
{
    struct qemu_settings settings;
    struct sandbox_error err = { 0 };

    ck_assert_int_eq(read_section("    allow_private_networks: true\n"
                                  "    host_ports: [1, 5432, 65535]\n",
                                  &settings, &err),
                     0);
    ck_assert(settings.allow_private_networks);
    ck_assert_uint_eq(settings.host_ports.count, 3);
    ck_assert_uint_eq(settings.host_ports.items[1], 5432);
    ck_assert_uint_eq(settings.host_ports.items[2], 65535);
    qemu_settings_done(&settings);
}
END_TEST

/* Each names file, line, key, and the value or the limit. */
START_TEST(test_refused)
{
    static const struct {
        const char *section, *says;
    } rows[] = {
        { "    host_ports: [80, 0]\n",
          ":4: sandbox.qemu.host_ports: expected an integer from 1 "
          "to 65535, got 0" },
        { "    host_ports: [65536]\n", "from 1 to 65535, got 65536" },
        { "    host_ports: [http]\n", ":4: sandbox.qemu.host_ports: expected an integer" },
        { "    host_ports: 80\n", ":4: sandbox.qemu.host_ports: expected a list" },
        { "    allow_private_networks: 1\n", "expected true or false" },
        { "    host_loopback: true\n", ":4: sandbox.qemu.host_loopback: unknown key" },
        { "    acceleration: fast\n", "acceleration fast is none of auto, kvm, tcg" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct qemu_settings settings;
        struct sandbox_error err = { 0 };

        ck_assert_int_eq(read_section(rows[i].section, &settings, &err), -1);
        ck_assert_msg(strstr(err.message, rows[i].says) != NULL, "%s", err.message);
        sandbox_error_done(&err);
    }
}
END_TEST

START_TEST(test_too_many_ports)
{
    static char section[8 * (SETTING_NUMBERS_MAX + 2)] = "    host_ports: [1";
    struct qemu_settings settings;
    struct sandbox_error err = { 0 };

    for (unsigned i = 1; i < SETTING_NUMBERS_MAX; i++)
        strcat(section, ", 1");
    strcat(section, "]\n");
    ck_assert_int_eq(read_section(section, &settings, &err), 0);
    qemu_settings_done(&settings);
    strcpy(strchr(section, ']'), ", 1]\n");
    ck_assert_int_eq(read_section(section, &settings, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "expected at most 256 numbers, got 257"));
    sandbox_error_done(&err);
}
END_TEST

UNIT_MAIN("qemu_settings", test_network_is_closed_by_default, test_network, test_refused,
          test_too_many_ports)
