/* fs_write_stream.h - fs::write whose bytes come from a channel (contract 8.10, 9). */
#pragma once

#include "request.h"
#include "sandbox.h"

/* No byte and no end within this time of the call: S218 (contract 9.3). Later the limit between
 * two chunks is the setting stream_idle_timeout_ms. */
#define FS_WRITE_FIRST_MS 25000u
/* So long the guest may take to say that an aborted write left nothing. */
#define FS_WRITE_ABORT_MS 2000u

/* Of a request whose body form and sandbox are checked. Answers it. */
void fs_write_stream(struct request *request, struct sandbox *sandbox);
