/* router_process.h - the real sandbox-router, with a folder, a socket and a port of its own,
 * for tests that turn one loop: its ready lines and its log come through that loop, so that
 * nothing is polled for.
 *
 * Failures end the test (libcheck). */
#pragma once

#include "loop.h"

struct router_process;

/* SANDBOX: YAML below `sandbox`, indented by 2, or "". runtime_dir and listen (port 0) are
 * added. Returns when it listens. The program is $SANDBOX_BIN/sandbox-router. */
struct router_process *router_process_start(struct loop *loop, const char *sandbox);
struct router_process_options {
    const char *program; /* path; NULL: the same */
    const char *sandbox;
    const char *log_format; /* NULL: as the program has it */
    const char *log_level;
};
struct router_process *router_process_start_with(struct loop *loop,
                                                 const struct router_process_options *options);
/* SIGTERM, then its exit code; the folder is removed. */
int router_process_stop(struct router_process *router);

const char *router_process_url(const struct router_process *router);    /* native front */
const char *router_process_socket(const struct router_process *router); /* the same, a path */
const char *router_process_config(const struct router_process *router); /* its path */
uint16_t router_process_port(const struct router_process *router);      /* web front */
pid_t router_process_pid(const struct router_process *router);

/* Replaces the file as an editor does; the router notices by itself. */
void router_process_configure(struct router_process *router, const char *sandbox);
void router_process_signal(struct router_process *router, int signal_number);

/* Each wait looks at what came since the last match of its kind. */
void router_process_await_bound(struct router_process *router, const char *name);
const char *router_process_await_log(struct router_process *router, const char *text);
/* Lines with TEXT so far. */
unsigned router_process_log_count(struct router_process *router, const char *text);

size_t router_process_rss_bytes(const struct router_process *router);
unsigned router_process_descriptors(const struct router_process *router);
/* GET PATH on the web front: the whole answer; the caller frees. */
char *router_process_get(struct router_process *router, const char *path);
