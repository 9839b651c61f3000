/* network.c - see network.h. */
#include "network.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend_state.h"
#include "buf.h"
#include "libexec.h"
#include "log.h"
#include "proc.h"

#define RELAY "sandbox-relay"
#define RESTART_MIN_MS 1000u
#define RESTART_MAX_MS 30000u
#define LASTING_MS 60000u         /* a relay that lived so long ended for another reason */
#define RELAY_OPEN_FILES_MAX 1024 /* each connection and each recent name query of a guest */
#define SOCKET_BUFFER_BYTES (4 * 1024 * 1024) /* some dozens of the largest frames */
#define MS_A_SECOND 1000u

enum relay_fd { RELAY_FD_FRAMES = 3, RELAY_FD_REPORT, RELAY_FD_LANDLOCK };

struct network {
    struct list node; /* in backend->networks */
    struct backend *backend;
    char name[64];
    int frames_fd; /* QEMU's end */
    int relay_fd;  /* the relay's end, for the next one as well */
    int report_fd; /* a byte for each second with payload */
    struct loop_io *report_io;
    struct loop_timer *restart;
    uint32_t restart_ms; /* the next one's delay */
    uint64_t started_ms;
    pid_t pid;
    struct loop_child *child;
    bool ipv6;
    bool private_networks;
    char *host_ports; /* `80,443`; "": none */
    bool freed;       /* waits for its process to be reaped */
    int64_t last_payload;
};

#define ADDRESSES_V4                                                                           \
    .address = "10.0.2.15/24", .gateway = "10.0.2.2", .dns = "10.0.2.3", .own_interface = true

static const struct machine_network addresses_v4 = { ADDRESSES_V4 };
static const struct machine_network addresses_both = {
    ADDRESSES_V4,
    .address6 = "fd5a:6b3c:7e21:1::f/64",
    .gateway6 = "fd5a:6b3c:7e21:1::2",
    .dns6 = "fd5a:6b3c:7e21:1::3",
};

const struct machine_network *network_addresses(const struct network *network)
{
    return network->ipv6 ? &addresses_both : &addresses_v4;
}

static void network_release(struct network *network)
{
    list_remove(&network->node);
    loop_child_free(network->child);
    loop_io_free(network->report_io);
    loop_timer_free(network->restart);
    closep(&network->frames_fd);
    closep(&network->relay_fd);
    closep(&network->report_fd);
    free(network->host_ports);
    free(network);
}

void network_free(struct network *network)
{
    if (!network)
        return;
    if (!network->child) {
        network_release(network);
        return;
    }
    network->freed = true;
    (void)loop_child_kill(network->child, SIGKILL); /* -ESRCH: on_ended() is on its way */
}

void networks_end(struct list *networks)
{
    LIST_FOREACH(node, networks)
    {
        struct network *network = LIST_ENTRY(node, struct network, node);
        siginfo_t end = { 0 };

        if (network->child) {
            (void)loop_child_kill(network->child, SIGKILL);
            (void)waitid(P_PID, (id_t)network->pid, &end, WEXITED);
        }
        network_release(network);
    }
}

/* The relay. */

static void on_report(void *ctx, uint32_t events)
{
    struct network *network = ctx;
    char bytes[64];
    ssize_t size = read(network->report_fd, bytes, sizeof(bytes));

    if (size > 0)
        network->last_payload = (int64_t)(loop_now_ms(network->backend->loop) / MS_A_SECOND);
    else if (size == 0 || (errno != EAGAIN && errno != EINTR))
        loop_io_free(take_ptr(network->report_io)); /* its process ends */
}

/* A guest may have found how to end it: that costs a process and a line of the log each time.
 */
static void restart_later(struct network *network)
{
    uint64_t now_ms = loop_now_ms(network->backend->loop);

    if (now_ms - network->started_ms >= LASTING_MS)
        network->restart_ms = RESTART_MIN_MS;
    loop_timer_arm(network->restart, network->restart_ms);
    network->restart_ms *= 2;
    if (network->restart_ms > RESTART_MAX_MS)
        network->restart_ms = RESTART_MAX_MS;
}

static void on_ended(void *ctx, int wait_status)
{
    struct network *network = ctx;

    loop_child_free(take_ptr(network->child));
    if (network->freed) {
        network_release(network);
        return;
    }
    log_event(LOG_WARN, "relay_ended", log_text("vm", network->name),
              log_int("wait_status", wait_status));
    loop_io_free(take_ptr(network->report_io));
    closep(&network->report_fd);
    restart_later(network);
}

/* With the rights of a QEMU, but for the network that it is there for. */
static int relay_confine(struct network *network, char *folder, struct confine *ret_confine)
{
    *ret_confine = network->backend->confine;
    ret_confine->keep_network = true;
    ret_confine->open_files_max = RELAY_OPEN_FILES_MAX;
    ret_confine->program_folder = folder;
    return confine_rules(ret_confine, NULL, 0);
}

static int relay_process(struct network *network, const char *program, char *folder,
                         int report_fd)
{
    const char *argv[10] = { RELAY,          "--frames-fd",      "3", "--report-fd", "4",
                             "--host-ports", network->host_ports };
    size_t argc = 7;
    static_assert(RELAY_FD_FRAMES == 3 && RELAY_FD_REPORT == 4, "as the arguments say");
    static const char *const environment[] = { "PATH=/usr/bin:/bin", "LC_ALL=C", NULL };
    struct confine confine;
    _cleanup_close_ int rules_fd = relay_confine(network, folder, &confine);
    struct confine_child child = { .confine = &confine,
                                   .rules_fd = rules_fd < 0 ? -1 : RELAY_FD_LANDLOCK };
    const struct proc_fd fds[] = { { network->relay_fd, RELAY_FD_FRAMES },
                                   { report_fd, RELAY_FD_REPORT },
                                   { STDERR_FILENO, STDERR_FILENO },
                                   { rules_fd, RELAY_FD_LANDLOCK } };

    if (rules_fd < 0 && confine.landlock > 0)
        return rules_fd;
    if (network->ipv6)
        argv[argc++] = "--ipv6";
    if (network->private_networks)
        argv[argc++] = "--allow-private-networks";
    return loop_spawn(network->backend->loop,
                      &(struct proc_spec){ .program = program,
                                           .argv = argv,
                                           .environment = environment,
                                           .workdir = "/",
                                           .fds = fds,
                                           .fd_count = ARRAY_SIZE(fds) - (rules_fd < 0),
                                           .new_session = true,
                                           .die_with_parent = true,
                                           .before_exec = confine_child,
                                           .before_exec_ctx = &child },
                      on_ended, network, &network->pid, &network->child);
}

static int relay_spawn(struct network *network, int report_fd)
{
    _cleanup_free_ char *program = libexec_find(RELAY);
    _cleanup_free_ char *folder = program ? strdup(program) : NULL;

    if (!program)
        return -ENOENT;
    if (!folder)
        return -ENOMEM;
    *strrchr(folder, '/') = 0;
    return relay_process(network, program, folder, report_fd);
}

static int network_start(struct network *network)
{
    _cleanup_close_ int their_fd = -1;
    int pipe_fds[2], result;

    if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    network->report_fd = pipe_fds[0];
    network->started_ms = loop_now_ms(network->backend->loop);
    their_fd = pipe_fds[1];
    result = relay_spawn(network, their_fd);
    if (result < 0)
        return result;
    return loop_io_new(network->backend->loop, network->report_fd, EPOLLIN, on_report, network,
                       &network->report_io);
}

static void on_restart(void *ctx)
{
    struct network *network = ctx;
    int result = network_start(network);

    if (result == 0)
        return;
    log_event(LOG_ERROR, "relay_not_started", log_text("vm", network->name),
              log_text("error", strerror(-result)));
    closep(&network->report_fd);
    if (!network->child)
        restart_later(network);
}

/* Life. */

/* Whether there is a way to IPv6's public addresses: no packet is sent for the answer. */
static bool has_ipv6(void)
{
    const struct sockaddr_in6 somewhere = { .sin6_family = AF_INET6,
                                            .sin6_port = htons(53),
                                            .sin6_addr.s6_addr = { 0x26 } };
    _cleanup_close_ int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && connect(fd, (const struct sockaddr *)&somewhere, sizeof(somewhere)) == 0;
}

static int join_ports(const struct setting_numbers *ports, char **ret_text)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    int result = buf_append_text(&text, "");

    for (size_t i = 0; result == 0 && i < ports->count; i++)
        result = buf_printf(&text, "%s%u", i ? "," : "", ports->items[i]);
    if (result == 0)
        *ret_text = (char *)buf_take(&text, NULL);
    return result < 0 || !*ret_text ? -ENOMEM : 0;
}

static int network_sockets(struct network *network)
{
    const int size = SOCKET_BUFFER_BYTES;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    network->frames_fd = fds[0];
    network->relay_fd = fds[1];
    for (int i = 0; i < 2; i++) /* as much as the system allows; the default works too */
        (void)setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    return 0;
}

int network_new(struct backend *backend, const char *name, struct network **ret_network)
{
    _cleanup_(network_freep)
    struct network *network = calloc(1, sizeof(*network));
    int result;

    if (!network)
        return -ENOMEM;
    *network = (struct network){
        .backend = backend,
        .frames_fd = -1,
        .relay_fd = -1,
        .report_fd = -1,
        .ipv6 = has_ipv6(),
        .private_networks = backend->settings.allow_private_networks,
        .restart_ms = RESTART_MIN_MS,
        .last_payload = -1,
    };
    list_append(&backend->networks, &network->node);
    (void)snprintf(network->name, sizeof(network->name), "%s", name); /* cut is fine */
    result = join_ports(&backend->settings.host_ports, &network->host_ports);
    if (result == 0)
        result = loop_timer_new(backend->loop, on_restart, network, &network->restart);
    if (result == 0)
        result = network_sockets(network);
    if (result == 0)
        result = network_start(network);
    if (result < 0)
        return result;
    *ret_network = take_ptr(network);
    return 0;
}

int network_fd(const struct network *network)
{
    return network->frames_fd;
}

int64_t network_last_payload(const struct network *network)
{
    return network->last_payload;
}
