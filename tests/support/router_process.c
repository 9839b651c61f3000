/* router_process.c - see router_process.h. */
#include "router_process.h"

#include <arpa/inet.h>
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "buf.h"
#include "proc.h"
#include "turn.h"

#define READY_FD 9
#define WAIT_MS 30000

/* One pipe from the router: all that came, and how far the waits have read. */
struct output {
    struct loop_io *io;
    int fd;
    struct buf text;
    size_t seen;
};

struct router_process {
    struct loop *loop;
    char folder[64];
    char config[96];
    char url[112];
    uint16_t port;
    pid_t pid;
    struct loop_child *child;
    bool ended;
    int status;
    struct output ready;
    struct output log;
};

/* Output. */

static void on_output(void *ctx, uint32_t events)
{
    struct output *output = ctx;
    uint8_t bytes[16384];
    ssize_t size = read(output->fd, bytes, sizeof(bytes));

    if (size > 0)
        ck_assert_int_eq(buf_append(&output->text, bytes, (size_t)size), 0);
    else if (size == 0)
        loop_io_free(take_ptr(output->io));
}

static int output_open(struct loop *loop, struct output *output)
{
    int ends[2];

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    output->fd = ends[0];
    ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(loop_io_new(loop, ends[0], EPOLLIN, on_output, output, &output->io), 0);
    return ends[1];
}

static void output_close(struct output *output)
{
    loop_io_free(output->io);
    closep(&output->fd);
    buf_done(&output->text);
}

/* The first line with TEXT behind what was seen, whole; NULL: not yet. */
static const char *output_find(struct output *output, const char *text)
{
    const char *start = buf_text(&output->text) + output->seen;
    const char *found = strstr(start, text);
    const char *end = found ? strchr(found, '\n') : NULL;

    if (!end)
        return NULL;
    while (found > start && found[-1] != '\n')
        found--;
    output->seen = (size_t)(end + 1 - buf_text(&output->text));
    return found;
}

static const char *output_await(struct router_process *router, struct output *output,
                                const char *text)
{
    uint64_t end_ms = loop_now_ms(router->loop) + WAIT_MS;
    const char *line;

    while ((line = output_find(output, text)) == NULL) {
        if (router->ended || loop_now_ms(router->loop) >= end_ms)
            ck_abort_msg("the router never said %s; its log:\n%s", text,
                         buf_text(&router->log.text));
        ck_assert_int_eq(loop_turn(router->loop, 1000), 0);
    }
    return line;
}

void router_process_await_bound(struct router_process *router, const char *name)
{
    char line[256];

    (void)snprintf(line, sizeof(line), "bound %s\n", name);
    (void)output_await(router, &router->ready, line);
}

const char *router_process_await_log(struct router_process *router, const char *text)
{
    return output_await(router, &router->log, text);
}

unsigned router_process_log_count(struct router_process *router, const char *text)
{
    unsigned count = 0;

    for (const char *at = buf_text(&router->log.text); (at = strstr(at, text)) != NULL; count++)
        at += strlen(text);
    return count;
}

/* Life. */

void router_process_configure(struct router_process *router, const char *sandbox)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s.new", router->config);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(fprintf(file,
                             "sandbox:\n  runtime_dir: %s/run\n  listen: ['127.0.0.1:0']\n%s",
                             router->folder, sandbox),
                     0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(rename(path, router->config), 0);
}

static void on_ended(void *ctx, int wait_status)
{
    struct router_process *router = ctx;

    router->ended = true;
    router->status = wait_status;
}

static void spawn(struct router_process *router, const struct router_process_options *options)
{
    char program[512];
    const char *const argv[] = { "sandbox-router",
                                 "--config",
                                 router->config,
                                 "--ready-fd",
                                 "9",
                                 "--log-format",
                                 options->log_format ? options->log_format : "kv",
                                 "--log-level",
                                 options->log_level ? options->log_level : "info",
                                 NULL };
    int ready = output_open(router->loop, &router->ready);
    int log = output_open(router->loop, &router->log);
    const struct proc_fd fds[] = { { ready, READY_FD }, { log, STDERR_FILENO } };
    struct proc_spec spec = { .program = program,
                              .argv = argv,
                              .fds = fds,
                              .fd_count = ARRAY_SIZE(fds),
                              .die_with_parent = true };

    (void)snprintf(program, sizeof(program), "%s/sandbox-router", getenv("SANDBOX_BIN"));
    if (options->program)
        spec.program = options->program;
    ck_assert_int_eq(
        loop_spawn(router->loop, &spec, on_ended, router, &router->pid, &router->child), 0);
    closep(&ready);
    closep(&log);
}

struct router_process *router_process_start(struct loop *loop, const char *sandbox)
{
    return router_process_start_with(loop,
                                     &(struct router_process_options){ .sandbox = sandbox });
}

struct router_process *router_process_start_with(struct loop *loop,
                                                 const struct router_process_options *options)
{
    struct router_process *router = calloc(1, sizeof(*router));
    const char *port;

    ck_assert_ptr_nonnull(router);
    router->loop = loop;
    (void)snprintf(router->folder, sizeof(router->folder), "/tmp/router-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(router->folder));
    (void)snprintf(router->config, sizeof(router->config), "%s/config.yaml", router->folder);
    (void)snprintf(router->url, sizeof(router->url), "ipc://%s/run/router.sock",
                   router->folder);
    router_process_configure(router, options->sandbox);
    spawn(router, options);
    port = output_await(router, &router->ready, "listening ");
    router->port = (uint16_t)strtoul(port + strlen("listening "), NULL, 10);
    return router;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

int router_process_stop(struct router_process *router)
{
    int status;

    (void)loop_child_kill(router->child,
                          SIGTERM); /* -ESRCH: it has ended, which is told below */
    TURN_UNTIL(router->loop, router->ended);
    status = router->status;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        ck_abort_msg("the router ended with status %#x; its log:\n%s", (unsigned)status,
                     buf_text(&router->log.text));
    loop_child_free(router->child);
    output_close(&router->ready);
    output_close(&router->log);
    (void)nftw(router->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* else left in /tmp */
    free(router);
    return WEXITSTATUS(status);
}

const char *router_process_url(const struct router_process *router)
{
    return router->url;
}

const char *router_process_socket(const struct router_process *router)
{
    return router->url + strlen("ipc://");
}

const char *router_process_config(const struct router_process *router)
{
    return router->config;
}

uint16_t router_process_port(const struct router_process *router)
{
    return router->port;
}

pid_t router_process_pid(const struct router_process *router)
{
    return router->pid;
}

void router_process_signal(struct router_process *router, int signal_number)
{
    ck_assert_int_eq(loop_child_kill(router->child, signal_number), 0);
}

/* What the kernel knows of it. */

size_t router_process_rss_bytes(const struct router_process *router)
{
    char path[64];
    unsigned long total, resident;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/statm", router->pid);
    file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%lu %lu", &total, &resident), 2);
    ck_assert_int_eq(fclose(file), 0);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

unsigned router_process_descriptors(const struct router_process *router)
{
    char path[64];
    unsigned count = 0;
    DIR *directory;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", router->pid);
    directory = opendir(path);
    ck_assert_ptr_nonnull(directory);
    while (readdir(directory))
        count++;
    ck_assert_int_eq(closedir(directory), 0);
    return count - 2; /* . and .. */
}

char *router_process_get(struct router_process *router, const char *path)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(router->port) };
    _cleanup_(buf_done)
    struct buf text = { 0 };
    _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char bytes[4096];
    ssize_t size;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    size = snprintf(bytes, sizeof(bytes), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    ck_assert_int_eq(send(fd, bytes, (size_t)size, MSG_NOSIGNAL), size);
    while ((size = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        ck_assert_int_eq(buf_append(&text, bytes, (size_t)size), 0);
    ck_assert_ptr_nonnull(buf_text(&text));
    return (char *)buf_take(&text, NULL);
}
