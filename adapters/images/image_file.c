/* image_file.c - see image_file.h. */
#include "image_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "codec.h"
#include "file.h"
#include "json_scan.h"

#define ENTRIES_MAX 64 /* at the top level of an image's folder */

/* Reading. */

static int read_text(struct span value, char **ret_text)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };

    if (!value.data || json_kind(value) != JSON_STRING ||
        json_string_decode(value, &text) < 0 ||
        memchr(text.data ? text.data : (void *)"", 0, text.size))
        return -EBADMSG;
    *ret_text = (char *)buf_take(&text, NULL);
    return *ret_text ? 0 : -ENOMEM;
}

static int read_env(struct span value, struct text_list *ret_env)
{
    struct json_iterator iterator;
    struct span key, item;

    if (!value.data)
        return 0;
    if (json_kind(value) != JSON_ARRAY)
        return -EBADMSG;
    iterator = json_iterate(value);
    while (json_next(&iterator, &key, &item)) {
        _cleanup_free_ char *text = NULL;
        int ret = read_text(item, &text);

        if (ret < 0)
            return ret;
        if (text_list_append(ret_env, text) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int read_workdir(struct span value, char **ret_workdir)
{
    int ret;

    if (!value.data) {
        *ret_workdir = strdup("/");
        return *ret_workdir ? 0 : -ENOMEM;
    }
    ret = read_text(value, ret_workdir);
    return ret == 0 && **ret_workdir != '/' ? -EBADMSG : ret;
}

static int check_files(int directory_fd, struct span files)
{
    struct json_iterator iterator;
    struct span key, item;

    if (!files.data || json_kind(files) != JSON_ARRAY)
        return -EBADMSG;
    iterator = json_iterate(files);
    while (json_next(&iterator, &key, &item)) {
        _cleanup_free_ char *name = NULL;
        struct span size_bytes;
        struct stat status;
        uint64_t size;

        if (json_kind(item) != JSON_OBJECT || read_text(json_get(item, "name"), &name) < 0 ||
            fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            return -EBADMSG;
        size_bytes = json_get(item, "size_bytes");
        if (S_ISREG(status.st_mode) &&
            (!size_bytes.data || json_as_u64(size_bytes, &size) < 0 ||
             size != (uint64_t)status.st_size))
            return -EBADMSG;
    }
    return 0;
}

/* Env and workdir of image.json or config.json; *ret_object is the whole, inside TEXT. */
static int read_common(const struct buf *text, struct span *ret_object,
                       struct text_list *ret_env, char **ret_workdir)
{
    int ret;

    if (json_scan((const char *)text->data, text->size, ret_object, NULL) < 0 ||
        json_kind(*ret_object) != JSON_OBJECT)
        return -EBADMSG;
    ret = read_env(json_get(*ret_object, "env"), ret_env);
    return ret < 0 ? ret : read_workdir(json_get(*ret_object, "workdir"), ret_workdir);
}

/* Nothing else that has the name: opening a FIFO would wait for its other end. */
static int open_at(int directory_fd, const char *name)
{
    _cleanup_close_ int fd = openat(directory_fd, name,
                                    O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return -errno;
    return S_ISREG(status.st_mode) ? take_fd(&fd) : -EBADMSG;
}

static int read_at(int directory_fd, const char *name, size_t max_bytes, struct buf *ret_text)
{
    _cleanup_close_ int fd = open_at(directory_fd, name);
    char path[64];

    if (fd < 0)
        return fd;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return file_read(path, max_bytes, ret_text);
}

static int open_directory(const char *directory)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

int image_part_open(const char *directory, const char *name)
{
    _cleanup_close_ int fd = open_directory(directory);

    return fd < 0 ? fd : open_at(fd, name);
}

int image_part_read(const char *directory, const char *name, size_t max_bytes,
                    struct buf *ret_text)
{
    _cleanup_close_ int fd = open_directory(directory);

    return fd < 0 ? fd : read_at(fd, name, max_bytes, ret_text);
}

int image_file_read(const char *directory, struct image *ret_image)
{
    _cleanup_close_ int fd = open_directory(directory);
    _cleanup_(buf_done)
    struct buf text = { 0 };
    struct image image = { 0 };
    struct span object;
    int ret = fd < 0 ? fd : read_at(fd, IMAGE_FILE_NAME, IMAGE_FILE_MAX_BYTES, &text);

    if (ret < 0)
        return ret;
    ret = read_common(&text, &object, &image.env, &image.workdir);
    if (ret == 0)
        ret = read_text(json_get(object, "name"), &image.name);
    if (ret == 0)
        ret = read_text(json_get(object, "source"), &image.source);
    if (ret == 0)
        ret = check_files(fd, json_get(object, "files"));
    if (ret < 0) {
        image_done(&image);
        return ret;
    }
    *ret_image = image;
    return 0;
}

/* Writing. */

static int append_text(struct buf *to, const char *text)
{
    return json_append_string(to, text, strlen(text));
}

static int append_entry(struct buf *to, int directory_fd, const char *name,
                        char ret_why[IMAGE_WHY_MAX])
{
    struct stat status;
    int ret;

    if (fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
        (void)snprintf(ret_why, IMAGE_WHY_MAX, "%s is neither a file nor a folder", name);
        return -EBADMSG;
    }
    ret = buf_append_text(to, "{\"name\":");
    if (ret == 0)
        ret = append_text(to, name);
    return ret < 0 ? ret
                   : buf_printf(to, ",\"size_bytes\":%jd}",
                                S_ISREG(status.st_mode) ? (intmax_t)status.st_size : 0);
}

static int append_files(struct buf *to, int directory_fd, char ret_why[IMAGE_WHY_MAX])
{
    int copy = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;
    unsigned count = 0;
    int ret = directory ? buf_append_byte(to, '[') : -errno;

    while (ret == 0 && (entry = readdir(directory))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (count == ENTRIES_MAX) {
            (void)snprintf(ret_why, IMAGE_WHY_MAX, "more than %d files", ENTRIES_MAX);
            ret = -EBADMSG;
            break;
        }
        if (count++ > 0)
            ret = buf_append_byte(to, ',');
        if (ret == 0)
            ret = append_entry(to, directory_fd, entry->d_name, ret_why);
    }
    if (directory)
        (void)closedir(directory); /* only read */
    if (ret == 0 && count == 0) {
        (void)snprintf(ret_why, IMAGE_WHY_MAX, "no files");
        return -EBADMSG;
    }
    return ret < 0 ? ret : buf_append_byte(to, ']');
}

static int append_image(struct buf *to, const struct image *image, const char *source)
{
    int ret = buf_append_text(to, "{\"name\":");

    if (ret == 0)
        ret = append_text(to, image->name);
    if (ret == 0)
        ret = buf_append_text(to, ",\"source\":");
    if (ret == 0)
        ret = append_text(to, source);
    if (ret == 0)
        ret = buf_append_text(to, ",\"workdir\":");
    if (ret == 0)
        ret = append_text(to, image->workdir);
    if (ret == 0)
        ret = buf_append_text(to, ",\"env\":[");
    for (size_t i = 0; ret == 0 && i < image->env.count; i++) {
        if (i > 0)
            ret = buf_append_byte(to, ',');
        if (ret == 0)
            ret = append_text(to, image->env.items[i]);
    }
    return ret < 0 ? ret : buf_append_text(to, "],\"files\":");
}

/* The installer's config.json, or the defaults without one; it is removed. */
static int take_config(int directory_fd, struct image *ret_image, char ret_why[IMAGE_WHY_MAX])
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    struct span object;
    int ret = read_at(directory_fd, IMAGE_CONFIG_NAME, IMAGE_FILE_MAX_BYTES, &text);

    if (ret == -ENOENT)
        return read_workdir((struct span){ 0 }, &ret_image->workdir);
    if (ret == 0)
        ret = read_common(&text, &object, &ret_image->env, &ret_image->workdir);
    if (ret == 0 && unlinkat(directory_fd, IMAGE_CONFIG_NAME, 0) < 0)
        ret = -errno;
    if (ret < 0)
        (void)snprintf(ret_why, IMAGE_WHY_MAX, "%s: %s", IMAGE_CONFIG_NAME,
                       ret == -EBADMSG ? "neither absent nor a file of {env, workdir}"
                       : ret == -EFBIG ? "larger than 1 MiB"
                                       : strerror(-ret));
    return ret;
}

static int write_at(int directory_fd, const struct buf *text)
{
    _cleanup_close_ int fd = openat(directory_fd, IMAGE_FILE_NAME,
                                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    size_t done = 0;

    if (fd < 0)
        return -errno;
    while (done < text->size) {
        ssize_t written = write(fd, text->data + done, text->size - done);

        if (written < 0 && errno != EINTR)
            return -errno;
        if (written > 0)
            done += (size_t)written;
    }
    return 0;
}

int image_file_write(const char *directory, const char *name, const char *source,
                     char ret_why[IMAGE_WHY_MAX])
{
    _cleanup_close_ int fd = open_directory(directory);
    _cleanup_(buf_done)
    struct buf text = { .limit = IMAGE_FILE_MAX_BYTES };
    struct image image = { .name = (char *)name }; /* only read */
    int ret = fd < 0 ? fd : 0;

    *ret_why = '\0';
    if (ret == 0)
        ret = take_config(fd, &image, ret_why);
    if (ret == 0)
        ret = append_image(&text, &image, source);
    if (ret == 0)
        ret = append_files(&text, fd, ret_why);
    if (ret == 0)
        ret = buf_append_byte(&text, '}');
    if (ret == 0)
        ret = write_at(fd, &text);
    free(image.workdir);
    text_list_done(&image.env);
    if (ret < 0 && !*ret_why)
        (void)snprintf(ret_why, IMAGE_WHY_MAX, "%s", strerror(-ret));
    return ret;
}
