/* command.h - the commands of `iii` as a tree, and what they have in common. */
#pragma once

#include "client.h"
#include "options.h"

/* Exit codes (iii-wire 5); else the program's own, or 128 + signal. */
enum {
    EXIT_CODE_DONE = 0,
    EXIT_CODE_FAILED =
        1, /* an error from router or adapter, connection, local I/O, bad input */
    EXIT_CODE_USAGE = 2,
    EXIT_CODE_TIMED_OUT = 124
};

struct command {
    const char *name;
    const char *aliases[2];
    const char *path;     /* as typed: "iii sandbox run" */
    const char *synopsis; /* behind the path */
    const char *text;     /* one line */
    const char *details;  /* more for --help, whole lines; NULL: nothing */
    struct option_table options;
    /* ARGV begins behind the name. The result is the exit code. */
    int (*run)(const struct command *self, int argc, char **argv);
    bool hidden;
    const struct command *const *children; /* NULL-terminated, instead of run */
};

extern const struct command command_root;
extern const struct command command_trigger;
extern const struct command command_sandbox;
extern const struct command command_completion;
extern const struct command command_complete;

/* Finds and runs the command; the result is the exit code. */
int command_main(int argc, char **argv);
/* The child that WORD names; NULL: none. */
const struct command *command_find(const struct command *parent, const char *word);
/* Prints the usage on FD. */
void command_usage(const struct command *command, int fd);
/* Says on stderr what is wrong with the command line. EXIT_CODE_USAGE. */
int command_misused(const struct command *self, const char *format, ...) _printf_(2, 3);
/* Reads the command line. EXIT_CODE_DONE, or EXIT_CODE_USAGE after saying why. */
int command_options(const struct command *self, int argc, char **argv, void *values,
                    struct option_rest *ret_rest);

/* Where the router is: a member `target` of each command's options. */
struct target_options {
    const char *address;
    struct option_number port;
};

#define TARGET_STANDARD                                                                        \
    {                                                                                          \
        .address = "localhost", .port = {.value = 49134 }                                      \
    }
#define TARGET_OPTIONS(type)                                                                   \
    { .name = "address",                                                                       \
      .kind = OPTION_TEXT,                                                                     \
      .offset = offsetof(type, target.address),                                                \
      .value = "HOST",                                                                         \
      .text = "the router's host (localhost)" },                                               \
    {                                                                                          \
        .name = "port", .kind = OPTION_NUMBER, .offset = offsetof(type, target.port),          \
        .value = "N", .text = "the router's port (49134)", .min = 1, .max = 65535              \
    }
#define HELP_OPTION(type)                                                                      \
    {                                                                                          \
        .name = "help", .letter = 'h', .kind = OPTION_FLAG, .offset = offsetof(type, help),    \
        .text = "explain this command"                                                         \
    }

/* Loop, signals, token from III_AUTH_TOKEN. 0 or -errno. */
int command_client(struct client *client, const struct target_options *target);
