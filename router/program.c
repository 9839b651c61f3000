/* program.c - see program.h. */
#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proc.h"

void program_free(char **texts)
{
    for (size_t i = 0; texts && texts[i]; i++)
        free(texts[i]);
    free(texts);
}

bool program_equal(char *const *a, char *const *b)
{
    size_t i = 0;

    if (!a || !b)
        return a == b;
    while (a[i] && b[i] && strcmp(a[i], b[i]) == 0)
        i++;
    return !a[i] && !b[i];
}

static int copy_command(const struct text_list *command, char ***ret_argv)
{
    char **argv = calloc(command->count + 1, sizeof(*argv));

    for (size_t i = 0; argv && i < command->count; i++) {
        argv[i] = strdup(command->items[i]);
        if (!argv[i]) {
            program_free(take_ptr(argv));
            break;
        }
    }
    *ret_argv = argv;
    return argv ? 0 : -ENOMEM;
}

/* *ret_path NULL: not there, or not executable. */
static int path_in(const char *directory, size_t size, const char *name, char **ret_path)
{
    *ret_path = NULL;
    if (asprintf(ret_path, "%.*s/%s", (int)size, directory, name) < 0)
        return -ENOMEM;
    if (access(*ret_path, X_OK) < 0)
        free(take_ptr(*ret_path));
    return 0;
}

static int search_path(const char *name, char **ret_path)
{
    const char *at = getenv("PATH");
    int result = 0;

    *ret_path = NULL;
    while (at && *at && result == 0 && !*ret_path) {
        size_t size = strcspn(at, ":");

        if (size > 0)
            result = path_in(at, size, name, ret_path);
        at += size + (at[size] == ':');
    }
    return result;
}

int program_find(const struct router_settings *settings, char ***ret_argv)
{
    const char *directory = proc_self_directory();
    struct text_list command = { .count = 1 };
    _cleanup_free_ char *path = NULL;
    int result = 0;

    *ret_argv = NULL;
    if (settings->command.count > 0)
        return copy_command(&settings->command, ret_argv);
    if (strchr(settings->adapter, '/'))
        return 0;
    if (directory)
        result = path_in(directory, strlen(directory), settings->adapter, &path);
    if (result == 0 && !path)
        result = search_path(settings->adapter, &path);
    if (result < 0 || !path)
        return result;
    command.items = &path;
    return copy_command(&command, ret_argv);
}

static bool is_ours(const char *entry)
{
    return strncmp(entry, "SANDBOX_ROUTER=", 15) == 0 ||
           strncmp(entry, "SANDBOX_CONFIG=", 15) == 0;
}

int program_environment(const char *url, const char *config, char ***ret_environment)
{
    size_t count = 0;
    size_t at = 0;
    char **texts;

    while (environ[count])
        count++;
    texts = calloc(count + 3, sizeof(*texts));
    if (!texts)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (is_ours(environ[i]))
            continue;
        texts[at] = strdup(environ[i]);
        if (!texts[at++])
            goto no_memory;
    }
    if (asprintf(&texts[at], "SANDBOX_ROUTER=%s", url) < 0)
        goto no_memory_at;
    at++;
    if (asprintf(&texts[at], "SANDBOX_CONFIG=%s", config) < 0)
        goto no_memory_at;
    *ret_environment = texts;
    return 0;
no_memory_at:
    texts[at] = NULL; /* asprintf leaves it undefined */
no_memory:
    program_free(texts);
    return -ENOMEM;
}
