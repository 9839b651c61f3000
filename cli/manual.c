/* manual.c - `iii __manual`: the manual page iii(1), from the tables that --help is made of. */
#include <stdio.h>

#include "command.h"
#include "output.h"
#include "sandbox_call.h"
#include "usage.h"

/* Text as roff takes it: no line may begin with a control character. */
static int put_text(struct buf *to, const char *text)
{
    int result = 0;

    for (bool begins = true; *text && result == 0; begins = *text++ == '\n') {
        if (begins && (*text == '.' || *text == '\''))
            result = buf_append_text(to, "\\&");
        if (result < 0)
            break;
        if (*text == '\\')
            result = buf_append_text(to, "\\e");
        else if (*text == '-')
            result = buf_append_text(to, "\\-");
        else
            result = buf_append_byte(to, (uint8_t)*text);
    }
    return result;
}

/* MACRO TEXT, and what follows on a line of its own. */
static int put_line(struct buf *to, const char *before, const char *text, const char *after)
{
    int result = buf_append_text(to, before);

    if (result == 0)
        result = put_text(to, text);
    return result == 0 ? buf_append_text(to, after) : result;
}

static int put_option(struct buf *to, const struct option_row *row)
{
    char name[64];
    const char *value = row->value ? row->value : "";

    if (row->letter)
        (void)snprintf(name, sizeof(name), "-%c, --%s", row->letter, row->name); /* fits */
    else
        (void)snprintf(name, sizeof(name), "--%s", row->name);
    return put_line(to, ".TP\n\\fB", name, "\\fR") == 0 &&
                   put_line(to, *value ? " \\fI" : "", value, *value ? "\\fR\n" : "\n") == 0 &&
                   put_line(to, "", row->text, "\n") == 0
               ? 0
               : -1;
}

static int put_own_options(struct buf *to, const struct option_table *table)
{
    int result = 0;

    for (size_t i = 0; i < table->count && result == 0; i++)
        result = put_option(to, &table->rows[i]);
    return result;
}

static int put_command(struct buf *to, const struct command *command)
{
    _cleanup_(buf_done)
    struct buf synopsis = { 0 };
    int result = usage_synopsis(command, &synopsis);

    if (result < 0 || !buf_text(&synopsis))
        return -1;
    result = put_line(to, ".SS ", command->path, " ");
    if (result == 0)
        result = put_line(to, "", buf_text(&synopsis), "\n");
    if (result == 0)
        result = put_line(to, "", command->text, "\n");
    if (result == 0 && command->details)
        result = put_line(to, ".PP\n.nf\n", command->details, ".fi\n");
    return result == 0 ? put_own_options(to, &command->options) : result;
}

/* The tree is three levels deep. */
static int put_commands(struct buf *to, const struct command *parent)
{
    int result = 0;

    for (size_t i = 0; parent->children[i] && result == 0; i++) {
        const struct command *child = parent->children[i];

        if (!(child->flags & COMMAND_HIDDEN))
            result = child->children ? put_commands(to, child) : put_command(to, child);
    }
    return result;
}

static int put_end(struct buf *to)
{
    static const char text[] =
        ".SH EXIT STATUS\n"
        ".TP\n0\ndone\n"
        ".TP\n1\nan error from router or adapter, no connection, local input or output, a bad "
        "KEY=VALUE or JSON\n"
        ".TP\n2\nwrong usage\n"
        ".TP\n124\nrun, exec: timed out\n"
        ".TP\n129, 130, 143\nended by SIGHUP, SIGINT, SIGTERM\n"
        ".TP\nother\nrun, exec: the program's own\n"
        ".SH ENVIRONMENT\n"
        ".TP\nIII_AUTH_TOKEN\nthe bearer token, where the router wants one\n"
        ".TP\nNO_COLOR\nset: no colours\n"
        ".SH SEE ALSO\n"
        ".BR sandbox\\-router (8),\n.BR iii\\-sandbox.yaml (5)\n";

    return buf_append_text(to, text);
}

static int put_page(struct buf *to)
{
    int result = buf_printf(to,
                            ".TH III 1 \"\" \"iii\\-sandbox %s\" \"User Commands\"\n"
                            ".SH NAME\niii \\- call functions and work with sandboxes\n"
                            ".SH SYNOPSIS\n.B iii\n.I COMMAND\n\\&...\n.SH DESCRIPTION\n",
                            SANDBOX_VERSION);

    if (result == 0)
        result = put_line(to, "", command_root.text, "\n.SH COMMANDS\n");
    if (result == 0)
        result = put_commands(to, &command_root);
    if (result == 0)
        result = buf_append_text(to, ".SH OPTIONS OF EACH COMMAND\n");
    if (result == 0)
        result = put_own_options(to, &common_option_table);
    if (result == 0)
        result = put_own_options(to, &help_option_table);
    return result == 0 ? put_end(to) : result;
}

static int run_manual(const struct command_line *line)
{
    _cleanup_(buf_done)
    struct buf page = { 0 };

    if (put_page(&page) < 0)
        return sandbox_complain("no memory");
    return sandbox_print(page.data, page.size);
}

const struct command command_manual = {
    .name = "__manual",
    .path = "iii __manual",
    .text = "Print the manual page iii(1).",
    .flags = COMMAND_LOCAL | COMMAND_HIDDEN,
    COMMAND_HELP_OPTION,
    .run = run_manual,
};
