/* router_call.h - calls the other way: what this adapter asks of the router.
 *
 * Owns the calls that are not answered yet; they end with the connection they went out on. */
#pragma once

#include "adapter.h"
#include "envelope.h"

struct router_call;

/* Exactly one of REPLY (a JSON body) and ERROR (an error envelope) is not NULL; both are NULL
 * when the connection was lost. Borrowed for the call; the router_call is gone afterwards. */
typedef void (*router_call_fn)(void *ctx, const struct span *reply, const struct span *error);

/* DONE once, never from inside the call. -ENOTCONN: no connection; -ENOMEM. */
int router_call(struct adapter *adapter, const char *operation, const char *json,
                router_call_fn done, void *ctx, struct router_call **ret_call);
/* No callback follows. */
void router_call_forget(struct router_call *call);

int router_calls_new(struct adapter *adapter, struct router_calls **ret_calls);
void router_calls_free(struct router_calls *calls);
DEFINE_CLEANUP(struct router_calls *, router_calls_free)
/* REPLY or ERROR of the router; one that nobody waits for is ignored. */
void router_calls_answer(struct router_calls *calls, const struct envelope *answer);
void router_calls_link_lost(struct router_calls *calls);
