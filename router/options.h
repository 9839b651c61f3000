/* options.h - the command line of sandbox-router. */
#pragma once

#include "log.h"

struct options {
    const char *config; /* --config, else SANDBOX_CONFIG */
    int ready_fd;       /* --ready-fd, or -1 */
    enum log_format log_format;
    enum log_level log_level;
};

enum options_result {
    OPTIONS_RUN,
    OPTIONS_DONE, /* --help, --version: printed */
    OPTIONS_WRONG /* said on stderr */
};

enum options_result options_parse(int argc, char **argv, struct options *ret_options);
