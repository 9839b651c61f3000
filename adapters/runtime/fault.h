/* fault.h - where a back end made for tests may reach into calls and answers.
 *
 * A back end gives the hooks through backend_ops.fault; without that, and in every adapter that
 * does real work, none of this exists. All hooks are optional and run on the loop's thread. */
#pragma once

#include "buf.h"
#include "envelope.h"
#include "request.h"
#include "uuid.h"

struct fault {
    /* HELLO is about to be encoded: name, contract and features may be changed. */
    void (*hello)(void *ctx, struct envelope *hello);
    /* A message of the router came, before anything looks at it. True: it is lost. */
    bool (*received)(void *ctx, enum envelope_kind kind);
    /* The router was silent and would be asked whether it is there. True: it is not. */
    bool (*quiet)(void *ctx);
    /* A call came, nothing is decoded; request_json() is its body. True: the hook holds it,
     * until fault_go_on(), request_fail() or request_drop(). */
    bool (*called)(void *ctx, struct request *request, const char *operation);
    /* An answer is ready (BODY may be changed in place or replaced). True: the hook holds it,
     * until fault_answer() or request_drop(). */
    bool (*answering)(void *ctx, struct request *request, const char *operation,
                      struct buf *body);
    /* The id of a new sandbox, and the wall clock in seconds, instead of a random one and the
     * real one. False: not now. */
    bool (*identify)(void *ctx, char ret_id[UUID_TEXT_BYTES]);
    bool (*clock)(void *ctx, int64_t *ret_seconds);
    void *ctx;
};

/* What everybody takes ids of sandboxes and the wall clock from. */
int fault_new_id(const struct adapter *adapter,
                 char ret_id[UUID_TEXT_BYTES]); /* as uuid_random */
int64_t fault_wall_seconds(const struct adapter *adapter);

/* Goes on with a call that `called` held. */
void fault_go_on(struct request *request);
/* Sends the answer that `answering` held. */
void fault_answer(struct request *request);
/* Sends the bytes as one message on the link, whatever they are; lost when there is none. */
void fault_send_raw(struct adapter *adapter, const void *data, size_t size);
/* Breaks the link as a lost connection would. */
void fault_disconnect(struct adapter *adapter);
