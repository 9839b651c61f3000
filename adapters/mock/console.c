/* console.c - see console.h. */
#include "console.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

#include "buf.h"
#include "utf8.h"

struct console {
    int fd;
    struct loop_io *io;
    struct buf tail; /* at most twice CONSOLE_BYTES_MAX */
    struct buf shown;
};

static void console_keep(struct console *console, const char *data, size_t size)
{
    if (size > CONSOLE_BYTES_MAX) {
        data += size - CONSOLE_BYTES_MAX;
        size = CONSOLE_BYTES_MAX;
    }
    if (console->tail.size + size > CONSOLE_BYTES_MAX)
        buf_consume(&console->tail, console->tail.size + size - CONSOLE_BYTES_MAX);
    (void)buf_append(&console->tail, data, size); /* without memory it is only shorter */
}

/* False: nothing more now. */
static bool console_read(struct console *console)
{
    char data[CONSOLE_BYTES_MAX];
    ssize_t size = read(console->fd, data, sizeof(data));

    if (size > 0)
        console_keep(console, data, (size_t)size);
    else if (size == 0 || errno != EAGAIN)
        loop_io_free(take_ptr(console->io));
    return size > 0;
}

static void console_ready(void *ctx, uint32_t events)
{
    (void)console_read(ctx);
}

int console_new(struct loop *loop, struct console **ret_console, int *ret_their_fd)
{
    _cleanup_(console_freep)
    struct console *console = calloc(1, sizeof(*console));
    _cleanup_close_ int theirs = -1;
    int pair[2], result;

    if (!console)
        return -ENOMEM;
    console->fd = -1;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return -errno;
    console->fd = pair[0];
    theirs = pair[1];
    if (fcntl(console->fd, F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    result = loop_io_new(loop, console->fd, EPOLLIN, console_ready, console, &console->io);
    if (result < 0)
        return result;
    *ret_their_fd = take_fd(&theirs);
    *ret_console = take_ptr(console);
    return 0;
}

/* Where the last CONSOLE_LINES_MAX lines begin. */
static size_t last_lines(const char *text, size_t size)
{
    unsigned lines = 0;
    size_t at = size;

    if (at > 0 && text[at - 1] == '\n')
        at--;
    while (at > 0) {
        if (text[at - 1] == '\n' && ++lines == CONSOLE_LINES_MAX)
            break;
        at--;
    }
    return at;
}

const char *console_tail(struct console *console)
{
    const char *text;
    size_t at;

    while (console->io && console_read(console))
        ;
    text = (const char *)console->tail.data;
    at = last_lines(text, console->tail.size);
    buf_clear(&console->shown);
    if (console->tail.size > at &&
        utf8_repair(&console->shown, text + at, console->tail.size - at) < 0)
        return "";
    text = buf_text(&console->shown);
    if (!text)
        return "";
    return console->shown.size > CONSOLE_BYTES_MAX
               ? text + (console->shown.size - CONSOLE_BYTES_MAX)
               : text;
}

void console_free(struct console *console)
{
    if (!console)
        return;
    loop_io_free(console->io);
    closep(&console->fd);
    buf_done(&console->tail);
    buf_done(&console->shown);
    free(console);
}
