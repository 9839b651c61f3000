/* command.c - see command.h. */
#include "command.h"

#include <string.h>

#include "buf.h"
#include "codec.h"
#include "utf8.h"

/* A command line under work. */
struct splitter {
    const char *at;
    struct buf word;
    bool in_word; /* the word has begun, be it empty so far */
    struct text_list *words;
    struct sandbox_error *err;
};

static int no_memory(struct sandbox_error *err)
{
    return sandbox_error_set(err, S300, "no memory for the words of cmd");
}

static int unbalanced(struct splitter *splitter, char quote)
{
    return sandbox_error_set(splitter->err, S001,
                             "cmd: unbalanced quotes: a %c is not closed; send argv to pass "
                             "words as they are",
                             quote);
}

static int add_byte(struct splitter *splitter, char byte)
{
    splitter->in_word = true;
    if (buf_append_byte(&splitter->word, (uint8_t)byte) < 0)
        return no_memory(splitter->err);
    return 0;
}

static int end_word(struct splitter *splitter)
{
    const char *word;

    if (!splitter->in_word)
        return 0;
    word = buf_text(&splitter->word);
    if (!word || text_list_append(splitter->words, word) < 0)
        return no_memory(splitter->err);
    buf_clear(&splitter->word);
    splitter->in_word = false;
    return 0;
}

/* All three read from behind the character that opened them to behind what closes them. */

static int take_single_quoted(struct splitter *splitter)
{
    const char *end = strchr(splitter->at, '\'');

    if (!end)
        return unbalanced(splitter, '\'');
    splitter->in_word = true;
    if (buf_append(&splitter->word, splitter->at, (size_t)(end - splitter->at)) < 0)
        return no_memory(splitter->err);
    splitter->at = end + 1;
    return 0;
}

static int take_double_quoted(struct splitter *splitter)
{
    splitter->in_word = true;
    while (*splitter->at != '"') {
        char byte = *splitter->at++;

        if (byte == 0)
            return unbalanced(splitter, '"');
        if (byte == '\\' && *splitter->at == '\n') {
            splitter->at++;
            continue;
        }
        if (byte == '\\' && *splitter->at && strchr("$`\"\\", *splitter->at))
            byte = *splitter->at++;
        if (add_byte(splitter, byte) < 0)
            return -1;
    }
    splitter->at++;
    return 0;
}

static int take_escaped(struct splitter *splitter)
{
    char byte = *splitter->at;

    if (byte == 0)
        return sandbox_error_set(splitter->err, S001,
                                 "cmd: a lone \\ stands at the end; send argv to pass words as "
                                 "they are");
    splitter->at++;
    return byte == '\n' ? 0 : add_byte(splitter, byte);
}

static void skip_comment(struct splitter *splitter)
{
    splitter->at += strcspn(splitter->at, "\n");
}

static int take_next(struct splitter *splitter)
{
    char byte = *splitter->at++;

    switch (byte) {
    case ' ':
    case '\t':
    case '\n':
        return end_word(splitter);
    case '\'':
        return take_single_quoted(splitter);
    case '"':
        return take_double_quoted(splitter);
    case '\\':
        return take_escaped(splitter);
    case '#':
        if (splitter->in_word)
            return add_byte(splitter, byte);
        skip_comment(splitter);
        return 0;
    default:
        return add_byte(splitter, byte);
    }
}

int command_split(const char *line, struct text_list *words, struct sandbox_error *err)
{
    struct splitter splitter = { .at = line, .words = words, .err = err };
    int result = 0;

    while (result == 0 && *splitter.at)
        result = take_next(&splitter);
    if (result == 0)
        result = end_word(&splitter);
    buf_done(&splitter.word);
    return result;
}

static int append_list(const struct text_list *from, struct text_list *to,
                       struct sandbox_error *err)
{
    for (size_t i = 0; i < from->count; i++) {
        if (text_list_append(to, from->items[i]) < 0)
            return no_memory(err);
    }
    return 0;
}

/* Row 1. */
static int read_argv(const struct exec_request *request, struct text_list *argv,
                     struct sandbox_error *err)
{
    if (request->cmd[0])
        return sandbox_error_set(err, S001, "argv: expected without cmd, got both");
    if (request->args.count > 0)
        return sandbox_error_set(err, S001, "argv: expected without args, got both");
    return append_list(&request->argv, argv, err);
}

/* Row 2. */
static int read_line(const struct exec_request *request, struct text_list *argv,
                     struct sandbox_error *err)
{
    if (request->args.count > 0)
        return sandbox_error_set(err, S001,
                                 "cmd: ambiguous: it holds white space and args is given too; "
                                 "send argv, or the whole command line in cmd");
    if (command_split(request->cmd, argv, err) < 0)
        return -1;
    if (argv->count == 0)
        return sandbox_error_set(err, S001, "cmd: expected a program, got no word");
    return 0;
}

/* Row 3. */
static int read_program(const struct exec_request *request, struct text_list *argv,
                        struct sandbox_error *err)
{
    if (text_list_append(argv, request->cmd) < 0)
        return no_memory(err);
    return append_list(&request->args, argv, err);
}

int command_read(const struct exec_request *request, struct text_list *ret_argv,
                 struct sandbox_error *err)
{
    int result;

    if (request->argv.count > 0)
        result = read_argv(request, ret_argv, err);
    else if (utf8_has_space(request->cmd, strlen(request->cmd)))
        result = read_line(request, ret_argv, err);
    else
        result = read_program(request, ret_argv, err);
    if (result < 0)
        return -1;
    if (ret_argv->items[0][0] == 0)
        return sandbox_error_set(err, S001, "%s: expected a program, got an empty text",
                                 request->argv.count > 0 ? "argv" : "cmd");
    return 0;
}
