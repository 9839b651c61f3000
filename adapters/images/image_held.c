/* image_held.c - see image_held.h. */
#include "image_held.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "image_file.h"
#include "image_seal.h"

#define USED_RESOLUTION_SECS 60 /* a use is noted that often */

struct held_image {
    struct image image;
    struct held_images *held;
    unsigned references;
    int lock_fd; /* image.json, shared flock */
};

int held_images_init(struct held_images *held)
{
    return table_new(&held->by_directory);
}

void held_images_done(struct held_images *held)
{
    table_free(held->by_directory);
}

const struct image *image_ref(const struct image *image)
{
    struct held_image *held = CONTAINER_OF(image, struct held_image, image);

    held->references++;
    return image;
}

static void held_forget(struct held_image *held)
{
    struct table *table = held->held->by_directory;

    if (held->image.directory && table_get_text(table, held->image.directory) == held)
        (void)table_remove_text(table, held->image.directory); /* itself */
}

static void held_free(struct held_image *held)
{
    if (!held)
        return;
    held_forget(held);
    closep(&held->lock_fd);
    image_done(&held->image);
    free(held);
}
DEFINE_CLEANUP(struct held_image *, held_free)

void image_unref(const struct image *image)
{
    struct held_image *held;

    if (!image)
        return;
    held = CONTAINER_OF(image, struct held_image, image);
    if (--held->references == 0)
        held_free(held);
}

/* -ENOENT when it is being removed, or was before the lock was had. */
static int held_lock(struct held_image *held, const char *directory)
{
    _cleanup_free_ char *path = NULL;
    struct stat locked, found;

    if (asprintf(&path, "%s/" IMAGE_FILE_NAME, directory) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    held->lock_fd = image_part_open(directory, IMAGE_FILE_NAME);
    if (held->lock_fd < 0)
        return held->lock_fd;
    if (flock(held->lock_fd, LOCK_SH | LOCK_NB) < 0)
        return -ENOENT;
    if (fstat(held->lock_fd, &locked) < 0 || stat(path, &found) < 0)
        return -errno;
    return locked.st_ino == found.st_ino && locked.st_dev == found.st_dev ? 0 : -ENOENT;
}

static int held_load(struct held_image *held, const char *directory, const char *digest)
{
    char content[HASH_SHA256_HEX_BYTES];
    int ret = held_lock(held, directory);

    if (ret == 0)
        ret = image_file_read(directory, &held->image);
    if (ret == 0)
        ret = image_seal_digest(directory, content);
    if (ret < 0)
        return ret;
    held->image.digest = strdup(digest);
    held->image.directory = strdup(directory);
    held->image.content = strdup(content);
    return held->image.digest && held->image.directory && held->image.content ? 0 : -ENOMEM;
}

/* The folder's own time tells when the image was used last. */
static void note_use(const char *directory)
{
    struct stat status;

    if (stat(directory, &status) == 0 &&
        time(NULL) - status.st_mtim.tv_sec >= USED_RESOLUTION_SECS)
        (void)utimensat(AT_FDCWD, directory, NULL, 0); /* then it counts as unused */
}

int image_hold(struct held_images *held, const char *directory, const char *digest,
               const struct image **ret_image)
{
    struct held_image *known = table_get_text(held->by_directory, directory);
    _cleanup_(held_freep)
    struct held_image *loaded = calloc(1, sizeof(*loaded));
    int ret;

    if (!loaded)
        return -ENOMEM;
    *loaded = (struct held_image){ .held = held, .references = 1, .lock_fd = -1 };
    ret = held_load(loaded, directory, digest);
    if (ret < 0)
        return ret;
    note_use(directory);
    if (known && strcmp(known->image.content, loaded->image.content) == 0) {
        *ret_image = image_ref(&known->image);
        return 0;
    }
    if (known)
        held_forget(known);
    ret = table_put_text(held->by_directory, loaded->image.directory, loaded);
    if (ret < 0)
        return ret;
    *ret_image = &take_ptr(loaded)->image;
    return 0;
}
