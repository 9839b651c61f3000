/* main.c - adapter_main(): the command line of every adapter. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "adapter.h"
#include "backend.h"
#include "log.h"
#include "proc.h"
#include "version.h"

#define EXIT_USAGE 2

struct command_line {
    const char *config_path;
    const char *router_url;
    enum log_format log_format;
    enum log_level log_level;
};

static const char usage[] =
    "Usage: %s --config FILE [--router URL]\n"
    "\n"
    "An adapter of the sandbox router: it makes and serves the sandboxes.\n"
    "\n"
    "  --config FILE       settings file (default: $SANDBOX_CONFIG)\n"
    "  --router URL        ipc:///PATH, tcp://HOST:PORT or tls+tcp://HOST:PORT (default:\n"
    "                      $SANDBOX_ROUTER, else router.sock in sandbox.runtime_dir)\n"
    "  --log-format FORM   key-value (default) or json\n"
    "  --log-level LEVEL   error, warn, info (default) or debug\n"
    "  --version           print the version and exit\n"
    "  --help              print this help and exit\n"
    "\n"
    "SIGHUP reads the settings again; SIGTERM stops all sandboxes and exits.\n";

static int parse_word(const char *text, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0)
            return i;
    return -1;
}

static int parse_log_format(const char *text, struct command_line *ret)
{
    static const char *const words[] = {
        [LOG_FORMAT_KEY_VALUE] = "key-value", [LOG_FORMAT_JSON] = "json"
    };
    int word = parse_word(text, words, ARRAY_SIZE(words));

    ret->log_format = (enum log_format)word;
    return word < 0 ? -EINVAL : 0;
}

static int parse_log_level(const char *text, struct command_line *ret)
{
    static const char *const words[] = {
        [LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"
    };
    int word = parse_word(text, words, ARRAY_SIZE(words));

    ret->log_level = (enum log_level)word;
    return word < 0 ? -EINVAL : 0;
}

/* What comes after is nng's to judge. */
static bool is_router_url(const char *text)
{
    static const char *const schemes[] = { "ipc://", "tcp://", "tls+tcp://" };

    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
        size_t size = strlen(schemes[i]);

        if (strncmp(text, schemes[i], size) == 0 && text[size])
            return true;
    }
    return false;
}

/* -1: go on; else the exit code. */
static int parse_option(int option, const char *program, struct command_line *ret)
{
    switch (option) {
    case 'c':
        ret->config_path = optarg;
        return -1;
    case 'r':
        ret->router_url = optarg;
        return -1;
    case 'f':
        if (parse_log_format(optarg, ret) == 0)
            return -1;
        fprintf(stderr, "%s: --log-format %s is neither key-value nor json\n", program, optarg);
        return EXIT_USAGE;
    case 'l':
        if (parse_log_level(optarg, ret) == 0)
            return -1;
        fprintf(stderr, "%s: --log-level %s is none of error, warn, info, debug\n", program,
                optarg);
        return EXIT_USAGE;
    case 'v':
        printf("%s %s, contract %u.%u\n", program, SANDBOX_VERSION, CONTRACT_MAJOR,
               CONTRACT_MINOR);
        return EXIT_SUCCESS;
    case 'h':
        printf(usage, program);
        return EXIT_SUCCESS;
    default:
        fprintf(stderr, "Try '%s --help'.\n", program);
        return EXIT_USAGE;
    }
}

static int parse_command_line(int argc, char **argv, const char *program,
                              struct command_line *ret)
{
    static const struct option options[] = {
        { "config", required_argument, NULL, 'c' },
        { "router", required_argument, NULL, 'r' },
        { "log-format", required_argument, NULL, 'f' },
        { "log-level", required_argument, NULL, 'l' },
        { "version", no_argument, NULL, 'v' },
        { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    int option;

    *ret = (struct command_line){ .config_path = getenv("SANDBOX_CONFIG"),
                                  .router_url = getenv("SANDBOX_ROUTER"),
                                  .log_format = LOG_FORMAT_KEY_VALUE,
                                  .log_level = LOG_INFO };
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        int code = parse_option(option, program, ret);

        if (code >= 0)
            return code;
    }
    if (optind < argc) {
        fprintf(stderr, "%s: unexpected argument %s\n", program, argv[optind]);
        return EXIT_USAGE;
    }
    if (ret->router_url && ret->router_url[0] && !is_router_url(ret->router_url)) {
        fprintf(stderr,
                "%s: --router wants ipc:///PATH, tcp://HOST:PORT or tls+tcp://HOST:PORT, "
                "got %s\n",
                program, ret->router_url);
        return EXIT_USAGE;
    }
    if (!ret->config_path) {
        fprintf(stderr, "%s: --config FILE is needed\n", program);
        return EXIT_USAGE;
    }
    return -1;
}

int adapter_main(int argc, char **argv, const struct backend_ops *ops)
{
    const char *slash = strrchr(argv[0], '/');
    const char *program = slash ? slash + 1 : argv[0];
    _cleanup_(loop_freep)
    struct loop *loop = NULL;
    _cleanup_(adapter_freep)
    struct adapter *adapter = NULL;
    char error[ADAPTER_ERROR_MAX];
    struct command_line line;
    int code;

    if (proc_hold_standard_fds() < 0)
        return EXIT_FAILURE; /* there may be nowhere to say it */
    code = parse_command_line(argc, argv, program, &line);
    if (code >= 0)
        return code;
    log_init(program, line.log_format, line.log_level);
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || loop_new(&loop) < 0) {
        log_event(LOG_ERROR, "start_failed", log_text("error", strerror(errno)));
        return EXIT_FAILURE;
    }
    if (adapter_new(loop,
                    &(struct adapter_options){ .ops = ops,
                                               .config_path = line.config_path,
                                               .router_url = line.router_url },
                    &adapter, error) < 0) {
        log_event(LOG_ERROR, "start_failed", log_text("error", error));
        return EXIT_FAILURE;
    }
    code = loop_run(loop);
    return code < 0 ? EXIT_FAILURE : code;
}
