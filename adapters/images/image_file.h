/* image_file.h - image.json: what an installed image says of itself (docs/images.md). */
#pragma once

#include "buf.h"
#include "image.h"

#define IMAGE_FILE_NAME "image.json"
#define IMAGE_CONFIG_NAME "config.json"
#define IMAGE_FILE_MAX_BYTES (1024u * 1024)

/* A file NAME of DIRECTORY: a descriptor to read, or its whole text. -EBADMSG: it is something
 * else, such as a FIFO, which is never waited for; -EFBIG; other -errno. */
int image_part_open(const char *directory, const char *name);
int image_part_read(const char *directory, const char *name, size_t max_bytes,
                    struct buf *ret_text);

/* Reads DIRECTORY/image.json and checks that its files are there with their sizes. Fills name,
 * source, workdir and env of *ret_image, which owns them. 0; -ENOENT: not there; -EBADMSG: not
 * as it should be; other -errno. */
int image_file_read(const char *directory, struct image *ret_image);

/* Turns an installer's result into an image: takes config.json away and writes image.json.
 * 0, or -errno and in WHY what is wrong. */
#define IMAGE_WHY_MAX 512
int image_file_write(const char *directory, const char *name, const char *source,
                     char ret_why[IMAGE_WHY_MAX]);
