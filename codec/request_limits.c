/* request_limits.c - see request_limits.h. */
#include "request_limits.h"

#include <inttypes.h>
#include <string.h>

#include "utf8.h"

uint64_t request_limits_base64_bytes(const char *text)
{
    size_t size = text ? strlen(text) : 0;
    uint64_t bytes = (uint64_t)size / 4 * 3;

    if (bytes > 0 && text[size - 1] == '=')
        bytes -= text[size - 2] == '=' ? 2 : 1;
    return bytes;
}

static int check_inline(uint64_t bytes, const char *fields, const char *cure,
                        struct sandbox_error *err)
{
    if (bytes <= LIMIT_INLINE_BYTES)
        return 0;
    return sandbox_error_set(
        err, S001, "%s: expected at most %d bytes inline in one request, got %" PRIu64 ": %s",
        fields, LIMIT_INLINE_BYTES, bytes, cure);
}

/* What one program is given: the sum, and each text by itself. */
struct program_texts {
    uint64_t sum_bytes;
    struct sandbox_error *err;
};

static int add_text(struct program_texts *texts, const char *field, uint64_t bytes)
{
    texts->sum_bytes += bytes;
    if (bytes <= LIMIT_PROGRAM_TEXT_BYTES)
        return 0;
    return sandbox_error_set(texts->err, S001,
                             "%s: expected each text of at most %d bytes, got one of %" PRIu64,
                             field, LIMIT_PROGRAM_TEXT_BYTES, bytes);
}

static int add_list(struct program_texts *texts, const char *field,
                    const struct text_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (add_text(texts, field, strlen(list->items[i])) < 0)
            return -1;
    }
    return 0;
}

static int add_env(struct program_texts *texts, const struct env *env)
{
    for (size_t i = 0; i < env->count; i++) {
        const struct env_entry *entry = &env->entries[i];
        uint64_t bytes = strlen(entry->name);

        if (entry->value)
            bytes += 1 + strlen(entry->value);
        if (add_text(texts, "env", bytes) < 0)
            return -1;
    }
    return 0;
}

static int check_sum(const struct program_texts *texts, const char *fields)
{
    if (texts->sum_bytes <= LIMIT_PROGRAM_BYTES)
        return 0;
    return sandbox_error_set(texts->err, S001,
                             "%s: expected at most %d bytes in sum, got %" PRIu64, fields,
                             LIMIT_PROGRAM_BYTES, texts->sum_bytes);
}

static int check_env(const struct env *env, struct sandbox_error *err)
{
    struct program_texts texts = { .err = err };

    return add_env(&texts, env) < 0 ? -1 : check_sum(&texts, "env");
}

/* Cc of Unicode: both control ranges. */
static int check_label(const char *name, struct sandbox_error *err)
{
    size_t size = name ? strlen(name) : 0;
    size_t length;

    for (size_t i = 0; i < size; i += length) {
        uint32_t c = 0;

        length = utf8_decode(name + i, size - i, &c, NULL);
        if (length == 0)
            length = 1;
        if (c < 0x20 || (c >= 0x7F && c < 0xA0))
            return sandbox_error_set(
                err, S001, "name: expected text without control characters, got U+%04X", c);
    }
    return 0;
}

int request_limits_check_create(const struct create_request *request, struct sandbox_error *err)
{
    if (check_label(request->name, err) < 0)
        return -1;
    return check_env(&request->env, err);
}

int request_limits_check_exec(const struct exec_request *request, struct sandbox_error *err)
{
    struct program_texts texts = { .err = err };
    const char *cmd = request->cmd ? request->cmd : "";
    size_t cmd_bytes = strlen(cmd);

    if (check_inline(request_limits_base64_bytes(request->stdin), "stdin",
                     "send more with sandbox::fs::write and a channel", err) < 0)
        return -1;
    /* A command line is many texts; its words are no longer than it is. */
    if (utf8_has_space(cmd, cmd_bytes))
        texts.sum_bytes = cmd_bytes;
    else if (add_text(&texts, "cmd", cmd_bytes) < 0)
        return -1;
    if (add_list(&texts, "args", &request->args) < 0 ||
        add_list(&texts, "argv", &request->argv) < 0 || add_env(&texts, &request->env) < 0)
        return -1;
    return check_sum(&texts, "cmd, args, argv and env");
}

int request_limits_check_argv(const struct text_list *argv, struct sandbox_error *err)
{
    struct program_texts texts = { .err = err };

    return add_list(&texts, "cmd", argv);
}

int request_limits_check_run(const struct run_request *request, struct sandbox_error *err)
{
    uint64_t bytes = request->code.size + request_limits_base64_bytes(request->stdin);

    if (request->files.count > LIMIT_RUN_FILES)
        return sandbox_error_set(err, S001, "files: expected at most %d entries, got %zu",
                                 LIMIT_RUN_FILES, request->files.count);
    for (size_t i = 0; i < request->files.count; i++)
        bytes += request->files.items[i].content.size;
    if (check_inline(bytes, "code, files and stdin",
                     "write larger files with sandbox::fs::write and a channel", err) < 0)
        return -1;
    return check_env(&request->env, err);
}

int request_limits_check_write(const struct fs_write_request *request,
                               struct sandbox_error *err)
{
    uint64_t bytes = request->content.text.size +
                     request_limits_base64_bytes(request->content_b64);

    return check_inline(bytes, "content", "give a channel as content to stream it", err);
}

int request_limits_check(enum operation_id operation, const void *request,
                         struct sandbox_error *err)
{
    switch (operation) {
    case OP_create:
        return request_limits_check_create(request, err);
    case OP_exec:
        return request_limits_check_exec(request, err);
    case OP_run:
        return request_limits_check_run(request, err);
    case OP_fs_write:
        return request_limits_check_write(request, err);
    case OP_worker_prepare:
        return check_env(&((const struct worker_prepare_request *)request)->env, err);
    case OP_worker_start:
        return check_env(&((const struct worker_start_request *)request)->env, err);
    default:
        return 0;
    }
}
