/* request.h - one call of the router, from its arrival to its one answer.
 *
 * States: received (decoding, checks) -> running -> answered, or cancelled -> answered. Exactly
 * one of request_reply(), request_fail() ends it; the request is gone afterwards. A handler may
 * answer from inside its call or later. */
#pragma once

#include <stdbool.h>

#include "envelope.h"
#include "error.h"
#include "settings.h"
#include "tables.h"

struct request;
struct requests; /* all that are not answered yet */
struct adapter;  /* the process; adapter.h */

struct adapter *request_adapter(const struct request *request);
const struct operation *request_operation(const struct request *request);
/* The decoded body: struct <op>_request. Owned by the request. */
const void *request_body(const struct request *request);
/* The settings as they were when the call came; they live as long as the request. */
const struct adapter_settings *request_settings(const struct request *request);
/* The body as it came; only until the handler returns. */
const char *request_json(const struct request *request, size_t *ret_size);
/* The router's id of the call, which both sides log as call=. */
uint64_t request_id(const struct request *request);

/* Encodes REPLY (a struct of the operation's reply type, borrowed) and answers. */
void request_reply(struct request *request, const void *reply);
/* The same with a struct of another TYPE than the operation's usual one. */
void request_reply_as(struct request *request, const struct type *type, const void *reply);
/* Answers with the error, which is moved out of ERR. What contract 3.4 says of `outcome` is
 * seen to here: dropped where it has no place, may_have_run where it must be and was not set.
 */
void request_fail(struct request *request, struct sandbox_error *err);
/* A bare JSON text as reply, for operations of an adapter's own. */
void request_reply_json(struct request *request, const char *json, size_t size);

/* Progress beside the call: EVENT with a JSON body (compact, one object). */
void request_event(struct request *request, const char *json, size_t size);

/* FN is called at most once, when the caller is gone and the call has no idempotency_key
 * (contract 2.4); the request still has to be answered. If that is so already, it is called
 * before the loop waits again. Setting NULL forgets it. */
void request_on_cancel(struct request *request, void (*fn)(void *ctx), void *ctx);
bool request_cancelled(const struct request *request);

/* Before the answer, which alone tells of this sandbox: if the caller turns out to be gone
 * before the router has taken the answer, the sandbox ends, since nobody knows of it
 * (contract 2.4). With an idempotency_key nothing is done: a repeat will tell. */
void request_tells_of(struct request *request, const char *sandbox_id);

/* The rest is for serve.c, dispatch.c, idempotency.c and adapter.c. */

int requests_new(struct adapter *adapter, struct requests **ret_requests);
void requests_free(struct requests *requests); /* drops what is left */
DEFINE_CLEANUP(struct requests *, requests_free)
size_t requests_count(const struct requests *requests);

/* Begins the CALL, which came over the connection LINK (its generation, serve.h), and
 * dispatches it. Its spans are borrowed for the call. -EEXIST: the id is in use; -ENOMEM. */
int requests_begin(struct requests *requests, uint64_t link, const struct envelope *call);
/* CANCEL of the router. An id that is not there is one that was answered meanwhile; the router
 * sends none after it has taken an answer, so that this one reached nobody. */
void requests_cancel(struct requests *requests, uint64_t link, uint64_t id);
/* The connection is gone, and with it everybody who could take the answers: cancels its calls.
 */
void requests_cancel_link(struct requests *requests, uint64_t link);

/* Name without the namespace, as it came; also of an operation that is in no table. */
const char *request_operation_name(const struct request *request);
/* Dispatch found the row and decoded the body, which is consumed. */
void request_set_body(struct request *request, const struct operation *operation,
                      void *own_body);
/* For fault.c: what a test hook held goes on. */
void request_go_on(struct request *request);
void request_send_held(struct request *request);
/* Ends it without an answer. */
void request_drop(struct request *request);

/* What idempotency.c keeps with a request; NULL: nothing. */
struct idempotency_entry;
struct idempotency_entry *request_idempotency(const struct request *request);
void request_set_idempotency(struct request *request, struct idempotency_entry *entry);
/* Sends bytes that were another request's answer. */
void request_repeat(struct request *request, enum envelope_kind kind, const void *body,
                    size_t size);
