/* command.c - see command.h: the tree, the walk down it, one command line read by its table. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "colour.h"
#include "output.h"
#include "sandbox_call.h"
#include "suggest.h"
#include "usage.h"
#include "utf8.h"

/* The tree. */

static int run_help(const struct command_line *line);
static int run_version(const struct command_line *line);

static const struct command command_help = {
    .name = "help",
    .path = "iii help",
    .text = "Explain a command.",
    .flags = COMMAND_LOCAL,
    .words = { { .name = "COMMAND", .kind = WORD_COMMAND, .repeated = true } },
    COMMAND_HELP_OPTION,
    .run = run_help,
};

static const struct command command_version = {
    .name = "version",
    .path = "iii version",
    .text = "Print the version.",
    .flags = COMMAND_LOCAL,
    COMMAND_HELP_OPTION,
    .run = run_version,
};

static const struct command *const worker_children[] = { &command_sandbox, NULL };

static const struct command command_worker = {
    .name = "worker",
    .path = "iii worker",
    .text = "`iii worker sandbox` is `iii sandbox`.",
    .flags = COMMAND_HIDDEN,
    .children = worker_children,
};

static const struct command *const root_children[] = {
    &command_trigger,    &command_sandbox, &command_worker,
    &command_completion, &command_help,    &command_version,
    &command_complete,   &command_manual,  NULL,
};

const struct command command_root = {
    .name = "iii",
    .path = "iii",
    .text = "Call functions of the engine and work with sandboxes.",
    .children = root_children,
};

/* What all have. */

static const struct option_row help_rows[] = {
    { .name = "help",
      .letter = 'h',
      .kind = OPTION_FLAG,
      .offset = offsetof(struct common_options, help),
      .text = "explain this command" },
};
const struct option_table help_option_table = { help_rows, ARRAY_SIZE(help_rows), NULL };

static const struct option_row common_rows[] = {
    { .name = "address",
      .kind = OPTION_TEXT,
      .offset = offsetof(struct common_options, address),
      .value = "HOST",
      .text = "the router's host (localhost)",
      .min = 1 },
    { .name = "port",
      .kind = OPTION_NUMBER,
      .offset = offsetof(struct common_options, port),
      .value = "N",
      .text = "the router's port (49134)",
      .min = 1,
      .max = 65535 },
};
const struct option_table common_option_table = { common_rows, ARRAY_SIZE(common_rows),
                                                  &help_option_table };

int command_client(struct client *client, const struct common_options *common)
{
    struct endpoint endpoint = { .host = common->address,
                                 .port = (uint16_t)common->port.value };
    const char *token = getenv("III_AUTH_TOKEN");

    return client_init(client, &endpoint, token && *token ? token : NULL);
}

int command_misused(const struct command *self, const char *format, ...)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    va_list arguments;

    va_start(arguments, format);
    if (buf_vprintf(&text, format, arguments) == 0)
        (void)fprintf(stderr, "%serror:%s %s\n`%s --help` explains it.\n",
                      colour(STDERR_FILENO, COLOUR_RED), colour(STDERR_FILENO, COLOUR_NONE),
                      buf_text(&text), self->path);
    va_end(arguments);
    return EXIT_CODE_USAGE;
}

/* One command line. */

/* What stands behind `--` are words as well. */
static void join_tail(struct option_rest *rest)
{
    if (!rest->has_command)
        return;
    memmove(rest->words + rest->word_count, rest->command,
            rest->command_count * sizeof(*rest->command));
    rest->word_count += rest->command_count;
    rest->has_command = false;
}

/* What a call carries is UTF-8: any other text would reach the sandbox as another one. Words of
 * TAIL_WORDS are looked at where they are read, local paths may have any bytes. */
static bool may_have_any_bytes(const struct command *self, const struct word_row *row)
{
    return self->tail == TAIL_WORDS || row->kind == WORD_LOCAL;
}

static int check_program(const struct command *self, const struct option_rest *rest)
{
    if (self->tail == TAIL_PROGRAM && rest->command_count == 0)
        return command_misused(self, "-- CMD... is missing");
    if (self->tail == TAIL_NONE && rest->has_command)
        return command_misused(self, "nothing may stand behind --");
    for (size_t i = 0; i < rest->command_count; i++) {
        if (!utf8_valid(rest->command[i], strlen(rest->command[i])))
            return command_misused(self, "word %zu behind --, %s: is not UTF-8", i + 1,
                                   rest->command[i]);
    }
    return EXIT_CODE_DONE;
}

static int check_words(const struct command *self, const struct option_rest *rest)
{
    const struct word_row *row = self->words;

    for (size_t i = 0; i < rest->word_count; i++) {
        if (!row->kind && self->tail == TAIL_PROGRAM)
            return command_misused(self, "unexpected word %s: the program's stand behind --",
                                   rest->words[i]);
        if (!row->kind)
            return command_misused(self, "unexpected word %s", rest->words[i]);
        if (!may_have_any_bytes(self, row) &&
            !utf8_valid(rest->words[i], strlen(rest->words[i])))
            return command_misused(self, "%s %s: is not UTF-8", row->name, rest->words[i]);
        row += !row->repeated;
    }
    if (row->kind && !row->repeated)
        return command_misused(self, "%s is missing", row->name);
    return check_program(self, rest);
}

static int no_memory(void)
{
    (void)fputs("error: no memory\n", stderr);
    return EXIT_CODE_FAILED;
}

static int with_client(struct command_line *line, int (*run)(const struct command_line *line))
{
    struct client client;
    int code;

    if (line->command->flags & COMMAND_LOCAL)
        return run(line);
    if (command_client(&client, line->options) < 0)
        return no_memory();
    line->client = &client;
    code = run(line);
    client_done(&client);
    return code;
}

static int show_help(const struct command *command)
{
    int result = usage_print(command, STDOUT_FILENO);

    return result < 0 ? sandbox_complain("cannot write to stdout: %s", strerror(-result))
                      : EXIT_CODE_DONE;
}

static int run_line(struct command_line *line, bool help)
{
    const struct command *self = line->command;
    int code;

    if (self->tail == TAIL_WORDS)
        join_tail(&line->rest);
    if (help && self->explain && line->rest.word_count > 0)
        return with_client(line, self->explain);
    if (help)
        return show_help(self);
    code = check_words(self, &line->rest);
    return code == EXIT_CODE_DONE ? with_client(line, self->run) : code;
}

static bool has_dashes(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0)
            return true;
    }
    return false;
}

static int run_command(const struct command *self, int argc, char **argv)
{
    _cleanup_(buf_done)
    struct buf error = { 0 };
    _cleanup_free_ struct common_options *options = malloc(self->options_size);
    struct command_line line = { .command = self, .options = options };
    int result;

    if (!options)
        return no_memory();
    if (self->flags & COMMAND_RAW) {
        line.rest = (struct option_rest){ .words = argv, .word_count = (size_t)argc };
        return run_line(&line, false);
    }
    memcpy(options, self->standard, self->options_size);
    result = options_parse(&self->options, argc, argv, options, &line.rest, &error);
    if (result == 0)
        return run_line(&line, options->help);
    if (error.size == 0)
        return no_memory();
    return command_misused(self, "%s%s", buf_text(&error),
                           self->tail == TAIL_PROGRAM && !has_dashes(argc, argv)
                               ? " (a program's own words stand behind --)"
                               : "");
}

/* The walk. */

static bool is_named(const struct command *command, const char *word)
{
    if (strcmp(command->name, word) == 0)
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(command->aliases) && command->aliases[i]; i++) {
        if (strcmp(command->aliases[i], word) == 0)
            return true;
    }
    return false;
}

const struct command *command_find(const struct command *parent, const char *word)
{
    for (size_t i = 0; parent->children && parent->children[i]; i++) {
        if (is_named(parent->children[i], word))
            return parent->children[i];
    }
    return NULL;
}

static int unknown(const struct command *parent, const char *word)
{
    struct suggest suggest;

    suggest_init(&suggest, word, strlen(word));
    for (size_t i = 0; parent->children[i]; i++) {
        if (!(parent->children[i]->flags & COMMAND_HIDDEN))
            suggest_offer(&suggest, parent->children[i]->name);
    }
    if (suggest.best)
        return command_misused(parent, "unknown command %s; did you mean %s?", word,
                               suggest.best);
    return command_misused(parent, "unknown %s %s", word[0] == '-' ? "option" : "command",
                           word);
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* `iii help sandbox run` */
static int explain(size_t count, char *const *words)
{
    const struct command *command = &command_root;

    for (size_t i = 0; i < count && command->children; i++) {
        const struct command *child = command_find(command, words[i]);

        if (!child)
            return unknown(command, words[i]);
        command = child;
    }
    return show_help(command);
}

static int run_help(const struct command_line *line)
{
    return explain(line->rest.word_count, line->rest.words);
}

static int run_version(const struct command_line *line)
{
    return sandbox_printf("iii %s\n", SANDBOX_VERSION);
}

int command_main(int argc, char **argv)
{
    const struct command *command = &command_root;
    int at = 1;

    for (; command->children; at++) {
        const struct command *child;

        if (at >= argc) {
            (void)usage_print(command, STDERR_FILENO); /* there is nowhere else */
            return EXIT_CODE_USAGE;
        }
        if (asks_for_help(argv[at]))
            return explain((size_t)at - 1, argv + 1);
        if (command == &command_root && strcmp(argv[at], "--version") == 0)
            return run_version(NULL);
        child = command_find(command, argv[at]);
        if (!child)
            return unknown(command, argv[at]);
        command = child;
    }
    return run_command(command, argc - at, argv + at);
}
