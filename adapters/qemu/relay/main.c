/* main.c - sandbox-relay: the network of one machine. The adapter starts it, confined; it ends
 * when it is killed. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate.h"
#include "lockdown.h"
#include "log.h"
#include "relay.h"

static const char usage[] =
    "usage: sandbox-relay --frames-fd N --report-fd N [--ipv6] [--allow-private-networks]\n"
    "                     [--host-ports PORT,PORT...]\n";

static int number_parse(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);

    return *text && !*end && number >= 0 && number < 1 << 20 ? (int)number : -1;
}

static int options_read(int argc, char **argv, struct relay_options *options,
                        struct policy *policy)
{
    static const struct option long_options[] = {
        { "frames-fd", required_argument, NULL, 'f' },
        { "report-fd", required_argument, NULL, 'r' },
        { "ipv6", no_argument, NULL, '6' },
        { "allow-private-networks", no_argument, NULL, 'p' },
        { "host-ports", required_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    int option, result = 0;

    while (result == 0 && (option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (option == 'f')
            options->frames_fd = number_parse(optarg);
        else if (option == 'r')
            options->report_fd = number_parse(optarg);
        else if (option == '6')
            options->ipv6 = true;
        else if (option == 'p')
            policy->private_networks = true;
        else
            result = option == 'h' ? policy_name_host_ports(policy, optarg) : -1;
    }
    return options->frames_fd < 0 || options->report_fd < 0 || optind < argc ? -1 : result;
}

int main(int argc, char **argv)
{
    static struct policy policy;
    struct relay_options options = { .frames_fd = -1, .report_fd = -1 };
    int result;

    if (options_read(argc, argv, &options, &policy) < 0) {
        (void)fputs(usage, stderr);
        return 2;
    }
    log_init("sandbox-relay", LOG_FORMAT_KEY_VALUE, LOG_INFO);
    result = gate_set(&policy);
    if (result == 0)
        result = lockdown_enter();
    if (result < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR) {
        log_event(LOG_ERROR, "start_failed", log_text("error", strerror(-result)));
        return EXIT_FAILURE;
    }
    return relay_run(&options);
}
