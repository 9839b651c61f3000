/* command.h - the commands of `iii` as a tree of tables, and how one of them is run.
 *
 * A command's words and options are rows. From them come parsing, usage, manual (manual.c) and
 * completion (complete.c); `run` sees a command line that keeps to the table. */
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

/* What a word is; completion offers such. */
enum word_kind {
    WORD_NONE,     /* ends the table */
    WORD_COMMAND,  /* of iii */
    WORD_SHELL,    /* that can complete */
    WORD_FUNCTION, /* of the engine */
    WORD_FIELD,    /* KEY=VALUE of the function before */
    WORD_IMAGE,    /* of the catalog */
    WORD_SANDBOX,  /* the id of a live one */
    WORD_LOCAL,    /* a path here */
    WORD_REMOTE    /* a path in a sandbox */
};

struct word_row {
    const char *name; /* as usages call it: "ID" */
    enum word_kind kind;
    bool repeated; /* none or more; only the last row */
};
#define COMMAND_WORDS_MAX 3

/* What may stand behind `--`. */
enum command_tail {
    TAIL_NONE,
    TAIL_WORDS,  /* words that may begin with a dash */
    TAIL_PROGRAM /* a program's command line, and it must stand there */
};

/* The first member, `common`, of each command's options. */
struct common_options {
    bool help;
    const char *address; /* the router's */
    struct option_number port;
};
#define COMMON_STANDARD                                                                        \
    {                                                                                          \
        .address = "localhost", .port = {.value = 49134 }                                      \
    }
/* The last rows of each command: --help alone, or with where the router is. */
extern const struct option_table help_option_table;
extern const struct option_table common_option_table;

struct command_line {
    const struct command *command;
    struct client *client; /* NULL: COMMAND_LOCAL. It connects with the first call */
    const void *options;   /* the command's struct */
    struct option_rest rest;
};

enum command_flag {
    COMMAND_HIDDEN = 1, /* in no usage */
    COMMAND_LOCAL = 2,  /* speaks to no router */
    COMMAND_RAW = 4     /* its words are taken as they stand, options or not */
};

struct command {
    const char *name;
    const char *aliases[2];
    const char *path;    /* as typed: "iii sandbox run" */
    const char *text;    /* one line */
    const char *details; /* more for --help, whole lines; NULL: nothing */
    unsigned flags;
    struct word_row words[COMMAND_WORDS_MAX + 1];
    enum command_tail tail;
    struct option_table options;
    size_t options_size;
    const void *standard; /* options_size bytes: the options that are not given */
    /* The result is the exit code. */
    int (*run)(const struct command_line *line);
    int (*explain)(const struct command_line *line); /* --help with words; NULL: the usage */
    const struct command *const *children;           /* NULL-terminated, instead of run */
};

/* .options of a command: the struct, its rows ahead of the common ones, its standard. */
#define COMMAND_OPTIONS(type, own_rows, ...)                                                   \
    .options = { own_rows, ARRAY_SIZE(own_rows), &common_option_table },                       \
    .options_size = sizeof(type), .standard = &(const type)                                    \
    {                                                                                          \
        .common = COMMON_STANDARD, ##__VA_ARGS__                                               \
    }
/* The same for a command that has the common ones alone. */
#define COMMAND_COMMON_OPTIONS                                                                 \
    .options = { NULL, 0, &common_option_table },                                              \
    .options_size = sizeof(struct common_options),                                             \
    .standard = &(const struct common_options)COMMON_STANDARD
#define COMMAND_HELP_OPTION                                                                    \
    .options = { NULL, 0, &help_option_table }, .options_size = sizeof(struct common_options), \
    .standard = &(const struct common_options)COMMON_STANDARD

extern const struct command command_root;
extern const struct command command_trigger;
extern const struct command command_sandbox;
extern const struct command command_completion;
extern const struct command command_complete;
extern const struct command command_manual;

/* Finds and runs the command; the result is the exit code. */
int command_main(int argc, char **argv);
/* The child that WORD names; NULL: none. */
const struct command *command_find(const struct command *parent, const char *word);
/* Says on stderr what is wrong with the command line. EXIT_CODE_USAGE. */
int command_misused(const struct command *self, const char *format, ...) _printf_(2, 3);

/* Loop, signals, token from III_AUTH_TOKEN. 0 or -errno. */
int command_client(struct client *client, const struct common_options *common);
