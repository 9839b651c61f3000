/* test_source.c - the forms of a source text (contract 7.2). */
#include "source.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

static char *insecure_items[] = { "registry.lan:5000", "plain.lan" };
static const struct text_list insecure_registries = { 2, insecure_items };

static const struct {
    const char *text;
    const char *full;
    enum source_kind kind;
    bool insecure;
} good[] = {
    { "debian:python3", "debian:bookworm/python3", SOURCE_DEBIAN, false },
    { "debian:trixie/g++,libc6.1,a-b", "debian:trixie/g++,libc6.1,a-b", SOURCE_DEBIAN, false },
    { "python", "docker://docker.io/library/python:latest", SOURCE_REGISTRY, false },
    { "python:3-slim", "docker://docker.io/library/python:3-slim", SOURCE_REGISTRY, false },
    { "docker://docker.io/library/python:3-slim", "docker://docker.io/library/python:3-slim",
      SOURCE_REGISTRY, false },
    { "docker.io/python", "docker://docker.io/library/python:latest", SOURCE_REGISTRY, false },
    { "some/one", "docker://docker.io/some/one:latest", SOURCE_REGISTRY, false },
    { "ghcr.io/a/b_c/d-e:V1", "docker://ghcr.io/a/b_c/d-e:V1", SOURCE_REGISTRY, false },
    { "ghcr.io/one", "docker://ghcr.io/one:latest", SOURCE_REGISTRY, false },
    { "localhost/x", "docker://localhost/x:latest", SOURCE_REGISTRY, true },
    { "localhost:5000/x:1", "docker://localhost:5000/x:1", SOURCE_REGISTRY, true },
    { "127.0.0.1:5000/x", "docker://127.0.0.1:5000/x:latest", SOURCE_REGISTRY, true },
    { "docker://[::1]:5000/x/y", "docker://[::1]:5000/x/y:latest", SOURCE_REGISTRY, true },
    { "registry.lan:5000/x", "docker://registry.lan:5000/x:latest", SOURCE_REGISTRY, true },
    { "registry.lan/x", "docker://registry.lan/x:latest", SOURCE_REGISTRY, false },
    { "registry.lan:5001/x", "docker://registry.lan:5001/x:latest", SOURCE_REGISTRY, false },
    { "plain.lan/x", "docker://plain.lan/x:latest", SOURCE_REGISTRY, true },
    { "localhost.example.com/x", "docker://localhost.example.com/x:latest", SOURCE_REGISTRY,
      false },
    { "a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
      "docker://docker.io/library/"
      "a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
      SOURCE_REGISTRY, false },
    { "h.io/a:t@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
      "docker://h.io/a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
      SOURCE_REGISTRY, false },
    { "oci:/srv/layout", "oci:/srv/layout", SOURCE_OCI, false },
    { "oci:/srv/layout:v1", "oci:/srv/layout:v1", SOURCE_OCI, false },
    { "oci:/srv/a:b/layout", "oci:/srv/a:b/layout", SOURCE_OCI, false },
    { "docker-archive:/srv/a.tar", "docker-archive:/srv/a.tar", SOURCE_DOCKER_ARCHIVE, false },
    { "docker-archive:/srv/a.tar:own:1", "docker-archive:/srv/a.tar:own:1",
      SOURCE_DOCKER_ARCHIVE, false },
    { "docker-archive:/srv/a.tar:localhost:5000/a/b:V1",
      "docker-archive:/srv/a.tar:localhost:5000/a/b:V1", SOURCE_DOCKER_ARCHIVE, false },
    { "rootfs:/srv/root", "rootfs:/srv/root", SOURCE_ROOTFS, false },
    { "rootfs:/srv/a:b.tar.gz", "rootfs:/srv/a:b.tar.gz", SOURCE_ROOTFS, false },
};

START_TEST(test_good)
{
    struct source source;
    char why[SOURCE_WHY_MAX] = "";
    struct buf full = { 0 };

    ck_assert_msg(source_parse(good[_i].text, &insecure_registries, &source, why) == 0,
                  "%s: %s", good[_i].text, why);
    ck_assert_int_eq(source.kind, good[_i].kind);
    ck_assert_int_eq(source.insecure, good[_i].insecure);
    ck_assert_int_eq(source_format(&source, &full), 0);
    ck_assert_str_eq(buf_text(&full), good[_i].full);
    buf_done(&full);
    source_done(&source);
}
END_TEST

/* Text and the part that the reason must name. */
static const char *const bad[][2] = {
    { "", "repository" },
    { "docker-archive:", "absolute" },
    { "docker-archive:a.tar", "a.tar" },
    { "docker-archive:/a.tar:", "no tag" },
    { "docker-archive:/a.tar:own", "own has no tag" },
    { "docker-archive:/a.tar:own:", "no tag" },
    { "docker-archive:/a.tar:h:5000/own", "no tag" },
    { "docker-archive:/a.tar:own:-t", "-t" },
    { "docker-archive:/a.tar:--own:t", "--own" },
    { "docker-archive:/a.tar:h:x/own:t", "port" },
    { "docker-archive:/a.tar:h:5/:t", "repository" },
    { "debian:", "package" },
    { "debian:python3,", "package" },
    { "debian:,a", "package" },
    { "debian:Python3", "Python3" },
    { "debian:bookworm/", "package" },
    { "debian:/python3", "suite" },
    { "debian:-o/python3", "-o" },
    { "debian:book worm/python3", "book worm" },
    { "debian:a b", "a b" },
    { "debian:--help", "--help" },
    { "docker://", "repository" },
    { "Python", "Python" },
    { "a//b", "a//b" },
    { "a/", "a/" },
    { "-a", "-a" },
    { "a-", "a-" },
    { "a:", "tag" },
    { "a:-x", "-x" },
    { "a:b c", "b c" },
    { "a@sha256:12", "sha256:12" },
    { "a@md5:12", "md5:12" },
    { "host.io:port/a", "port" },
    { "host.io:/a", "port" },
    { "host.io:123456/a", "port" },
    { "[::1/a", "[::1" },
    { "[]/a.b", "[]" },
    { "oci:relative", "relative" },
    { "oci:", "absolute" },
    { "oci:/a:", "tag" },
    { "rootfs:relative", "relative" },
    { "http://x/y", "http" },
    { "a\nb", "repository" },
};

START_TEST(test_bad)
{
    struct source source;
    char why[SOURCE_WHY_MAX] = "";

    ck_assert_msg(source_parse(bad[_i][0], &insecure_registries, &source, why) == -EINVAL,
                  "%s is taken", bad[_i][0]);
    ck_assert_msg(strstr(why, bad[_i][1]), "%s: %s does not name %s", bad[_i][0], why,
                  bad[_i][1]);
}
END_TEST

UNIT_MAIN_ROWS("source", UNIT_ROWS(test_good, good), UNIT_ROWS(test_bad, bad))
