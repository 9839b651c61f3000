/* command.c - see command.h: the tree, the walk down it, usages. */
#include "command.h"

#include <stdio.h>
#include <unistd.h>

#include "output.h"
#include "suggest.h"

/* The tree. */

static int run_help(const struct command *self, int argc, char **argv);
static int run_version(const struct command *self, int argc, char **argv);

static const struct command command_help = {
    .name = "help",
    .path = "iii help",
    .synopsis = "[COMMAND]...",
    .text = "Explain a command.",
    .run = run_help,
};

static const struct command command_version = {
    .name = "version",
    .path = "iii version",
    .synopsis = "",
    .text = "Print the version.",
    .run = run_version,
};

static const struct command *const worker_children[] = { &command_sandbox, NULL };

static const struct command command_worker = {
    .name = "worker",
    .path = "iii worker",
    .text = "`iii worker sandbox` is `iii sandbox`.",
    .hidden = true,
    .children = worker_children,
};

static const struct command *const root_children[] = {
    &command_trigger, &command_sandbox, &command_worker,   &command_completion,
    &command_help,    &command_version, &command_complete, NULL,
};

const struct command command_root = {
    .name = "iii",
    .path = "iii",
    .text = "Call functions of the engine and work with sandboxes.",
    .children = root_children,
};

/* Usages. */

static int describe_children(const struct command *command, struct buf *to)
{
    int result = buf_printf(to, "Usage: %s COMMAND ...\n\n%s\n\nCommands:\n", command->path,
                            command->text);

    for (size_t i = 0; command->children[i] && result == 0; i++) {
        const struct command *child = command->children[i];

        if (!child->hidden)
            result = buf_printf(to, "  %-12s %s\n", child->name, child->text);
    }
    return result == 0
               ? buf_printf(to, "\n`%s COMMAND --help` explains a command.\n", command->path)
               : result;
}

static int describe_command(const struct command *command, struct buf *to)
{
    int result = buf_printf(to, "Usage: %s %s\n\n%s\n", command->path, command->synopsis,
                            command->text);

    if (result == 0 && command->details)
        result = buf_printf(to, "\n%s", command->details);
    if (result == 0 && command->options.count > 0)
        result = buf_append_text(to, "\nOptions:\n");
    return result == 0 ? options_describe(&command->options, to) : result;
}

void command_usage(const struct command *command, int fd)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    int result = command->children ? describe_children(command, &text)
                                   : describe_command(command, &text);

    if (result == 0)
        (void)output_write(fd, text.data, text.size); /* nobody reads it: nothing to be done */
}

int command_misused(const struct command *self, const char *format, ...)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    va_list arguments;

    va_start(arguments, format);
    if (buf_vprintf(&text, format, arguments) == 0)
        (void)fprintf(stderr, "error: %s\n`%s --help` explains it.\n", buf_text(&text),
                      self->path);
    va_end(arguments);
    return EXIT_CODE_USAGE;
}

int command_options(const struct command *self, int argc, char **argv, void *values,
                    struct option_rest *ret_rest)
{
    _cleanup_(buf_done)
    struct buf error = { 0 };
    int result = options_parse(&self->options, argc, argv, values, ret_rest, &error);

    if (result == 0)
        return EXIT_CODE_DONE;
    return command_misused(self, "%s", error.size > 0 ? buf_text(&error) : "no memory");
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
        if (!parent->children[i]->hidden)
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
static int run_help(const struct command *self, int argc, char **argv)
{
    const struct command *command = &command_root;

    for (int i = 0; i < argc && command->children; i++) {
        const struct command *child = command_find(command, argv[i]);

        if (!child)
            return unknown(command, argv[i]);
        command = child;
    }
    command_usage(command, STDOUT_FILENO);
    return EXIT_CODE_DONE;
}

static int run_version(const struct command *self, int argc, char **argv)
{
    return printf("iii %s\n", SANDBOX_VERSION) < 0 || fflush(stdout) != 0 ? EXIT_CODE_FAILED
                                                                          : EXIT_CODE_DONE;
}

int command_main(int argc, char **argv)
{
    const struct command *command = &command_root;
    int at = 1;

    for (; command->children; at++) {
        const struct command *child;

        if (at >= argc) {
            command_usage(command, STDERR_FILENO);
            return EXIT_CODE_USAGE;
        }
        if (asks_for_help(argv[at]))
            return run_help(command, at - 1, argv + 1);
        if (command == &command_root && strcmp(argv[at], "--version") == 0)
            return run_version(command, 0, argv);
        child = command_find(command, argv[at]);
        if (!child)
            return unknown(command, argv[at]);
        command = child;
    }
    return command->run(command, argc - at, argv + at);
}

int command_client(struct client *client, const struct target_options *target)
{
    struct endpoint endpoint = { .host = target->address,
                                 .port = (uint16_t)target->port.value };
    const char *token = getenv("III_AUTH_TOKEN");

    return client_init(client, &endpoint, token && *token ? token : NULL);
}
