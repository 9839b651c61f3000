/* create.h - making a sandbox, for `create` and for the first step of `run`: the checks of
 * contract 5.1.2 in their order, then image, machine and guest. */
#pragma once

#include "request.h"
#include "sandbox.h"

struct creation;

/* Exactly one of SANDBOX (one reference, the receiver's; it is ready) and ERR (borrowed, may be
 * moved) is not NULL. The creation is gone; a failed one has left no sandbox, unless its
 * machine cannot be killed. */
typedef void (*creation_done_fn)(void *ctx, struct sandbox *own_sandbox,
                                 struct sandbox_error *err);

/* Checks 2 to 5, then the rest begins. BODY and REQUEST (which gives settings and takes the
 * progress) are borrowed until DONE, which comes once and never from inside this call. -1: a
 * check failed, DONE does not come. */
int creation_start(struct request *request, const struct create_request *body,
                   creation_done_fn done, void *ctx, struct creation **ret_creation,
                   struct sandbox_error *err);
/* Nobody wants it any more: it fails, and DONE comes (also from inside this call). */
void creation_cancel(struct creation *creation, const char *why);
