/* image_call.h - what the commands of `iii sandbox image` share: a call of the bound adapter's
 * own operations on images (docs/images.md). */
#pragma once

#include "command.h"
#include "payload.h"
#include "progress.h"

extern const struct command command_image_ls;
extern const struct command command_image_pull;
extern const struct command command_image_rm;
extern const struct command command_image_prune;
extern const struct command command_image_verify;

/* A pull, or reading a whole cache, takes what it takes. */
#define IMAGE_CALL_TIMEOUT_MS 7200000u

/* Calls `<adapter>::image::OPERATION` as sandbox_call() does. EXIT_CODE_DONE: call->answer is
 * the result, an object. PROGRESS (NULL: none) was begun and is ended here, the payload as
 * well. */
int image_call(struct client *client, struct client_call *call, const char *operation,
               struct payload *payload, struct progress *progress);
