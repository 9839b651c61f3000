/* state_folder.c - see state_folder.h. Both small files are one line, whose last word may hold
 * anything. */
#include "state_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "file.h"

#define SMALL_FILE_MAX_BYTES 1024

int state_folder_open(const char *root, const char *key, struct state_folder *ret_folder)
{
    char *path;

    if (asprintf(&path, "%s/%s", root, key) < 0)
        return -ENOMEM;
    *ret_folder = (struct state_folder){ .path = path, .lock_fd = -1 };
    return 0;
}

int state_folder_make(const struct state_folder *folder)
{
    char *key = strrchr(folder->path, '/');
    int result;

    *key = 0;
    result = mkdir(folder->path, 0700) < 0 && errno != EEXIST ? -errno : 0;
    *key = '/';
    if (result == 0 && mkdir(folder->path, 0700) < 0 && errno != EEXIST)
        result = -errno;
    return result;
}

void state_folder_done(struct state_folder *folder)
{
    closep(&folder->lock_fd);
    free(folder->path);
    folder->path = NULL;
}

int state_folder_lock(struct state_folder *folder)
{
    _cleanup_close_ int fd = -1;
    char path[4096];

    if (snprintf(path, sizeof(path), "%s/lock", folder->path) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -errno;
    folder->lock_fd = take_fd(&fd);
    return 0;
}

int state_folder_set_holder(const struct state_folder *folder,
                            const struct state_holder *holder)
{
    char path[4096], temporary[4096];
    FILE *file;
    bool written;

    if (snprintf(path, sizeof(path), "%s/holder", folder->path) >= (int)sizeof(path) - 4)
        return -ENAMETOOLONG;
    if (!holder)
        return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
    (void)snprintf(temporary, sizeof(temporary), "%s/holder.new", folder->path);
    file = fopen(temporary, "we");
    if (!file)
        return -errno;
    written = fprintf(file, "%s %s", holder->vm_id, holder->instance) > 0;
    if (fclose(file) != 0 || !written)
        return -EIO;
    return rename(temporary, path) < 0 ? -errno : 0;
}

/* NULL: there is no such file, or it is not one of ours. */
static const char *read_small(const struct state_folder *folder, const char *name,
                              struct buf *text)
{
    char path[4096];

    if (snprintf(path, sizeof(path), "%s/%s", folder->path, name) >= (int)sizeof(path) ||
        file_read(path, SMALL_FILE_MAX_BYTES, text) < 0 ||
        (text->size > 0 && memchr(text->data, 0, text->size)))
        return NULL;
    return buf_text(text);
}

/* The first word of *TEXT, which moves behind it. False: it is not there or does not fit. */
static bool take_word(const char **text, char *ret_word, size_t size)
{
    const char *end = strchr(*text, ' ');

    if (!end || (size_t)(end - *text) >= size)
        return false;
    memcpy(ret_word, *text, (size_t)(end - *text));
    ret_word[end - *text] = 0;
    *text = end + 1;
    return true;
}

void state_folder_holder(const struct state_folder *folder, struct state_holder *ret_holder)
{
    _cleanup_(buf_done)
    struct buf buf = { 0 };
    const char *text = read_small(folder, "holder", &buf);

    *ret_holder = (struct state_holder){ 0 };
    if (text && take_word(&text, ret_holder->vm_id, sizeof(ret_holder->vm_id)))
        (void)snprintf(ret_holder->instance, sizeof(ret_holder->instance), "%s", text);
}

/* A mark without what it is of says nothing. */
static bool has_data(const struct state_folder *folder)
{
    char path[4096];

    return snprintf(path, sizeof(path), "%s/state/data", folder->path) < (int)sizeof(path) &&
           access(path, F_OK) == 0;
}

void state_folder_mark(const struct state_folder *folder, struct state_mark *ret_mark)
{
    _cleanup_(buf_done)
    struct buf buf = { 0 };
    const char *text = read_small(folder, "state/mark", &buf);
    struct state_mark mark = { 0 };
    char chosen[2];

    *ret_mark = mark;
    if (!text || !has_data(folder) || !take_word(&text, mark.digest, sizeof(mark.digest)) ||
        strlen(mark.digest) != HASH_SHA256_HEX_BYTES - 1 ||
        !take_word(&text, chosen, sizeof(chosen)) || strlen(text) >= sizeof(mark.image))
        return;
    mark.image_chosen = chosen[0] == '1';
    (void)snprintf(mark.image, sizeof(mark.image), "%s", text);
    *ret_mark = mark;
}

char *state_mark_text(const struct state_mark *mark)
{
    char *text;

    return asprintf(&text, "%s %d %s", mark->digest, mark->image_chosen, mark->image) < 0
               ? NULL
               : text;
}
