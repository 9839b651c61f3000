/* image_disk.c - see image_disk.h. */
#include "image_disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "image_file.h"
#include "image_lock.h"
#include "image_remove.h"
#include "image_seal.h"

#define IMAGES_MAX 4096 /* that are looked at */
#define ST_BLOCK_BYTES 512

static bool is_digest(const char *name)
{
    return strlen(name) == HASH_SHA256_HEX_BYTES - 1 &&
           strspn(name, "0123456789abcdef") == HASH_SHA256_HEX_BYTES - 1;
}

/* What its users hold, if it can be had at once: its descriptor. -EWOULDBLOCK, other -errno. */
static int lock_user_file(const char *image_directory)
{
    _cleanup_close_ int fd = image_part_open(image_directory, IMAGE_FILE_NAME);

    if (fd < 0)
        return fd;
    return flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : take_fd(&fd);
}

/* Reading. */

static uint64_t size_of(const char *image_directory)
{
    DIR *directory = opendir(image_directory);
    uint64_t blocks = 0;
    struct dirent *entry;
    struct stat status;

    while (directory && (entry = readdir(directory)))
        if (fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(status.st_mode))
            blocks += (uint64_t)status.st_blocks;
    if (directory)
        (void)closedir(directory); /* only read */
    return blocks * ST_BLOCK_BYTES;
}

static void read_times(const char *image_directory, struct disk_image *image)
{
    _cleanup_free_ char *path = NULL;
    struct stat status;

    if (stat(image_directory, &status) == 0)
        image->used_at = status.st_mtim.tv_sec;
    if (asprintf(&path, "%s/" IMAGE_FILE_NAME, image_directory) < 0)
        path = NULL;
    image->installed_at = path && stat(path, &status) == 0 ? status.st_mtim.tv_sec
                                                           : image->used_at;
}

static int read_image(const char *directory, const char *digest, struct disk_image *image)
{
    _cleanup_free_ char *path = NULL;
    _cleanup_close_ int lock_fd = -1;

    if (asprintf(&path, "%s/%s", directory, digest) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    image->usable = image_file_read(path, &image->image) == 0;
    if (!image->usable) {
        image->image.name = strdup("");
        image->image.source = strdup("");
    }
    image->image.digest = strdup(digest);
    image->checked = image->usable && image_seal_holds(path);
    image->size_bytes = size_of(path);
    read_times(path, image);
    lock_fd = lock_user_file(path);
    image->in_use = lock_fd == -EWOULDBLOCK;
    return image->image.name && image->image.source && image->image.digest ? 0 : -ENOMEM;
}

static int append_image(struct disk_images *images, const char *directory, const char *digest)
{
    struct disk_image *items = reallocarray(images->items, images->count + 1, sizeof(*items));
    int ret;

    if (!items)
        return -ENOMEM;
    images->items = items;
    items[images->count] = (struct disk_image){ 0 };
    ret = read_image(directory, digest, &items[images->count]);
    images->total_bytes += items[images->count++].size_bytes;
    return ret;
}

static int compare_digests(const void *left, const void *right)
{
    const struct disk_image *a = left, *b = right;

    return strcmp(a->image.digest, b->image.digest);
}

int disk_images_read(const char *path, struct disk_images *ret_images)
{
    DIR *directory = opendir(path);
    struct disk_images images = { 0 };
    struct dirent *entry;
    int ret = directory || errno == ENOENT ? 0 : -errno;

    while (ret == 0 && directory && images.count < IMAGES_MAX && (entry = readdir(directory)))
        if (is_digest(entry->d_name))
            ret = append_image(&images, path, entry->d_name);
    if (directory)
        (void)closedir(directory); /* only read */
    if (ret < 0) {
        disk_images_done(&images);
        return ret;
    }
    if (images.count > 0)
        qsort(images.items, images.count, sizeof(*images.items), compare_digests);
    *ret_images = images;
    return 0;
}

void disk_images_done(struct disk_images *images)
{
    for (size_t i = 0; i < images->count; i++)
        image_done(&images->items[i].image);
    free(images->items);
    *images = (struct disk_images){ 0 };
}

const struct disk_image *disk_images_find(const struct disk_images *images, const char *digest)
{
    for (size_t i = 0; i < images->count; i++)
        if (strcmp(images->items[i].image.digest, digest) == 0)
            return &images->items[i];
    return NULL;
}

/* Removing. */

/* The lock of its installs is had. */
static int retire_locked(const char *path, char **ret_path)
{
    _cleanup_close_ int user_fd = lock_user_file(path);

    if (user_fd < 0 && user_fd != -ENOENT && user_fd != -EBADMSG) /* without: no users */
        return user_fd == -EWOULDBLOCK ? -EBUSY : user_fd;
    return image_move_aside(path, ret_path);
}

int disk_image_retire(const char *directory, const char *digest, char **ret_path)
{
    _cleanup_free_ char *path = NULL, *lock_path = NULL;
    int install_fd, ret;

    if (asprintf(&path, "%s/%s", directory, digest) < 0)
        path = NULL;
    if (asprintf(&lock_path, "%s/%s" IMAGE_LOCK_MARK, directory, digest) < 0)
        lock_path = NULL;
    if (!path || !lock_path)
        return -ENOMEM;
    install_fd = image_lock_take(lock_path);
    if (install_fd < 0)
        return install_fd == -EWOULDBLOCK ? -EAGAIN : install_fd;
    ret = retire_locked(path, ret_path);
    image_lock_give(lock_path, path, install_fd);
    return ret;
}
