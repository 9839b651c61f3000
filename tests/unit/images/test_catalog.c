/* test_catalog.c - names, sources, allowlist (contract 7.1, 7.2). */
#include "catalog.h"
#include "scene.h"

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

    scene_prepare("");
    scene_settings(SETTINGS);
    settings = &scene.settings->adapter;
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
    scene_close();
}
END_TEST

static void expect_s100(const char *image, const char *part)
{
    struct sandbox_error err = { 0 };
    const char *source;

    ck_assert_int_eq(catalog_check(&scene.settings->adapter, image, &source, &err), -1);
    ck_assert_int_eq(err.code, S100);
    ck_assert_msg(strstr(err.message, image) && strstr(err.message, part), "%s", err.message);
    sandbox_error_done(&err);
}

START_TEST(test_check)
{
    struct sandbox_error err = { 0 };
    const char *source = NULL;

    scene_prepare("");
    scene_settings(SETTINGS);
    ck_assert_int_eq(catalog_check(&scene.settings->adapter, "mine", &source, &err), 0);
    ck_assert_str_eq(source, "oci:/srv/mine");
    expect_s100("zeta", "image_allowlist");
    expect_s100("zeta", "mine, python");
    expect_s100("unknown", "not in the catalog");
    expect_s100("docker.io/library/python", "mine, python");
    scene_close();
}
END_TEST

START_TEST(test_empty_allowlist)
{
    scene_prepare("");
    scene_settings("");
    expect_s100("python", "no image may be booted");
    scene_close();
}
END_TEST

UNIT_MAIN("catalog", test_sources, test_check, test_empty_allowlist)
