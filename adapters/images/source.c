/* source.c - see source.h.
 *
 * Strict, because the parts end up in the arguments of other programs: nothing that begins with
 * a dash, no white space, no character that a reference cannot have. */
#include "source.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DIGITS "0123456789"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

#define DEBIAN_SUITE_DEFAULT "bookworm"
#define REGISTRY_HOST_DEFAULT "docker.io"
#define TAG_MAX_BYTES 128
#define DIGEST_HEX_BYTES 64

static const char *const source_kind_names[] = { "debian", "registry", "oci", "docker-archive",
                                                 "rootfs" };
static_assert(ARRAY_SIZE(source_kind_names) == SOURCE_KIND_MAX, "a name for each kind");

static _printf_(2, 3) int bad(char why[SOURCE_WHY_MAX], const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(why, SOURCE_WHY_MAX, format, arguments); /* cut is fine */
    va_end(arguments);
    return -EINVAL;
}

/* First character of FIRST, all others of REST. */
static bool consists_of(const char *text, size_t size, const char *first, const char *rest)
{
    if (size == 0 || !strchr(first, text[0]))
        return false;
    for (size_t i = 1; i < size; i++)
        if (!strchr(rest, text[i]))
            return false;
    return true;
}

static int copy_part(char **ret_part, const char *text, size_t size)
{
    *ret_part = strndup(text, size);
    return *ret_part ? 0 : -ENOMEM;
}

/* debian:[SUITE/]PACKAGE[,PACKAGE...] */

static int parse_debian(const char *text, struct source *source, char *why)
{
    const char *slash = strchr(text, '/');
    const char *packages = slash ? slash + 1 : text;
    const char *at = packages;

    if (slash && !consists_of(text, (size_t)(slash - text), LOWER, LOWER DIGITS ".-"))
        return bad(why, "%.*s is no Debian suite", (int)(slash - text), text);
    for (;;) {
        size_t size = strcspn(at, ",");

        if (!consists_of(at, size, LOWER DIGITS, LOWER DIGITS "+.-"))
            return bad(why, "\"%.*s\" is no Debian package name", (int)size, at);
        if (!at[size])
            break;
        at += size + 1;
    }
    if (copy_part(&source->packages, packages, strlen(packages)) < 0)
        return -ENOMEM;
    return slash
               ? copy_part(&source->suite, text, (size_t)(slash - text))
               : copy_part(&source->suite, DEBIAN_SUITE_DEFAULT, strlen(DEBIAN_SUITE_DEFAULT));
}

/* [docker://][HOST[:PORT]/]REPO[:TAG][@sha256:DIGEST] */

static size_t host_name_size(const char *host)
{
    if (*host == '[')
        return strcspn(host, "]") + 1;
    return strcspn(host, ":");
}

static int check_host(const char *host, char *why)
{
    size_t size = host_name_size(host);
    const char *rest = host + size;

    if (*host == '[') {
        if (size > strlen(host) ||
            !consists_of(host + 1, size - 2, DIGITS "abcdefABCDEF:", DIGITS "abcdefABCDEF:."))
            return bad(why, "%s is no host", host);
    } else if (!consists_of(host, size, LOWER UPPER DIGITS, LOWER UPPER DIGITS ".-")) {
        return bad(why, "%s is no host", host);
    }
    if (*rest && (*rest != ':' || !consists_of(rest + 1, strlen(rest + 1), DIGITS, DIGITS) ||
                  strlen(rest + 1) > 5))
        return bad(why, "%s has no valid port", host);
    return 0;
}

static int check_repository(const char *repository, char *why)
{
    for (const char *at = repository;;) {
        size_t size = strcspn(at, "/");

        if (!consists_of(at, size, LOWER DIGITS, LOWER DIGITS "._-") ||
            !strchr(LOWER DIGITS, at[size - 1]))
            return bad(why, "%s is no repository name", repository);
        if (!at[size])
            return 0;
        at += size + 1;
    }
}

static int check_tag(const char *tag, char *why)
{
    if (strlen(tag) <= TAG_MAX_BYTES &&
        consists_of(tag, strlen(tag), LOWER UPPER DIGITS "_", LOWER UPPER DIGITS "_.-"))
        return 0;
    return bad(why, "%s is no tag", tag);
}

static int check_digest(const char *digest, char *why)
{
    static const char prefix[] = "sha256:";
    const char *hex = digest + strlen(prefix);

    if (strncmp(digest, prefix, strlen(prefix)) == 0 && strlen(hex) == DIGEST_HEX_BYTES &&
        consists_of(hex, DIGEST_HEX_BYTES, DIGITS "abcdef", DIGITS "abcdef"))
        return 0;
    return bad(why, "%s is no sha256: digest", digest);
}

/* Cuts TEXT into its parts, which stay inside it. */
struct reference {
    char *host, *repository, *tag, *digest;
};

static struct reference cut_reference(char *text)
{
    struct reference parts = { .repository = text };
    char *slash, *colon;

    parts.digest = strchr(text, '@');
    if (parts.digest)
        *parts.digest++ = '\0';
    slash = strchr(text, '/');
    if (slash) {
        *slash = '\0';
        if (strpbrk(text, ".:") || strcmp(text, "localhost") == 0) {
            parts.host = text;
            parts.repository = slash + 1;
        }
        if (!parts.host)
            *slash = '/';
    }
    colon = strrchr(parts.repository, ':');
    if (colon) {
        *colon = '\0';
        parts.tag = colon + 1;
    }
    return parts;
}

/* Contract 7.2: plain HTTP for this machine and those listed, and nowhere else. */
static bool is_insecure(const char *host, const struct text_list *insecure_registries)
{
    static const char *const local[] = { "localhost", "127.0.0.1", "[::1]" };
    size_t size = host_name_size(host);

    for (size_t i = 0; i < ARRAY_SIZE(local); i++)
        if (size == strlen(local[i]) && strncmp(host, local[i], size) == 0)
            return true;
    for (size_t i = 0; i < insecure_registries->count; i++)
        if (strcmp(host, insecure_registries->items[i]) == 0)
            return true;
    return false;
}

static int take_reference(const struct reference *parts,
                          const struct text_list *insecure_registries, struct source *source)
{
    const char *host = parts->host ? parts->host : REGISTRY_HOST_DEFAULT;
    const char *tag = parts->tag ? parts->tag : parts->digest ? NULL : "latest";
    bool is_official = strcmp(host, REGISTRY_HOST_DEFAULT) == 0 &&
                       !strchr(parts->repository, '/');

    source->insecure = is_insecure(host, insecure_registries);
    source->host = strdup(host);
    if (asprintf(&source->repository, "%s%s", is_official ? "library/" : "",
                 parts->repository) < 0)
        source->repository = NULL;
    source->tag = tag ? strdup(tag) : NULL;
    source->digest = parts->digest ? strdup(parts->digest) : NULL;
    return source->host && source->repository && (!tag || source->tag) &&
                   (!parts->digest || source->digest)
               ? 0
               : -ENOMEM;
}

static int parse_registry(const char *text, const struct text_list *insecure_registries,
                          struct source *source, char *why)
{
    _cleanup_free_ char *copy = strdup(text);
    struct reference parts;
    int ret = 0;

    if (!copy)
        return -ENOMEM;
    parts = cut_reference(copy);
    if (parts.host)
        ret = check_host(parts.host, why);
    if (ret == 0)
        ret = check_repository(parts.repository, why);
    if (ret == 0 && parts.tag)
        ret = check_tag(parts.tag, why);
    if (ret == 0 && parts.digest)
        ret = check_digest(parts.digest, why);
    return ret < 0 ? ret : take_reference(&parts, insecure_registries, source);
}

/* docker-archive:/absolute/path.tar[:[HOST[:PORT]/]REPO:TAG] */

static int parse_archive_name(const char *name, struct source *source, char *why)
{
    const char *tag = strrchr(name, ':');
    const char *slash = strchr(name, '/');
    _cleanup_free_ char *repository = tag ? strndup(name, (size_t)(tag - name)) : NULL;
    const char *rest = repository;

    if (!tag || strchr(tag, '/'))
        return bad(why, "%s has no tag", name);
    if (!repository)
        return -ENOMEM;
    if (check_tag(tag + 1, why) < 0)
        return -EINVAL;
    if (slash && memchr(name, ':', (size_t)(slash - name))) { /* a host with its port */
        _cleanup_free_ char *host = strndup(name, (size_t)(slash - name));

        if (!host)
            return -ENOMEM;
        if (check_host(host, why) < 0)
            return -EINVAL;
        rest = repository + (slash + 1 - name);
    }
    if (check_repository(rest, why) < 0)
        return -EINVAL;
    source->tag = strdup(tag + 1);
    source->repository = take_ptr(repository);
    return source->tag ? 0 : -ENOMEM;
}

static int parse_archive(const char *text, struct source *source, char *why)
{
    size_t size = strcspn(text, ":");

    if (*text != '/')
        return bad(why, "%s is no absolute path", text);
    if (copy_part(&source->path, text, size) < 0)
        return -ENOMEM;
    return text[size] ? parse_archive_name(text + size + 1, source, why) : 0;
}

/* oci:/absolute/dir[:TAG], rootfs:/absolute/path */

static int parse_path(const char *path, bool has_tag, struct source *source, char *why)
{
    const char *colon = has_tag ? strrchr(path, ':') : NULL;
    size_t size = strlen(path);

    if (*path != '/')
        return bad(why, "%s is no absolute path", path);
    if (colon && !strchr(colon, '/')) {
        if (check_tag(colon + 1, why) < 0)
            return -EINVAL;
        size = (size_t)(colon - path);
        if (copy_part(&source->tag, colon + 1, strlen(colon + 1)) < 0)
            return -ENOMEM;
    }
    return copy_part(&source->path, path, size);
}

static int parse_kind(const char *text, const struct text_list *insecure_registries,
                      struct source *source, char *why)
{
    static const struct {
        const char *prefix;
        enum source_kind kind;
    } prefixes[] = {
        { "debian:", SOURCE_DEBIAN }, { "docker://", SOURCE_REGISTRY },
        { "oci:", SOURCE_OCI },       { "docker-archive:", SOURCE_DOCKER_ARCHIVE },
        { "rootfs:", SOURCE_ROOTFS },
    };

    source->kind = SOURCE_REGISTRY;
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        size_t size = strlen(prefixes[i].prefix);

        if (strncmp(text, prefixes[i].prefix, size) != 0)
            continue;
        source->kind = prefixes[i].kind;
        text += size;
        break;
    }
    switch (source->kind) {
    case SOURCE_DEBIAN:
        return parse_debian(text, source, why);
    case SOURCE_DOCKER_ARCHIVE:
        return parse_archive(text, source, why);
    case SOURCE_OCI:
    case SOURCE_ROOTFS:
        return parse_path(text, source->kind == SOURCE_OCI, source, why);
    default:
        return parse_registry(text, insecure_registries, source, why);
    }
}

int source_parse(const char *text, const struct text_list *insecure_registries,
                 struct source *ret_source, char ret_why[SOURCE_WHY_MAX])
{
    struct source source = { 0 };
    int ret = parse_kind(text, insecure_registries, &source, ret_why);

    if (ret < 0) {
        source_done(&source);
        return ret;
    }
    *ret_source = source;
    return 0;
}

void source_done(struct source *source)
{
    free(source->suite);
    free(source->packages);
    free(source->host);
    free(source->repository);
    free(source->tag);
    free(source->digest);
    free(source->path);
    *source = (struct source){ 0 };
}

int source_format(const struct source *source, struct buf *to)
{
    switch (source->kind) {
    case SOURCE_DEBIAN:
        return buf_printf(to, "debian:%s/%s", source->suite, source->packages);
    case SOURCE_OCI:
        return buf_printf(to, "oci:%s%s%s", source->path, source->tag ? ":" : "",
                          source->tag ? source->tag : "");
    case SOURCE_DOCKER_ARCHIVE:
        if (!source->tag)
            return buf_printf(to, "docker-archive:%s", source->path);
        return buf_printf(to, "docker-archive:%s:%s:%s", source->path, source->repository,
                          source->tag);
    case SOURCE_ROOTFS:
        return buf_printf(to, "rootfs:%s", source->path);
    default:
        /* A digest says all: programs refuse a tag beside it. */
        return buf_printf(to, "docker://%s/%s%s%s", source->host, source->repository,
                          source->digest ? "@" : ":",
                          source->digest ? source->digest : source->tag);
    }
}

bool source_kind_is_remote(enum source_kind kind)
{
    return kind == SOURCE_REGISTRY || kind == SOURCE_DEBIAN;
}

const char *source_kind_name(enum source_kind kind)
{
    return source_kind_names[kind];
}
