/* pool.h - machines that run already, pinged and without a purpose yet.
 *
 * Each is a clone that waits behind its template's HELLO, just as a fresh clone does. They are
 * made one at a time in the background and given away once. */
#pragma once

#include "list.h"

struct backend;
struct pool;
struct template;
struct vm;

int pool_new(struct backend *backend, struct pool **ret_pool);
/* Before the backend's templates and vms end. */
void pool_free(struct pool *pool);

/* A ready machine of TEMPLATE, the caller's; NULL: none. Either way the pool sees to it that
 * there will be some: this template is in use. */
struct vm *pool_take(struct pool *pool, struct template *template);
/* The template is dropped: its machines go with it. */
void pool_drop(struct pool *pool, struct template *template);
/* All that wait are ended; others are made from now on. */
void pool_empty(struct pool *pool);
/* New settings: fewer machines, or more from now on. */
void pool_resize(struct pool *pool);
