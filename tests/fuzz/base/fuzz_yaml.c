/* fuzz_yaml.c - any text is a tree within the limits, or refused with a line. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "yaml.h"

static size_t count_nodes(const struct yaml_node *node, unsigned depth)
{
    size_t count = 1;
    uint64_t number;
    bool truth;

    assert(depth <= 32 && node->line > 0);
    assert((node->kind == YAML_SCALAR) <= (node->text != NULL));
    (void)yaml_as_bool(node, &truth); /* must only not crash */
    (void)yaml_as_u64(node, &number);
    for (size_t i = 0; i < node->count; i++) {
        if (node->kind == YAML_MAP)
            assert(yaml_get(node, node->keys[i]->text) == node->items[i]);
        count += count_nodes(node->items[i], depth + 1) + (node->kind == YAML_MAP);
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct yaml_node *root = NULL;
    char error[80] = "";
    int result = yaml_parse((const char *)data, size, &root, error, sizeof(error));

    assert((result == 0) == (root != NULL));
    assert((result == 0) == (error[0] == 0));
    assert(result == 0 || memchr(error, 0, sizeof(error)));
    assert(!root || count_nodes(root, 0) <= 65536);
    yaml_free(root);
    return 0;
}
