/* main.c - the guest agent: pid 1 of a sandbox.
 *
 * Two ways to start. As /init of a machine it makes the sandbox's root out of two disks and
 * finds its channel (init.c). With --fd it is already where it belongs, in a container that
 * somebody else made, and the channel is that descriptor. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init.h"
#include "log.h"
#include "reap.h"
#include "serve.h"
#include "spawn.h"
#include "tree.h"

struct options {
    int fd;        /* -1: we are a machine's init */
    int cgroup_fd; /* -1: none */
    bool verbose;
};

/* Non-negative and nothing behind it, else -1. */
static int number_parse(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);

    return *text && !*end && number >= 0 && number < 1 << 20 ? (int)number : -1;
}

static int options_parse(int argc, char **argv, struct options *options)
{
    static const struct option long_options[] = {
        { "fd", required_argument, NULL, 'f' }, { "cgroup-fd", required_argument, NULL, 'c' },
        { "verbose", no_argument, NULL, 'v' },  { "version", no_argument, NULL, 'V' },
        { "help", no_argument, NULL, 'h' },     { NULL, 0, NULL, 0 },
    };
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        switch (option) {
        case 'f':
            options->fd = number_parse(optarg);
            break;
        case 'c':
            options->cgroup_fd = number_parse(optarg);
            break;
        case 'v':
            options->verbose = true;
            break;
        case 'V':
            (void)printf("sandbox-guest-agent %s\n", SANDBOX_VERSION);
            exit(0);
        default:
            (void)fprintf(option == 'h' ? stdout : stderr,
                          "usage: sandbox-guest-agent --fd N [--cgroup-fd N] [--verbose]\n"
                          "Pid 1 of a sandbox; N is its channel to the adapter. Without --fd\n"
                          "it must be pid 1 of a machine and finds the channel itself.\n");
            exit(option == 'h' ? 0 : 2);
        }
    }
    if (options->fd < 0) /* the kernel hands words on that it does not know */
        return getpid() == 1 ? 0 : -1;
    return optind == argc ? 0 : -1;
}

/* Whatever else we inherited must not reach a program. */
static void close_others(const struct options *options)
{
    const int low = options->fd < options->cgroup_fd ? options->fd : options->cgroup_fd;
    const int high = options->fd < options->cgroup_fd ? options->cgroup_fd : options->fd;

    if (low > 3)
        (void)syscall(SYS_close_range, 3, low - 1, 0);
    if (high > low + 1 && high > 3)
        (void)syscall(SYS_close_range, low < 3 ? 3 : low + 1, high - 1, 0);
    (void)syscall(SYS_close_range, high < 3 ? 3 : high + 1, ~0u, 0);
    if (options->cgroup_fd >= 0)
        (void)fcntl(options->cgroup_fd, F_SETFD, FD_CLOEXEC);
}

/* Serves until the conversation is over. The exit code. What is going on in threads that never
 * come back keeps using these objects, so they are never freed. */
static int run(int own_fd, int own_cgroup_fd, bool machine)
{
    static struct reaper reaper;
    static struct trees trees;
    static struct serve serve;
    struct loop *loop;
    int result = loop_new(&loop);

    if (result == 0)
        result = reaper_init(&reaper, loop);
    if (result == 0)
        result = trees_init(&trees, loop, &reaper, own_cgroup_fd);
    if (result == 0)
        result = serve_init(&serve, loop, own_fd, &trees, machine);
    if (result < 0) {
        log_event(LOG_ERROR, "start_failed", log_text("error", strerror(-result)));
        return 1;
    }
    return loop_run(loop) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct options options = { .fd = -1, .cgroup_fd = -1 };

    if (options_parse(argc, argv, &options) < 0) {
        (void)fprintf(stderr, "sandbox-guest-agent: --fd is missing or wrong; see --help\n");
        return 2;
    }
    log_init("sandbox-guest-agent", LOG_FORMAT_KEY_VALUE,
             options.verbose ? LOG_DEBUG : LOG_INFO);
    spawn_prepare_process();
    if (options.fd < 0)
        init_machine(run);
    close_others(&options);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* pid 1 is one already */
    _exit(run(options.fd, options.cgroup_fd, false));
}
