/* manifest.h - iii.worker.yaml: what a worker is and which scripts it runs (contract 12.2).
 *
 * Strict: a wrong type, a value out of range or bad YAML is S501 that names file, line and key.
 * Keys that are not known are ignored. Pure. */
#pragma once

#include "error.h"
#include "tables.h"

#define MANIFEST_FILE "iii.worker.yaml"
#define MANIFEST_MAX_BYTES (1024u * 1024)

#define MANIFEST_CPUS_DEFAULT 2u
#define MANIFEST_MEMORY_MB_DEFAULT 2048u

/* Texts are owned; NULL: not there. */
struct manifest {
    char *name;
    char *base_image;
    char *setup, *install, *start;
    uint32_t cpus;
    uint32_t memory_mb;
    struct text_list env; /* NAME=VALUE, in the order of the file */
};

/* PATH is for messages. On failure -1 (S501; S300 without memory) and *ret_manifest is empty.
 */
int manifest_parse(const char *path, const char *text, size_t size,
                   struct manifest *ret_manifest, struct sandbox_error *err);
void manifest_done(struct manifest *manifest);

/* Names that belong to the adapter alone: III_URL, III_ENGINE_URL, III_WORKER_NAME. SIZE bytes
 * of NAME count. */
bool manifest_name_reserved(const char *name, size_t size);
