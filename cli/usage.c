/* usage.c - see usage.h. */
#include "usage.h"

#include "output.h"

int usage_synopsis(const struct command *command, struct buf *to)
{
    int result = 0;

    if (command->children)
        return buf_append_text(to, "COMMAND ...");
    for (const struct word_row *word = command->words; word->kind && result == 0; word++)
        result = buf_printf(to, word->repeated ? "[%s]... " : "%s ", word->name);
    if (result == 0)
        result = buf_append_text(to, "[OPTIONS]");
    if (result == 0 && command->tail == TAIL_PROGRAM)
        result = buf_append_text(to, " -- CMD...");
    return result;
}

static int put_children(const struct command *command, struct buf *to)
{
    int result = buf_append_text(to, "\nCommands:\n");

    for (size_t i = 0; command->children[i] && result == 0; i++) {
        const struct command *child = command->children[i];

        if (!(child->flags & COMMAND_HIDDEN))
            result = buf_printf(to, "  %-12s %s\n", child->name, child->text);
    }
    return result == 0
               ? buf_printf(to, "\n`%s COMMAND --help` explains a command.\n", command->path)
               : result;
}

static int put_options(const struct command *command, struct buf *to)
{
    int result = buf_append_text(to, "\nOptions:\n");

    return result == 0 ? options_describe(&command->options, to) : result;
}

static int put_usage(const struct command *command, struct buf *to)
{
    int result = buf_printf(to, "Usage: %s ", command->path);

    if (result == 0)
        result = usage_synopsis(command, to);
    if (result == 0)
        result = buf_printf(to, "\n\n%s\n", command->text);
    for (size_t i = 0; i < ARRAY_SIZE(command->aliases) && command->aliases[i]; i++) {
        if (result == 0)
            result = buf_printf(to, "%s%s", i == 0 ? "Also called " : ", ",
                                command->aliases[i]);
    }
    if (result == 0 && command->aliases[0])
        result = buf_append_text(to, ".\n");
    if (result == 0 && command->details)
        result = buf_printf(to, "\n%s", command->details);
    if (result < 0)
        return result;
    return command->children ? put_children(command, to) : put_options(command, to);
}

int usage_print(const struct command *command, int fd)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    int result = put_usage(command, &text);

    return result == 0 ? output_write(fd, text.data, text.size) : result;
}
