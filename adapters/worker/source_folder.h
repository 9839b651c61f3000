/* source_folder.h - the folder a worker is made from: where it really is, that it may be used,
 * and the manifest in it (contract 12.2).
 *
 * What is checked is what is used: the folder is held by a descriptor that the kernel resolved
 * beneath an allowed root without following any link, and everything in it is reached through
 * that descriptor. Whoever swaps a part of the path meanwhile changes nothing. */
#pragma once

#include "manifest.h"

struct source_folder {
    int fd;          /* O_PATH */
    char *path;      /* resolved; for messages */
    struct buf text; /* of the manifest, byte for byte */
    struct manifest manifest;
};

/* HOST_PATH is absolute (S001 was checked). S501 when it is no folder, lies in none of
 * ALLOWED_ROOTS, or its manifest is missing or wrong. */
int source_folder_open(const char *host_path, const struct text_list *allowed_roots,
                       struct source_folder *ret_source, struct sandbox_error *err);
void source_folder_done(struct source_folder *source);
