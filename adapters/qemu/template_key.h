/* template_key.h - the digest of everything that a saved template and its clones must share. */
#pragma once

#include "accel.h"
#include "hash.h"
#include "qemu_args.h"

/* Descriptors and texts are borrowed. */
struct template_key_spec {
    struct qemu_args_spec args; /* of the template's machine; its program is the file hashed */
    const char *image_digest;
    const char *rehearsal; /* what it rehearsed, in a word */
    int kernel_fd;
    int initrd_fd; /* holds the agent */
};

/* Reads some 30 MB. 0 or -errno. Blocking: for threads. */
int template_key(const struct template_key_spec *spec, char ret_key[HASH_SHA256_HEX_BYTES]);
