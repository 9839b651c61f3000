/* devices.c - see devices.h. */
#include "devices.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "cleanup.h"
#include "log.h"

#define MODULES_ORDER "/modules.order"
#define MODULES_FOLDER "/lib/modules"
#define PORTS_FOLDER "/sys/class/virtio-ports"
#define BLOCK_FOLDER "/sys/class/block"
#define UEVENT_GROUP 1u

static int module_load(const char *name)
{
    char path[512];
    _cleanup_close_ int fd = -1;

    (void)snprintf(path, sizeof(path), MODULES_FOLDER "/%s", name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
        return -errno;
    (void)unlink(path);
    return 0;
}

int devices_load_modules(void)
{
    char name[256];
    int result = 0;
    FILE *list = fopen(MODULES_ORDER, "re");

    if (!list)
        return errno == ENOENT ? 0 : -errno;
    while (result == 0 && fgets(name, sizeof(name), list)) {
        name[strcspn(name, "\n")] = 0;
        if (!*name)
            continue;
        result = module_load(name);
        if (result < 0)
            log_event(LOG_ERROR, "module_failed", log_text("name", name),
                      log_text("error", strerror(-result)));
    }
    (void)fclose(list);
    (void)unlink(MODULES_ORDER);
    return result;
}

int devices_listen(void)
{
    const struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = UEVENT_GROUP };
    _cleanup_close_ int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC,
                                    NETLINK_KOBJECT_UEVENT);

    if (fd < 0 ||
        bind(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)) < 0)
        return -errno;
    return take_fd(&fd);
}

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for any announcement; what it says is found by looking. 0 or -errno. */
static int announcement_await(int listen_fd, int64_t until_ms)
{
    struct pollfd source = { .fd = listen_fd, .events = POLLIN };
    const int64_t left_ms = until_ms - now_ms();
    char text[4096];
    int count;

    if (left_ms <= 0)
        return -ETIMEDOUT;
    count = poll(&source, 1, (int)left_ms);
    if (count == 0)
        return -ETIMEDOUT;
    if (count < 0)
        return errno == EINTR ? 0 : -errno;
    (void)recv(listen_fd, text, sizeof(text), 0); /* -ENOBUFS: some were lost, look anyway */
    return 0;
}

int devices_await(int listen_fd, const char *path, int timeout_ms)
{
    const int64_t until_ms = now_ms() + timeout_ms;
    int result = 0;

    while (result == 0 && access(path, F_OK) < 0)
        result = announcement_await(listen_fd, until_ms);
    return result;
}

/* A class of devices, and the file in which each has its name. */
struct device_class {
    const char *folder;
    const char *attribute;
};
static const struct device_class ports_class = { PORTS_FOLDER, "name" };
static const struct device_class disks_class = { BLOCK_FOLDER, "serial" };

/* Whether the device of this entry has that name. */
static bool device_matches(const struct device_class *of, const char *entry, const char *name)
{
    char path[512], text[128];
    _cleanup_close_ int fd = -1;
    ssize_t size;

    (void)snprintf(path, sizeof(path), "%s/%s/%s", of->folder, entry, of->attribute);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (size < 0)
        return false;
    text[size] = 0;
    text[strcspn(text, "\n")] = 0;
    return strcmp(text, name) == 0;
}

/* 0, or -ENOENT: no such device yet. */
static int device_find(const struct device_class *of, const char *name, char *ret_path,
                       size_t size)
{
    DIR *devices = opendir(of->folder);
    struct dirent *entry;
    int result = -ENOENT;

    if (!devices)
        return -ENOENT;
    while (result < 0 && (entry = readdir(devices))) {
        if (entry->d_name[0] == '.' || !device_matches(of, entry->d_name, name))
            continue;
        (void)snprintf(ret_path, size, "/dev/%s", entry->d_name);
        result = 0;
    }
    (void)closedir(devices);
    return result;
}

/* While the host's end is closed the port says HUP, at once and for ever; so only changes are
 * listened for. */
static int port_await_host(int fd, int64_t until_ms)
{
    struct epoll_event event = { .events = EPOLLOUT | EPOLLET };
    _cleanup_close_ int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

    if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        return -errno;
    for (;;) {
        struct pollfd port = { .fd = fd, .events = POLLOUT };
        const int64_t left_ms = until_ms - now_ms();

        if (poll(&port, 1, 0) > 0 && !(port.revents & POLLHUP))
            return 0;
        if (left_ms <= 0)
            return -ETIMEDOUT;
        (void)epoll_wait(epoll_fd, &event, 1, (int)left_ms);
    }
}

int devices_open_port(int listen_fd, const char *name, int timeout_ms)
{
    const int64_t until_ms = now_ms() + timeout_ms;
    _cleanup_close_ int fd = -1;
    char path[512];
    int result;

    while ((result = device_find(&ports_class, name, path, sizeof(path))) == -ENOENT) {
        result = announcement_await(listen_fd, until_ms);
        if (result < 0)
            return result;
    }
    result = devices_await(listen_fd, path, timeout_ms);
    if (result < 0)
        return result;
    fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    result = port_await_host(fd, until_ms);
    return result < 0 ? result : take_fd(&fd);
}

/* All disks of a machine have been probed by the time its root is there, and this one with
 * them.
 */
int devices_open_disk(const char *serial)
{
    char path[512];
    int fd, result = device_find(&disks_class, serial, path, sizeof(path));

    if (result < 0)
        return result;
    fd = open(path, O_RDWR | O_DIRECT | O_EXCL | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}
