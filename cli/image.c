/* image.c - `iii sandbox image`: the images of the bound adapter, for operators. */
#include "image_call.h"
#include "sandbox.h"

static const struct command *const children[] = {
    &command_image_ls,    &command_image_pull,   &command_image_rm,
    &command_image_prune, &command_image_verify, NULL,
};

const struct command command_sandbox_image = {
    .name = "image",
    .path = "iii sandbox image",
    .text = "List, pull, remove and check the images on disk.",
    .children = children,
};
