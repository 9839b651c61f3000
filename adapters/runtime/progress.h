/* progress.h - what is told beside a call that makes a sandbox (contract 5.1.3): one JSON
 * object an event, its name in the key `event`. */
#pragma once

#include "image_cache.h"
#include "request.h"

/* `pulling_image` while bytes come from elsewhere, then `unpacking` with the stage. */
void progress_image(struct request *request, const char *source,
                    const struct image_progress *progress);
void progress_booting(struct request *request);
void progress_ready(struct request *request, const char *sandbox_id);
