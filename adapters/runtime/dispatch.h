/* dispatch.h - from the name of an operation to its handler: row, body, checks (contract 4.1).
 *
 * S304 for what this adapter does not implement, S001 for a body that is not as the table says.
 */
#pragma once

#include "adapter.h"
#include "request.h"

/* Ends in a handler, or in an answer. BODY is borrowed for the call. */
void dispatch(struct request *request, const char *body, size_t size);
