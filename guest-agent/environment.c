/* environment.c - see environment.h. Sorting keeps it linear-ish for 100,000 variables. */
#include "environment.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

static const char *const defaults[] = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/root",
};

struct variable {
    const char *text;
    size_t name_size;
    size_t order;
};

static int variable_compare_names(const struct variable *one, const struct variable *two)
{
    const size_t size = one->name_size < two->name_size ? one->name_size : two->name_size;
    const int order = memcmp(one->text, two->text, size);

    if (order != 0 || one->name_size == two->name_size)
        return order;
    return one->name_size < two->name_size ? -1 : 1;
}

static int variable_compare(const void *a, const void *b)
{
    const struct variable *one = a, *two = b;
    const int order = variable_compare_names(one, two);

    if (order != 0)
        return order;
    return one->order < two->order ? -1 : one->order > two->order;
}

static void variable_add(struct variable *variables, size_t *count, const char *text)
{
    const char *equals = strchr(text, '=');

    if (!equals || equals == text)
        return;
    variables[*count] = (struct variable){
        .text = text,
        .name_size = (size_t)(equals - text),
        .order = *count,
    };
    ++*count;
}

char **environment_merge(const struct text_list *const *layers, size_t layer_count)
{
    _cleanup_free_ struct variable *variables = NULL;
    size_t count = 0, room = ARRAY_SIZE(defaults), kept = 0;
    char **merged;

    for (size_t i = 0; i < layer_count; i++)
        room += layers[i]->count;
    variables = calloc(room, sizeof(*variables));
    merged = calloc(room + 1, sizeof(*merged));
    if (!variables || !merged) {
        free(merged);
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_SIZE(defaults); i++)
        variable_add(variables, &count, defaults[i]);
    for (size_t layer = 0; layer < layer_count; layer++) {
        for (size_t i = 0; i < layers[layer]->count; i++)
            variable_add(variables, &count, layers[layer]->items[i]);
    }
    qsort(variables, count, sizeof(*variables), variable_compare);
    for (size_t i = 0; i < count; i++) {
        if (i + 1 == count || variable_compare_names(&variables[i], &variables[i + 1]) != 0)
            merged[kept++] = (char *)(uintptr_t)variables[i].text;
    }
    return merged;
}
