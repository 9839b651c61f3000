/* test_catalog.c - names, allowlist, catalog::list (contract 7.1, 7.2). */
#include "catalog.h"
#include "fixture.h"
#include "unit.h"

#include <string.h>

#define SETTINGS                                                                               \
    "    image_allowlist: [mine, python, unknown]\n"                                           \
    "    custom_images:\n"                                                                     \
    "      zeta: rootfs:/srv/z\n"                                                              \
    "      mine: oci:/srv/mine\n"                                                              \
    "    preset_sources:\n"                                                                    \
    "      python: docker://docker.io/library/python:3-slim\n"

START_TEST(test_sources)
{
    const struct adapter_settings *settings;

    fixture_open(SETTINGS);
    settings = adapter_settings(fixture.adapter);
    ck_assert_str_eq(catalog_source(settings, "mine"), "oci:/srv/mine");
    ck_assert_str_eq(catalog_source(settings, "python"),
                     "docker://docker.io/library/python:3-slim");
    ck_assert_str_eq(catalog_source(settings, "node"),
                     "debian:bookworm/nodejs,ca-certificates");
    ck_assert_ptr_null(catalog_source(settings, "unknown"));
    ck_assert_ptr_null(catalog_source(settings, ""));
    ck_assert_str_eq(catalog_addition(settings, "node"), "npm");
    ck_assert_ptr_null(catalog_addition(settings, "python"));
    ck_assert_ptr_null(catalog_addition(settings, "mine"));
    fixture_close();
}
END_TEST

static void expect_s100(const char *image, const char *part)
{
    struct sandbox_error err = { 0 };
    const char *source;

    ck_assert_int_eq(catalog_check(adapter_settings(fixture.adapter), image, &source, &err),
                     -1);
    ck_assert_int_eq(err.code, S100);
    ck_assert_msg(strstr(err.message, image) && strstr(err.message, part), "%s", err.message);
    sandbox_error_done(&err);
}

START_TEST(test_check)
{
    struct sandbox_error err = { 0 };
    const char *source = NULL;

    fixture_open(SETTINGS);
    ck_assert_int_eq(catalog_check(adapter_settings(fixture.adapter), "mine", &source, &err),
                     0);
    ck_assert_str_eq(source, "oci:/srv/mine");
    expect_s100("zeta", "image_allowlist");
    expect_s100("zeta", "mine, python");
    expect_s100("unknown", "not in the catalog");
    expect_s100("docker.io/library/python", "mine, python");
    fixture_close();
}
END_TEST

START_TEST(test_empty_allowlist)
{
    fixture_open("");
    expect_s100("python", "no image may be booted");
    fixture_close();
}
END_TEST

START_TEST(test_list)
{
    fixture_open(SETTINGS);
    fixture_call(1, "catalog::list", "{}");
    fixture_expect_reply(
        1, "{\"images\":["
           "{\"name\":\"python\",\"oci_ref\":\"docker://docker.io/library/python:3-slim\","
           "\"kind\":\"preset\"},"
           "{\"name\":\"node\",\"oci_ref\":\"debian:bookworm/nodejs,ca-certificates\","
           "\"kind\":\"preset\"},"
           "{\"name\":\"mine\",\"oci_ref\":\"oci:/srv/mine\",\"kind\":\"custom\"},"
           "{\"name\":\"zeta\",\"oci_ref\":\"rootfs:/srv/z\",\"kind\":\"custom\"}]}");
    fixture_close();
}
END_TEST

UNIT_MAIN("catalog", test_sources, test_check, test_empty_allowlist, test_list)
