/* list.h - an intrusive, circular, doubly linked list; the node lives in its element.
 *
 * A node that is in no list points at itself, so list_remove() may be called twice.
 * A zeroed node is not valid: list_init() first. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cleanup.h"

struct list {
    struct list *next;
    struct list *previous;
};

static inline void list_init(struct list *node)
{
    node->next = node;
    node->previous = node;
}

/* Of a head: no elements. Of a node: in no list. */
static inline bool list_empty(const struct list *node)
{
    return node->next == node;
}

static inline void list_append(struct list *head, struct list *node)
{
    node->next = head;
    node->previous = head->previous;
    head->previous->next = node;
    head->previous = node;
}

static inline void list_prepend(struct list *head, struct list *node)
{
    list_append(head->next, node);
}

static inline void list_remove(struct list *node)
{
    node->previous->next = node->next;
    node->next->previous = node->previous;
    list_init(node);
}

/* The first node, unlinked; NULL when the list is empty. */
static inline struct list *list_pop(struct list *head)
{
    struct list *node = head->next;

    if (node == head)
        return NULL;
    list_remove(node);
    return node;
}

/* Moves all nodes of FROM to the end of TO. */
static inline void list_move_all(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->previous = to->previous;
    to->previous->next = from->next;
    from->previous->next = to;
    to->previous = from->previous;
    list_init(from);
}

#define LIST_ENTRY(node, type, member) CONTAINER_OF(node, type, member)

/* The current node may be removed and freed in the body; no other may. */
#define LIST_FOREACH(node, head)                                                               \
    for (struct list *node = (head)->next, *node##_next = node->next; node != (head);          \
         node = node##_next, node##_next = node->next)
