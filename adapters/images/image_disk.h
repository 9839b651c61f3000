/* image_disk.h - the finished images in a cache folder: what there is, what it takes, and
 * removing it. Any process may share the folder; flock tells who is at work. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hash.h"
#include "image.h"

struct disk_image {
    struct image image;  /* name, source, digest; both "" when image.json cannot be read */
    bool usable;         /* image.json can be read and its files are there */
    bool checked;        /* and they are as when they were last compared with their digests */
    bool in_use;         /* some process holds it */
    uint64_t size_bytes; /* room on disk, of the files at the top level */
    int64_t installed_at, used_at; /* Unix seconds */
};

struct disk_images {
    size_t count;
    struct disk_image *items; /* by digest */
    uint64_t total_bytes;
};

/* A folder that is not there holds none. 0 or -errno. */
int disk_images_read(const char *directory, struct disk_images *ret_images);
void disk_images_done(struct disk_images *images);
const struct disk_image *disk_images_find(const struct disk_images *images, const char *digest);

/* Takes the image out of the cache by a rename; *ret_path, the caller's, is what is left to be
 * deleted (and is found as a leftover otherwise). -EBUSY: in use; -EAGAIN: being checked or
 * installed; other -errno. */
int disk_image_retire(const char *directory, const char *digest, char **ret_path);
