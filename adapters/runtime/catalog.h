/* catalog.h - the names of images, what each is made from, and which may be booted (contract
 * 7.1, 7.2).
 *
 * Reads settings; owns nothing and touches no disk. */
#pragma once

#include "error.h"
#include "settings.h"

/* Text of the source as configured, or the preset's default; borrowed from the settings. NULL:
 * no image of that name is known. */
const char *catalog_source(const struct adapter_settings *settings, const char *image);

/* Check 3 of contract 5.1.2: known and allowed, else S100. */
int catalog_check(const struct adapter_settings *settings, const char *image,
                  const char **ret_source, struct sandbox_error *err);

enum source_kind { SOURCE_DEBIAN, SOURCE_REGISTRY, SOURCE_OCI, SOURCE_ROOTFS, SOURCE_KIND_MAX };

/* A parsed source text; the members that its kind does not have are NULL. */
struct source {
    enum source_kind kind;
    char *suite;      /* debian */
    char *packages;   /* debian: comma-separated */
    char *host;       /* registry: HOST[:PORT] */
    char *repository; /* registry */
    char *tag;        /* registry, oci; NULL: none given and none needed */
    char *digest;     /* registry: sha256:… */
    char *path;       /* oci, rootfs: absolute */
    bool insecure;    /* registry: plain HTTP is allowed */
};

/* 0, or -EINVAL with a text in WHY (of WHY_SIZE bytes) that quotes the part that is wrong. */
int source_parse(const char *text, const struct text_list *insecure_registries,
                 struct source *ret_source, char *why, size_t why_size);
void source_done(struct source *source);
const char *source_kind_name(enum source_kind kind);
