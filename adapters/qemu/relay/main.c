/* main.c - sandbox-relay: the network of one machine. The adapter starts it, confined; it ends
 * when it is killed. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "log.h"
#include "relay.h"

static int number_parse(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);

    return *text && !*end && number >= 0 && number < 1 << 20 ? (int)number : -1;
}

int main(int argc, char **argv)
{
    static const struct option long_options[] = {
        { "frames-fd", required_argument, NULL, 'f' },
        { "report-fd", required_argument, NULL, 'r' },
        { "host-loopback", no_argument, NULL, 'l' },
        { NULL, 0, NULL, 0 },
    };
    struct relay_options options = { .frames_fd = -1, .report_fd = -1 };
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (option == 'f')
            options.frames_fd = number_parse(optarg);
        else if (option == 'r')
            options.report_fd = number_parse(optarg);
        else if (option == 'l')
            options.host_loopback = true;
        else
            return 2;
    }
    if (options.frames_fd < 0 || options.report_fd < 0 || optind < argc) {
        (void)fprintf(stderr, "usage: sandbox-relay --frames-fd N --report-fd N "
                              "[--host-loopback]\n");
        return 2;
    }
    log_init("sandbox-relay", LOG_FORMAT_KEY_VALUE, LOG_INFO);
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return EXIT_FAILURE;
    return relay_run(&options);
}
