/* progress.h - what is told beside a call that makes a sandbox (contract 5.1.3): one JSON
 * object an event, its name in the key `event`. */
#pragma once

#include "image_cache.h"
#include "request.h"

/* TOTAL_BYTES 0: unknown. Of the unpacking only the fact is told. */
void progress_image(struct request *request, enum image_stage stage, const char *source,
                    uint64_t bytes, uint64_t total_bytes);
void progress_booting(struct request *request);
void progress_ready(struct request *request, const char *sandbox_id);
