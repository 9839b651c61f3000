/* ready.c - see ready.h. A reader that is gone or full misses lines; the router never waits. */
#include "ready.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

int ready_open(struct ready *ready, int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return -EBADF;
    if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return -errno;
    ready->fd = fd;
    return 0;
}

static void say(const struct ready *ready, const char *line, size_t size)
{
    if (ready->fd >= 0)
        (void)!write(ready->fd, line, size); /* see above */
}

void ready_listening(const struct ready *ready, uint16_t web_port)
{
    char line[32];
    int size = snprintf(line, sizeof(line), "listening %u\n", web_port);

    say(ready, line, (size_t)size);
}

void ready_binding_changed(void *ctx, const struct binding *binding)
{
    const struct ready *ready = ctx;
    char line[256];
    int size;

    if (binding->state != BINDING_BOUND)
        return;
    size = snprintf(line, sizeof(line), "bound %s\n", binding->name);
    if (size > 0 && (size_t)size < sizeof(line))
        say(ready, line, (size_t)size);
}

void ready_close(struct ready *ready)
{
    closep(&ready->fd);
}
