/* image_remove.c - see image_remove.h. The work is rm(1)'s, so that the loop never waits. */
#include "image_remove.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "image_lock.h"
#include "log.h"

#define LEFTOVERS_MAX 256 /* in one go; the next install takes the rest */

struct image_removal {
    struct list node;
    struct loop_child *child;
    void (*done)(void *ctx);
    void *ctx;
};

static void removal_free(struct image_removal *removal)
{
    list_remove(&removal->node);
    loop_child_free(removal->child);
    free(removal);
}

static void on_removed(void *ctx, int wait_status)
{
    struct image_removal *removal = ctx;
    void (*done)(void *) = removal->done;
    void *done_ctx = removal->ctx;

    if (wait_status != 0)
        log_event(LOG_WARN, "image_not_removed", log_int("wait_status", wait_status));
    removal_free(removal);
    if (done)
        done(done_ctx);
}

static int removal_start(struct loop *loop, struct image_removal *removal,
                         const struct text_list *paths)
{
    static const char *const options[] = { "rm", "-rf", "--one-file-system", "--" };
    size_t count = ARRAY_SIZE(options);
    _cleanup_free_ const char **argv = calloc(count + paths->count + 1, sizeof(*argv));

    if (!argv)
        return -ENOMEM;
    memcpy(argv, options, sizeof(options));
    for (size_t i = 0; i < paths->count; i++)
        argv[count++] = paths->items[i];
    return loop_spawn(loop,
                      &(struct proc_spec){ .program = "rm", .argv = argv, .new_session = true },
                      on_removed, removal, NULL, &removal->child);
}

int image_remove(struct loop *loop, const struct text_list *paths, struct list *all,
                 void (*done)(void *ctx), void *ctx)
{
    struct image_removal *removal = calloc(1, sizeof(*removal));
    int ret;

    if (!removal)
        return -ENOMEM;
    removal->done = done;
    removal->ctx = ctx;
    list_init(&removal->node);
    ret = removal_start(loop, removal, paths);
    if (ret < 0) {
        removal_free(removal);
        return ret;
    }
    list_append(all, &removal->node);
    return 0;
}

void image_removals_kill(struct list *all)
{
    LIST_FOREACH(node, all)
    removal_free(LIST_ENTRY(node, struct image_removal, node));
}

/* Leftovers. */

int image_move_aside(const char *path, char **ret_path)
{
    _cleanup_free_ char *aside = NULL;

    if (asprintf(&aside, "%s" IMAGE_TEMPORARY_MARK "XXXXXX", path) < 0) {
        aside = NULL;
        return -ENOMEM;
    }
    if (!mkdtemp(aside))
        return -errno;
    if (rename(path, aside) < 0) { /* over the empty folder */
        int ret = -errno;

        (void)rmdir(aside);
        return ret;
    }
    *ret_path = take_ptr(aside);
    return 0;
}

/* Of the image DIGEST; a lock file that nobody needs any more goes. */
static bool lock_is_free(const char *directory, const char *digest, size_t digest_size)
{
    _cleanup_free_ char *path = NULL, *lock_path = NULL;
    int fd = -1;

    if (asprintf(&path, "%s/%.*s", directory, (int)digest_size, digest) < 0)
        path = NULL;
    if (asprintf(&lock_path, "%s/%.*s" IMAGE_LOCK_MARK, directory, (int)digest_size, digest) <
        0)
        lock_path = NULL;
    if (path && lock_path)
        fd = image_lock_take(lock_path);
    if (fd < 0)
        return false;
    image_lock_give(lock_path, path, fd);
    return true;
}

static bool is_leftover(const char *directory, const char *name, const char *own_digest)
{
    const char *mark = strstr(name, IMAGE_TEMPORARY_MARK);
    size_t digest_size = mark ? (size_t)(mark - name) : 0;

    if (digest_size == 0)
        return false;
    if (own_digest && strlen(own_digest) == digest_size &&
        strncmp(name, own_digest, digest_size) == 0)
        return true;
    return lock_is_free(directory, name, digest_size);
}

/* Those of images that are gone, by an older version or a killed process. */
static void sweep_lock(const char *directory, const char *name)
{
    const char *mark = strstr(name, IMAGE_LOCK_MARK);

    if (mark && mark > name && !mark[strlen(IMAGE_LOCK_MARK)])
        (void)lock_is_free(directory, name, (size_t)(mark - name)); /* for what it takes away */
}

static int list_leftovers(const char *path, const char *own_digest, struct text_list *ret_paths)
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    int ret = directory ? 0 : -errno;

    while (ret == 0 && ret_paths->count < LEFTOVERS_MAX && (entry = readdir(directory))) {
        _cleanup_free_ char *leftover = NULL;

        if (!own_digest)
            sweep_lock(path, entry->d_name);
        if (!is_leftover(path, entry->d_name, own_digest))
            continue;
        if (asprintf(&leftover, "%s/%s", path, entry->d_name) < 0) {
            leftover = NULL;
            ret = -ENOMEM;
        } else if (text_list_append(ret_paths, leftover) < 0) {
            ret = -ENOMEM;
        }
    }
    if (directory)
        (void)closedir(directory); /* only read */
    return ret;
}

int image_remove_leftovers(struct loop *loop, const char *directory, const char *own_digest,
                           struct list *all)
{
    struct text_list leftovers = { 0 };
    int ret = list_leftovers(directory, own_digest, &leftovers);

    if (ret == 0 && leftovers.count > 0) {
        log_event(LOG_INFO, "image_leftovers", log_text("directory", directory),
                  log_uint("count", leftovers.count));
        ret = image_remove(loop, &leftovers, all, NULL, NULL);
    }
    text_list_done(&leftovers);
    return ret;
}
