/* yaml.h - a YAML file as a read-only tree whose nodes know their lines (libyaml underneath).
 *
 * Bounded: 1 MiB of text, depth 32, 65,536 nodes; aliases, tags and duplicate keys are errors.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"

enum yaml_kind { YAML_NULL, YAML_SCALAR, YAML_LIST, YAML_MAP };

struct yaml_node {
    enum yaml_kind kind;
    unsigned line;            /* from 1 */
    bool quoted;              /* a quoted scalar is text, whatever it looks like */
    char *text;               /* YAML_SCALAR */
    size_t count;             /* YAML_LIST, YAML_MAP */
    struct yaml_node **items; /* values */
    struct yaml_node **keys;  /* YAML_MAP: scalars, same order as items */
};

/* An empty document is YAML_NULL. On failure -errno (-EINVAL: the text is wrong; -E2BIG: over a
 * limit), and ERROR (of ERROR_SIZE bytes) says `line N: why`. */
int yaml_parse(const char *text, size_t size, struct yaml_node **ret_root, char *error,
               size_t error_size);
int yaml_load(const char *path, struct yaml_node **ret_root, char *error, size_t error_size);
/* libyaml exports a symbol of the same name and would call ours. */
void yaml_free(struct yaml_node *root) __asm__("yaml_node_free");
DEFINE_CLEANUP(struct yaml_node *, yaml_free)

/* The value under KEY of a map, or NULL. */
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);

/* Scalars read strictly: 0, or -EINVAL (another type), -ERANGE (a number, but below 0 or over
 * 64 bits). Booleans are true and false; numbers are decimal without signs or leading zeros. */
int yaml_as_bool(const struct yaml_node *node, bool *ret_value);
int yaml_as_u64(const struct yaml_node *node, uint64_t *ret_value);
