/* options.c - see options.h. */
#include "options.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "version.h"

static const char help[] =
    "Usage: sandbox-router --config FILE [OPTION]...\n"
    "Routes sandbox:: calls to the adapter that the settings name.\n"
    "\n"
    "  --config FILE        settings (YAML); default: $SANDBOX_CONFIG\n"
    "  --ready-fd N         write `listening`, then `bound NAME` lines to descriptor N\n"
    "  --log-format FORMAT  kv or json; default kv\n"
    "  --log-level LEVEL    error, warn, info or debug; default info\n"
    "  --help, --version\n"
    "\n"
    "SIGHUP, or a change of FILE, reloads the settings; SIGTERM and SIGINT end it in order.\n";

static int choice(const char *option, const char *value, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(value, names[i]) == 0)
            return (int)i;
    }
    (void)fprintf(stderr, "sandbox-router: --%s wants", option);
    for (size_t i = 0; i < count; i++)
        (void)fprintf(stderr, "%s %s", i > 0 ? " or" : "", names[i]);
    (void)fprintf(stderr, ", got %s\n", value);
    return -1;
}

/* A descriptor number from 0 on, or -1 with a line on stderr. */
static int descriptor(const char *value)
{
    char *end;
    long number = strtol(value, &end, 10);

    if (*value && !*end && number >= 0 && number <= INT_MAX)
        return (int)number;
    (void)fprintf(stderr, "sandbox-router: --ready-fd wants a number, got %s\n", value);
    return -1;
}

static enum options_result take_option(int option, struct options *options)
{
    static const char *const formats[] = { "kv", "json" };
    static const char *const levels[] = { "error", "warn", "info", "debug" };
    int value;

    switch (option) {
    case 'c':
        options->config = optarg;
        return OPTIONS_RUN;
    case 'r':
        options->ready_fd = descriptor(optarg);
        return options->ready_fd < 0 ? OPTIONS_WRONG : OPTIONS_RUN;
    case 'f':
        value = choice("log-format", optarg, formats, ARRAY_SIZE(formats));
        options->log_format = value == 1 ? LOG_FORMAT_JSON : LOG_FORMAT_KEY_VALUE;
        return value < 0 ? OPTIONS_WRONG : OPTIONS_RUN;
    case 'l':
        value = choice("log-level", optarg, levels, ARRAY_SIZE(levels));
        options->log_level = value < 0 ? LOG_INFO : (enum log_level)value;
        return value < 0 ? OPTIONS_WRONG : OPTIONS_RUN;
    case 'h':
        (void)fputs(help, stdout);
        return OPTIONS_DONE;
    case 'v':
        (void)printf("sandbox-router %s (contract %u.%u)\n", SANDBOX_VERSION, CONTRACT_MAJOR,
                     CONTRACT_MINOR);
        return OPTIONS_DONE;
    default:
        return OPTIONS_WRONG; /* getopt has said why */
    }
}

enum options_result options_parse(int argc, char **argv, struct options *ret_options)
{
    static const struct option table[] = {
        { "config", required_argument, NULL, 'c' },
        { "ready-fd", required_argument, NULL, 'r' },
        { "log-format", required_argument, NULL, 'f' },
        { "log-level", required_argument, NULL, 'l' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'v' },
        { 0 },
    };
    enum options_result result = OPTIONS_RUN;
    int option;

    *ret_options = (struct options){ .config = getenv("SANDBOX_CONFIG"),
                                     .ready_fd = -1,
                                     .log_format = LOG_FORMAT_KEY_VALUE,
                                     .log_level = LOG_INFO };
    while (result == OPTIONS_RUN && (option = getopt_long(argc, argv, "", table, NULL)) != -1)
        result = take_option(option, ret_options);
    if (result != OPTIONS_RUN)
        return result;
    if (optind < argc) {
        (void)fprintf(stderr, "sandbox-router: unexpected argument %s\n", argv[optind]);
        return OPTIONS_WRONG;
    }
    if (!ret_options->config || !ret_options->config[0]) {
        (void)fprintf(stderr, "sandbox-router: --config FILE is wanted\n");
        return OPTIONS_WRONG;
    }
    return OPTIONS_RUN;
}
