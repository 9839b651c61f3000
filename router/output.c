/* output.c - see output.h. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

#include "buf.h"
#include "log.h"
#include "log_relay.h"
#include "router_limits.h"

#define CUT_MARK "…"

struct output {
    struct list node;
    struct loop *loop;
    char *name;
    int fd;
    struct loop_io *io;
    struct buf line;
    bool cut; /* the rest of the line is dropped */
    uint64_t second_ms;
    unsigned lines; /* in that second */
    uint64_t suppressed;
};

static void output_free(struct output *output)
{
    list_remove(&output->node);
    loop_io_free(output->io);
    closep(&output->fd);
    buf_done(&output->line);
    free(output->name);
    free(output);
}

static void tell_suppressed(struct output *output)
{
    if (output->suppressed > 0)
        log_event(LOG_WARN, "adapter_log_suppressed", log_text("adapter", output->name),
                  log_uint("lines", output->suppressed));
    output->suppressed = 0;
}

static bool may_log(struct output *output)
{
    uint64_t now_ms = loop_now_ms(output->loop);

    if (now_ms - output->second_ms >= 1000) {
        tell_suppressed(output);
        output->second_ms = now_ms;
        output->lines = 0;
    }
    if (output->lines == OUTPUT_LINES_PER_SECOND) {
        output->suppressed++;
        return false;
    }
    output->lines++;
    return true;
}

static void end_line(struct output *output)
{
    const char *text;

    if (output->cut)
        (void)buf_append_text(&output->line, CUT_MARK); /* a lost mark is no loss */
    text = buf_text(&output->line);
    if (text && output->line.size > 0 && may_log(output) &&
        !log_relay(output->name, text, output->line.size))
        log_event(LOG_INFO, "adapter_log", log_text("adapter", output->name),
                  log_text("line", text));
    buf_clear(&output->line);
    output->cut = false;
}

static void take_bytes(struct output *output, const char *bytes, size_t size)
{
    while (size > 0) {
        const char *end = memchr(bytes, '\n', size);
        size_t length = end ? (size_t)(end - bytes) : size;
        size_t room = OUTPUT_LINE_MAX_BYTES - output->line.size;
        size_t taken = output->cut ? 0 : length < room ? length : room;

        if (taken < length)
            output->cut = true;
        if (buf_append(&output->line, bytes, taken) < 0)
            output->cut = true;
        if (end)
            end_line(output);
        length += end != NULL;
        bytes += length;
        size -= length;
    }
}

static void on_readable(void *ctx, uint32_t events)
{
    struct output *output = ctx;
    char bytes[8192];
    ssize_t size = read(output->fd, bytes, sizeof(bytes));

    if (size > 0) {
        take_bytes(output, bytes, (size_t)size);
        return;
    }
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    end_line(output);
    tell_suppressed(output);
    output_free(output);
}

static void close_oldest_over_limit(struct list *list)
{
    unsigned count = 0;

    LIST_FOREACH(node, list)
    count++;
    if (count >= OUTPUTS_MAX)
        output_free(LIST_ENTRY(list->next, struct output, node));
}

int output_open(struct loop *loop, const char *name, struct list *list, int *ret_fd)
{
    struct output *output = calloc(1, sizeof(*output));
    int ends[2];
    int result;

    if (!output)
        return -ENOMEM;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        free(output);
        return -errno;
    }
    *output = (struct output){ .loop = loop, .fd = ends[0], .name = strdup(name) };
    list_init(&output->node);
    result = output->name ? 0 : -ENOMEM;
    if (result == 0 && fcntl(output->fd, F_SETFL, O_NONBLOCK) < 0)
        result = -errno;
    if (result == 0)
        result = loop_io_new(loop, output->fd, EPOLLIN, on_readable, output, &output->io);
    if (result < 0) {
        output_free(output);
        closep(&ends[1]);
        return result;
    }
    close_oldest_over_limit(list);
    list_append(list, &output->node);
    *ret_fd = ends[1];
    return 0;
}

void output_close_all(struct list *list)
{
    while (!list_empty(list))
        output_free(LIST_ENTRY(list->next, struct output, node));
}
