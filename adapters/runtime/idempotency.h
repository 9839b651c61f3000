/* idempotency.h - a repeat with the same key gets the first answer (contract 2.5).
 *
 * Owns the keys of this process, a digest of each first body and the bytes of each answer that
 * is kept. Knows nothing of what the operations do. */
#pragma once

#include <stdbool.h>

#include "request.h"

struct idempotency;

#define IDEMPOTENCY_KEYS_MAX 4096u
#define IDEMPOTENCY_KEEP_MS (10u * 60 * 1000)

int idempotency_new(struct adapter *adapter, struct idempotency **ret_idempotency);
void idempotency_free(struct idempotency *idempotency);
DEFINE_CLEANUP(struct idempotency *, idempotency_free)

/* For the handlers of create, exec and run, after all checks that need only the request and
 * before the registry (contract 4.4). True: the caller serves the request. False: the request
 * is taken; it is answered already, or will be when the first one is. Without a key: true. */
bool idempotency_admit(struct request *request);

/* For request.c: the answer of an admitted request, before it is sent. CODE is SANDBOX_OK for a
 * reply. */
void idempotency_answered(struct request *request, enum sandbox_code code, const void *body,
                          size_t size);
/* For request.c: a request that ends without an answer. */
void idempotency_dropped(struct request *request);
