/* worker_keys.h - look-ups and checks that the operations share; workers.c. */
#pragma once

#include "worker.h"

struct worker_key *worker_keys_find(const struct workers *workers, const char *text);
struct worker_key *worker_keys_add(struct workers *workers,
                                   const char *text); /* NULL: memory */

/* S505, which tells nothing but the operation. TOKEN may be NULL. */
int worker_check_token(const struct worker *worker, const struct request *request,
                       const char *token, struct sandbox_error *err);
/* S503 with the live one in `fix`. */
int worker_check_instance(const struct worker *worker, const char *instance,
                          struct sandbox_error *err);
/* vm_id and instance of a live VM. */
void worker_add_fix(const struct worker *worker, struct sandbox_error *err);
