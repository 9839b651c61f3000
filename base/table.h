/* table.h - a hash map from a number or a text to a pointer.
 *
 * O(1) for each operation, also under keys that a stranger chose (the hash is keyed with a
 * secret). A table uses one kind of key for all its life. Values are not owned and never NULL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"

struct table;

int table_new(struct table **ret_table); /* 0, -ENOMEM, or -errno of getrandom(2) */
void table_free(struct table *table);
DEFINE_CLEANUP(struct table *, table_free)

size_t table_count(const struct table *table);

/* 0; -EEXIST: the key is there, nothing changed; -ENOMEM. A text key is borrowed until the
 * entry is removed: keep it in the value. */
int table_put(struct table *table, uint64_t key, void *value);
int table_put_text(struct table *table, const char *key, void *value);

/* NULL: not there. */
void *table_get(const struct table *table, uint64_t key);
void *table_get_text(const struct table *table, const char *key);

/* Removes the entry and gives its value; NULL: not there. */
void *table_remove(struct table *table, uint64_t key);
void *table_remove_text(struct table *table, const char *key);

/* The next value from *cursor on, which starts at 0; NULL: no more. Any entry may be removed
 * meanwhile; nothing may be put.
 *
 *     for (size_t cursor = 0; (value = table_next(table, &cursor));) */
void *table_next(const struct table *table, size_t *cursor);
