/* hint.c - see hint.h. */
#include "hint.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "suggest.h"

#define NAME_MAX_BYTES 64

const char *hint_nearest_function(const char *function)
{
    static char names[OP_MAX][NAME_MAX_BYTES];
    struct suggest suggest;

    suggest_init(&suggest, function, strlen(function));
    for (int i = 0; i < OP_MAX; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "sandbox::%s",
                       operations[i].name); /* fits */
        suggest_offer(&suggest, names[i]);
    }
    return suggest.best;
}

void hint_function(const char *function)
{
    const char *nearest = isatty(STDERR_FILENO) ? hint_nearest_function(function) : NULL;

    if (nearest)
        (void)fprintf(stderr, "hint: did you mean %s?\n", nearest);
}

static void hint_field(const char *function, const struct type *request, const char *pair)
{
    struct suggest suggest;
    size_t size = strcspn(pair, "=");

    suggest_init(&suggest, pair, size);
    for (size_t i = 0; i < request->field_count; i++)
        suggest_offer(&suggest, request->fields[i].name);
    if (!suggest.best || suggest.distance == 0)
        return;
    (void)fprintf(stderr, "hint: %s has no field %.*s; did you mean %s?\n", function, (int)size,
                  pair, suggest.best);
}

void hint_fields(const struct args *args)
{
    const struct operation *operation = args_operation(args->function);

    if (!operation || !isatty(STDERR_FILENO))
        return;
    for (size_t i = 0; i < args->pair_count; i++)
        hint_field(args->function, operation->request, args->pairs[i]);
}
