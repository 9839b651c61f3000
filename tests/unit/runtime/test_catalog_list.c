/* test_catalog_list.c - catalog::list (contract 7.1). */
#include "fixture.h"
#include "unit.h"

#define SETTINGS                                                                               \
    "    image_allowlist: [mine, python, unknown]\n"                                           \
    "    custom_images:\n"                                                                     \
    "      zeta: rootfs:/srv/z\n"                                                              \
    "      mine: oci:/srv/mine\n"                                                              \
    "    preset_sources:\n"                                                                    \
    "      python: docker://docker.io/library/python:3-slim\n"

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

UNIT_MAIN("catalog_list", test_list)
