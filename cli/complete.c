/* complete.c - `iii __complete WORD...`: candidates for the last word, one a line.
 *
 * Commands, options and fields come from the tables; ids and images from the router, if it
 * answers at once. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "command.h"
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
    for (size_t i = 0; i < command->options.count; i++) {
        const struct option_row *row = &command->options.rows[i];

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

static struct target_options target_of(const struct completion *completion)
{
    struct target_options target = TARGET_STANDARD;
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
    struct target_options target = target_of(completion);
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
    for (size_t i = 0; i < completion->command->options.count; i++)
        offer(completion, "--", completion->command->options.rows[i].name, "");
}

static void offer_words(struct completion *completion)
{
    const char *name = completion->command->name;
    size_t index = count_plain_words(completion);

    if (completion->command == &command_trigger && index == 0)
        offer_functions(completion);
    else if (completion->command == &command_trigger)
        offer_fields(completion, plain_word(completion, 0));
    else if (index == 0 && (strcmp(name, "run") == 0 || strcmp(name, "create") == 0))
        offer_images(completion, "");
    else if (index == 0 && (strcmp(name, "exec") == 0 || strcmp(name, "stop") == 0 ||
                            strcmp(name, "upload") == 0 || strcmp(name, "download") == 0))
        offer_ids(completion, "");
    else if (completion->command == &command_completion && index == 0) {
        offer(completion, "", "bash", "");
        offer(completion, "", "zsh", "");
        offer(completion, "", "fish", "");
    }
}

static void complete(struct completion *completion)
{
    const struct command *command = completion->command;
    const char *before = completion->word_count > 0
                             ? completion->words[completion->word_count - 1]
                             : "";

    if (command->children) {
        for (size_t i = 0; command->children[i]; i++) {
            if (!command->children[i]->hidden)
                offer(completion, "", command->children[i]->name, "");
        }
        return;
    }
    if (wants_value(command, before))
        return; /* free text */
    if (completion->last[0] == '-')
        offer_options(completion);
    else
        offer_words(completion);
}

static int run_complete(const struct command *self, int argc, char **argv)
{
    struct completion completion = {
        .command = &command_root,
        .words = argv,
        .last = argc > 0 ? argv[argc - 1] : "",
        .word_count = argc > 0 ? (size_t)argc - 1 : 0,
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
    .synopsis = "WORD...",
    .text = "Candidates for the last word; for the completion scripts.",
    .hidden = true,
    .run = run_complete,
};
