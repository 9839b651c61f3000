/* request.h - one call of the router, from its arrival to its one answer.
 *
 * States: received (decoding, checks) -> running -> answered, or cancelled -> answered. Exactly
 * one of request_reply(), request_fail() ends it; the request is gone afterwards. A handler may
 * answer from inside its call or later. */
#pragma once

#include <stdbool.h>

#include "error.h"
#include "tables.h"

struct request;
struct adapter; /* the process; adapter.h */

struct adapter *request_adapter(const struct request *request);
const struct operation *request_operation(const struct request *request);
/* The decoded body: struct <op>_request. Owned by the request. */
const void *request_body(const struct request *request);
/* The router's id of the call, which both sides log as call=. */
uint64_t request_id(const struct request *request);

/* Encodes REPLY (a struct of the operation's reply type, borrowed) and answers. */
void request_reply(struct request *request, const void *reply);
/* Answers with the error, which is moved out of ERR. Adds nothing to it. */
void request_fail(struct request *request, struct sandbox_error *err);
/* A bare JSON text as reply, for operations of an adapter's own. */
void request_reply_json(struct request *request, const char *json, size_t size);

/* Progress beside the call: EVENT with a JSON body (compact, one object). */
void request_event(struct request *request, const char *json, size_t size);

/* FN is called at most once, when the caller is gone and the call has no idempotency_key
 * (contract 2.4); the request still has to be answered. Setting NULL forgets it. */
void request_on_cancel(struct request *request, void (*fn)(void *ctx), void *ctx);
bool request_cancelled(const struct request *request);
