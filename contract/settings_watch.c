/* settings_watch.c - see settings_watch.h. */
#include "settings_watch.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "log.h"

#define SETTLE_MS 100u /* an editor's save is several events */
#define PLACES_MAX 2   /* the path as given, and where it leads */

#define WATCHED_EVENTS                                                                         \
    (IN_CLOSE_WRITE | IN_MODIFY | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE |        \
     IN_ONLYDIR)

struct place {
    int descriptor;
    char *path;       /* of the file */
    const char *name; /* in its folder: a part of path */
};

struct settings_watch {
    void (*changed)(void *ctx);
    void *ctx;
    struct loop_signal *hangup;
    struct loop_timer *settle;
    int inotify_fd;
    struct loop_io *io;
    struct place places[PLACES_MAX];
    unsigned place_count;
};

static void on_settled(void *ctx)
{
    struct settings_watch *watch = ctx;

    watch->changed(watch->ctx);
}

static void on_hangup(void *ctx, int signal_number)
{
    struct settings_watch *watch = ctx;

    loop_timer_arm(watch->settle, 0);
}

/* A file that was made is not there before its writer has closed it; a link is, at once. */
static bool is_whole(const struct place *place)
{
    struct stat status;

    return lstat(place->path, &status) == 0 &&
           (!S_ISREG(status.st_mode) || status.st_nlink > 1);
}

/* Somebody writes. Until it is closed what is there may be half of it, so that what was noticed
 * before waits too; by itself it is no reason to read. */
static bool counts(const struct settings_watch *watch, const struct place *place,
                   uint32_t events)
{
    if (events & IN_MODIFY)
        return loop_timer_armed(watch->settle);
    return !(events & IN_CREATE) || is_whole(place);
}

static bool concerns_us(const struct settings_watch *watch, const struct inotify_event *event)
{
    if (event->mask & IN_Q_OVERFLOW)
        return true;
    for (unsigned i = 0; i < watch->place_count; i++) {
        const struct place *place = &watch->places[i];

        if (place->descriptor == event->wd && event->len > 0 &&
            strcmp(place->name, event->name) == 0 && counts(watch, place, event->mask))
            return true;
    }
    return false;
}

static void on_events(void *ctx, uint32_t events)
{
    struct settings_watch *watch = ctx;
    _Alignas(struct inotify_event) char bytes[4096];
    ssize_t size = read(watch->inotify_fd, bytes, sizeof(bytes));
    ssize_t at = 0;

    while (at < size) {
        const struct inotify_event *event = (const void *)(bytes + at);

        if (concerns_us(watch, event))
            loop_timer_arm(watch->settle, SETTLE_MS);
        at += (ssize_t)sizeof(*event) + event->len;
    }
}

static int add_place(struct settings_watch *watch, const char *path)
{
    struct place *place = &watch->places[watch->place_count];
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *folder = NULL;

    if (!slash)
        folder = strdup(".");
    else
        folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
    place->path = strdup(path);
    if (!place->path || !folder) {
        free(take_ptr(place->path));
        return -ENOMEM;
    }
    place->name = slash ? place->path + (slash - path) + 1 : place->path;
    watch->place_count++;
    place->descriptor = inotify_add_watch(watch->inotify_fd, folder, WATCHED_EVENTS);
    return place->descriptor < 0 ? -errno : 0;
}

static int watch_file(struct settings_watch *watch, struct loop *loop, const char *path)
{
    _cleanup_free_ char *target = realpath(path, NULL);
    int result;

    watch->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch->inotify_fd < 0)
        return -errno;
    result = loop_io_new(loop, watch->inotify_fd, EPOLLIN, on_events, watch, &watch->io);
    if (result == 0)
        result = add_place(watch, path);
    if (result == 0 && target && strcmp(target, path) != 0)
        result = add_place(watch, target);
    return result;
}

int settings_watch_new(struct loop *loop, const char *path, void (*changed)(void *ctx),
                       void *ctx, struct settings_watch **ret_watch)
{
    _cleanup_(settings_watch_freep)
    struct settings_watch *watch = calloc(1, sizeof(*watch));
    int result;

    if (!watch)
        return -ENOMEM;
    *watch = (struct settings_watch){ .changed = changed, .ctx = ctx, .inotify_fd = -1 };
    result = loop_signal_new(loop, SIGHUP, on_hangup, watch, &watch->hangup);
    if (result == 0)
        result = loop_timer_new(loop, on_settled, watch, &watch->settle);
    if (result < 0)
        return result;
    result = watch_file(watch, loop, path);
    if (result < 0)
        log_event(LOG_WARN, "settings_not_watched", log_text("path", path),
                  log_text("why", strerror(-result)));
    *ret_watch = take_ptr(watch);
    return 0;
}

void settings_watch_free(struct settings_watch *watch)
{
    if (!watch)
        return;
    loop_signal_free(watch->hangup);
    loop_timer_free(watch->settle);
    loop_io_free(watch->io);
    closep(&watch->inotify_fd);
    for (unsigned i = 0; i < watch->place_count; i++)
        free(watch->places[i].path);
    free(watch);
}
