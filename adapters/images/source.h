/* source.h - what an image is made from: the forms of a source text (contract 7.2). */
#pragma once

#include <stdbool.h>

#include "buf.h"
#include "tables.h"

enum source_kind {
    SOURCE_DEBIAN,
    SOURCE_REGISTRY,
    SOURCE_OCI,
    SOURCE_DOCKER_ARCHIVE,
    SOURCE_ROOTFS,
    SOURCE_KIND_MAX
};

/* The members that a kind does not have are NULL. */
struct source {
    enum source_kind kind;
    char *suite;      /* debian */
    char *packages;   /* debian: comma-separated */
    char *host;       /* registry: HOST[:PORT] */
    char *repository; /* registry; docker-archive: with its host, NULL: none */
    char *tag;        /* registry, oci, docker-archive; NULL: none */
    char *digest;     /* registry: sha256:…; NULL: none */
    char *path;       /* oci, docker-archive, rootfs: absolute */
    bool insecure;    /* registry: plain HTTP is allowed */
};

#define SOURCE_WHY_MAX 256

/* 0; -EINVAL, and WHY tells what is wrong with the text; -ENOMEM. */
int source_parse(const char *text, const struct text_list *insecure_registries,
                 struct source *ret_source, char ret_why[SOURCE_WHY_MAX]);
void source_done(struct source *source);

/* Appends it written out in full, as installers get it (docs/images.md). 0 or -ENOMEM. */
int source_format(const struct source *source, struct buf *to);
const char *source_kind_name(enum source_kind kind);
/* Its bytes come from other machines. */
bool source_kind_is_remote(enum source_kind kind);
