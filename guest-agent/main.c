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
    struct init_fds fds; /* channel is -1: we are a machine's init */
    bool verbose;
};

#define FD_MAX (1 << 20)

/* Non-negative and nothing behind it, else -1. */
static int number_parse(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);

    return *text && !*end && number >= 0 && number < FD_MAX ? (int)number : -1;
}

static int options_parse(int argc, char **argv, struct options *options)
{
    static const struct option long_options[] = {
        { "fd", required_argument, NULL, 'f' },
        { "cgroup-fd", required_argument, NULL, 'c' },
        { "mailbox-fd", required_argument, NULL, 'm' },
        { "verbose", no_argument, NULL, 'v' },
        { "version", no_argument, NULL, 'V' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        switch (option) {
        case 'f':
            options->fds.channel = number_parse(optarg);
            break;
        case 'c':
            options->fds.cgroup = number_parse(optarg);
            break;
        case 'm':
            options->fds.mailbox = number_parse(optarg);
            break;
        case 'v':
            options->verbose = true;
            break;
        case 'V':
            (void)printf("sandbox-guest-agent %s\n", SANDBOX_VERSION);
            exit(0);
        default:
            (void)fprintf(option == 'h' ? stdout : stderr,
                          "usage: sandbox-guest-agent --fd N [--cgroup-fd N] [--mailbox-fd N] "
                          "[--verbose]\n"
                          "Pid 1 of a sandbox; N is its channel to the adapter. Without --fd\n"
                          "it must be pid 1 of a machine and finds the channel itself.\n");
            exit(option == 'h' ? 0 : 2);
        }
    }
    if (options->fds.channel < 0) /* the kernel hands words on that it does not know */
        return getpid() == 1 ? 0 : -1;
    return optind == argc ? 0 : -1;
}

static bool is_ours(const struct init_fds *fds, unsigned fd)
{
    return (int)fd == fds->channel || (int)fd == fds->mailbox || (int)fd == fds->cgroup;
}

/* Whatever else we inherited must not reach a program. */
static void close_others(const struct init_fds *fds)
{
    unsigned left = (fds->channel >= 3) + (fds->mailbox >= 3) + (fds->cgroup >= 3);
    unsigned first = 3;

    for (unsigned fd = 3; left > 0 && fd < (unsigned)FD_MAX; fd++) {
        if (!is_ours(fds, fd))
            continue;
        if (fd > first)
            (void)syscall(SYS_close_range, first, fd - 1, 0);
        first = fd + 1;
        left--;
    }
    (void)syscall(SYS_close_range, first, ~0u, 0);
    if (fds->cgroup >= 0)
        (void)fcntl(fds->cgroup, F_SETFD, FD_CLOEXEC);
    if (fds->mailbox >= 0)
        (void)fcntl(fds->mailbox, F_SETFD, FD_CLOEXEC);
}

/* Serves until the conversation is over. The exit code. What is going on in threads that never
 * come back keeps using these objects, so they are never freed. */
static int run(const struct init_fds *own_fds, bool machine)
{
    static struct reaper reaper;
    static struct trees trees;
    static struct serve serve;
    struct loop *loop;
    int result = loop_new(&loop);

    if (result == 0)
        result = reaper_init(&reaper, loop);
    if (result == 0)
        result = trees_init(&trees, loop, &reaper, own_fds->cgroup);
    if (result == 0)
        result = serve_init(
            &serve, loop,
            (struct serve_fds){ .channel = own_fds->channel, .mailbox = own_fds->mailbox },
            &trees, machine);
    if (result < 0) {
        log_event(LOG_ERROR, "start_failed", log_text("error", strerror(-result)));
        return 1;
    }
    return loop_run(loop) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct options options = { .fds = { -1, -1, -1 } };

    if (options_parse(argc, argv, &options) < 0) {
        (void)fprintf(stderr, "sandbox-guest-agent: --fd is missing or wrong; see --help\n");
        return 2;
    }
    log_init("sandbox-guest-agent", LOG_FORMAT_KEY_VALUE,
             options.verbose ? LOG_DEBUG : LOG_INFO);
    spawn_prepare_process();
    if (options.fds.channel < 0)
        init_machine(run);
    close_others(&options.fds);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* pid 1 is one already */
    _exit(run(&options.fds, false));
}
