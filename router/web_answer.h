/* web_answer.h - answers as frames of the main socket (iii-wire 3.2, 3.3). */
#pragma once

#include "web_call.h"

/* BODY: the reply's JSON, as it came. */
void web_answer_result(struct web_call *call, struct span body);
/* ENVELOPE: an error body; one that is none becomes `invocation_failed`. */
void web_answer_envelope(struct web_call *call, struct span envelope);
/* An error that is no S-code. */
void web_answer_plain(struct web_call *call, const char *code, const char *message);
/* One EVENT of a call that asked for them. */
void web_answer_progress(struct web_call *call, struct span event);

/* Appends the `error` member's value for an error envelope. 0, -EBADMSG (it is none), or
 * -ENOMEM. */
int web_error_append(struct buf *to, struct span envelope);
