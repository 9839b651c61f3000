/* image.h - an installed image, how one is asked for and how far an install is. */
#pragma once

#include <stdint.h>

#include "tables.h"

/* As a back end needs it. Borrowed for the machine's life. */
struct image {
    char *name;
    char *source;    /* as configured when it was installed */
    char *digest;    /* of its source and recipe; names the cache folder */
    char *content;   /* digest of its files; another one is another image */
    char *directory; /* <cache_dir>/images/<digest>, complete */
    char *workdir;   /* of the image's config; "/" if it has none */
    struct text_list env;
};
/* Releases what an image owns. Accepts a half-filled one. */
void image_done(struct image *image);

enum image_flags {
    IMAGE_MAY_INSTALL = 1,  /* else S101 when it is not there */
    IMAGE_ALWAYS_CHECK = 2, /* reads it and compares the digests, though nothing has changed */
    IMAGE_ANEW = 4,         /* installs it though it is there */
};

/* What an install is at, in this order; only on a real install. */
enum image_stage {
    IMAGE_PULLING,   /* bytes come from elsewhere */
    IMAGE_UNPACKING, /* layers and packages become a tree */
    IMAGE_PACKING,   /* the tree becomes what machines read */
    IMAGE_SEALING,   /* the digests of it are made */
    IMAGE_STAGE_MAX
};
/* "pulling", ... */
const char *image_stage_name(enum image_stage stage);

struct image_progress {
    enum image_stage stage;
    uint64_t bytes;            /* of this stage */
    uint64_t total_bytes;      /* 0: unknown */
    uint64_t bytes_per_second; /* of late; 0: unknown */
};
