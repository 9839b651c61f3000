/* complete.c - `iii __complete WORD...`: candidates for the last word, one a line.
 *
 * Commands, options and fields come from the tables; ids and images from the router, if it
 * answers at once. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "command.h"
#include "completion.h"
#include "json_scan.h"
#include "output.h"

#define ASK_TIMEOUT_MS 500u

struct completion {
    const struct command *command; /* as far as the words before name one */
    char *const *words;            /* behind it, without the last */
    size_t word_count;
    const char *last;
    struct buf out;
};

static void offer(struct completion *completion, const char *prefix, const char *text,
                  const char *suffix)
{
    size_t size = strlen(completion->last), before = completion->out.size;

    if (buf_printf(&completion->out, "%s%s%s", prefix, text, suffix) < 0)
        return;
    if (completion->out.size - before < size ||
        memcmp(completion->out.data + before, completion->last, size) != 0)
        completion->out.size = before;
    else if (buf_append_byte(&completion->out, '\n') < 0)
        completion->out.size = before;
}

/* Words. */

static const struct option_row *row_of(const struct command *command, const char *word)
{
    const struct option_row *row;

    for (size_t i = 0; (row = options_row(&command->options, i)); i++) {
        if (word[0] == '-' && word[1] == '-' && strcmp(word + 2, row->name) == 0)
            return row;
        if (word[0] == '-' && row->letter && word[1] == row->letter && word[2] == '\0')
            return row;
    }
    return NULL;
}

static bool wants_value(const struct command *command, const char *word)
{
    const struct option_row *row = row_of(command, word);

    return row && row->kind != OPTION_FLAG;
}

/* The N-th word that is neither an option nor its value; NULL: there is none. */
static const char *plain_word(const struct completion *completion, size_t n)
{
    for (size_t i = 0; i < completion->word_count; i++) {
        const char *word = completion->words[i];

        if (wants_value(completion->command, word))
            i++;
        else if (word[0] != '-' && n-- == 0)
            return word;
    }
    return NULL;
}

static bool is_behind_dashes(const struct completion *completion)
{
    for (size_t i = 0; i < completion->word_count; i++) {
        if (strcmp(completion->words[i], "--") == 0)
            return true;
    }
    return false;
}

static size_t count_plain_words(const struct completion *completion)
{
    size_t count = 0;

    while (plain_word(completion, count))
        count++;
    return count;
}

static const char *option_value(const struct completion *completion, const char *name)
{
    size_t size = strlen(name);

    for (size_t i = 0; i < completion->word_count; i++) {
        const char *word = completion->words[i];

        if (strncmp(word, name, size) != 0)
            continue;
        if (word[size] == '=')
            return word + size + 1;
        if (word[size] == '\0' && i + 1 < completion->word_count)
            return completion->words[i + 1];
    }
    return NULL;
}

/* From the router. */

static struct common_options target_of(const struct completion *completion)
{
    struct common_options target = COMMON_STANDARD;
    const char *address = option_value(completion, "--address");
    const char *port = option_value(completion, "--port");

    if (address)
        target.address = address;
    if (port)
        target.port.value = strtoul(port, NULL, 10) & 0xFFFF;
    return target;
}

/* LIST: an array of objects, or the object that has it as member LIST_KEY. */
static void offer_members(struct completion *completion, struct span list, const char *key,
                          const char *prefix)
{
    struct json_iterator iterator = json_iterate(list);
    struct span ignored, value;

    while (json_next(&iterator, &ignored, &value)) {
        _cleanup_(buf_done)
        struct buf text = { 0 };

        if (output_member_text(value, key, &text) == 0 && text.size > 0 && buf_text(&text))
            offer(completion, prefix, buf_text(&text), "");
    }
}

static void ask(struct completion *completion, const char *function, const char *list_key,
                const char *key, const char *prefix)
{
    struct common_options target = target_of(completion);
    struct client_request request = { .function = function, .payload = span_of_text("{}") };
    struct client_call call = { 0 };
    struct client client;
    struct span reply;

    if (command_client(&client, &target) < 0)
        return;
    if (client_run(&client, &call, &request, client_now_ms(&client) + ASK_TIMEOUT_MS) ==
            CLIENT_ANSWERED &&
        !call.is_error) {
        reply = (struct span){ (const char *)call.answer.data, call.answer.size };
        if (list_key)
            reply = json_get(reply, list_key);
        if (reply.data)
            offer_members(completion, reply, key, prefix);
    }
    client_call_done(&call);
    client_done(&client);
}

static void offer_ids(struct completion *completion, const char *prefix)
{
    ask(completion, "sandbox::list", NULL, "sandbox_id", prefix);
}

static void offer_images(struct completion *completion, const char *prefix)
{
    ask(completion, "sandbox::catalog::list", "images", "name", prefix);
}

/* Commands. */

static void offer_fields(struct completion *completion, const char *function)
{
    const struct operation *operation = args_operation(function);
    struct span last = span_of_text(completion->last);

    if (span_starts_with(last, "sandbox_id="))
        offer_ids(completion, "sandbox_id=");
    else if (span_starts_with(last, "image="))
        offer_images(completion, "image=");
    for (size_t i = 0; operation && i < operation->request->field_count; i++)
        offer(completion, "", operation->request->fields[i].name, "=");
}

static void offer_functions(struct completion *completion)
{
    static const char *const others[] = {
        "engine::channels::create",
        "engine::functions::info",
        "engine::functions::list",
        "engine::workers::list",
    };

    for (int i = 0; i < OP_MAX; i++)
        offer(completion, "sandbox::", operations[i].name, "");
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        offer(completion, "", others[i], "");
}

static void offer_options(struct completion *completion)
{
    const struct option_row *row;

    for (size_t i = 0; (row = options_row(&completion->command->options, i)); i++)
        offer(completion, "--", row->name, "");
}

static void offer_children(struct completion *completion, const struct command *parent)
{
    for (size_t i = 0; parent->children && parent->children[i]; i++) {
        if (!(parent->children[i]->flags & COMMAND_HIDDEN))
            offer(completion, "", parent->children[i]->name, "");
    }
}

/* Of the command that the words of `iii help` name. */
static void offer_commands(struct completion *completion)
{
    const struct command *parent = &command_root;
    const char *word;

    for (size_t i = 0; parent && (word = plain_word(completion, i)); i++)
        parent = command_find(parent, word);
    if (parent)
        offer_children(completion, parent);
}

static void offer_shells(struct completion *completion)
{
    const char *shell;

    for (size_t i = 0; (shell = completion_shell(i)); i++)
        offer(completion, "", shell, "");
}

/* The row of the next word. */
static const struct word_row *word_of(const struct completion *completion)
{
    const struct word_row *row = completion->command->words;

    for (size_t i = count_plain_words(completion); i > 0 && row->kind && !row->repeated; i--)
        row++;
    return row;
}

static void offer_words(struct completion *completion)
{
    switch (word_of(completion)->kind) {
    case WORD_COMMAND:
        offer_commands(completion);
        break;
    case WORD_SHELL:
        offer_shells(completion);
        break;
    case WORD_FUNCTION:
        offer_functions(completion);
        break;
    case WORD_FIELD:
        offer_fields(completion, plain_word(completion, 0));
        break;
    case WORD_IMAGE:
        offer_images(completion, "");
        break;
    case WORD_SANDBOX:
        offer_ids(completion, "");
        break;
    case WORD_NONE:
    case WORD_LOCAL: /* the shell's own */
    case WORD_REMOTE:
        break;
    }
}

static void complete(struct completion *completion)
{
    const struct command *command = completion->command;
    const char *before = completion->word_count > 0
                             ? completion->words[completion->word_count - 1]
                             : "";

    if (command->children) {
        offer_children(completion, command);
        return;
    }
    if (wants_value(command, before) || is_behind_dashes(completion))
        return; /* free text, or a program's own words */
    if (completion->last[0] == '-')
        offer_options(completion);
    else
        offer_words(completion);
}

static int run_complete(const struct command_line *line)
{
    const struct option_rest *rest = &line->rest;
    struct completion completion = {
        .command = &command_root,
        .words = rest->words,
        .last = rest->word_count > 0 ? rest->words[rest->word_count - 1] : "",
        .word_count = rest->word_count > 0 ? rest->word_count - 1 : 0,
    };

    while (completion.word_count > 0 && completion.command->children) {
        const struct command *child = command_find(completion.command, completion.words[0]);

        if (!child)
            return EXIT_CODE_DONE;
        completion.command = child;
        completion.words++;
        completion.word_count--;
    }
    complete(&completion);
    (void)output_write(STDOUT_FILENO, completion.out.data, completion.out.size); /* a hint */
    buf_done(&completion.out);
    return EXIT_CODE_DONE;
}

const struct command command_complete = {
    .name = "__complete",
    .path = "iii __complete",
    .text = "Candidates for the last word; for the completion scripts.",
    .flags = COMMAND_LOCAL | COMMAND_HIDDEN | COMMAND_RAW,
    .words = { { .name = "WORD", .kind = WORD_FIELD, .repeated = true } },
    COMMAND_HELP_OPTION,
    .run = run_complete,
};
