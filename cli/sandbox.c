/* sandbox.c - see sandbox.h. */
#include "sandbox.h"

static const struct command *const children[] = {
    &command_sandbox_run,      &command_sandbox_create, &command_sandbox_exec,
    &command_sandbox_list,     &command_sandbox_stop,   &command_sandbox_upload,
    &command_sandbox_download, &command_sandbox_image,  NULL,
};

const struct command command_sandbox = {
    .name = "sandbox",
    .path = "iii sandbox",
    .text = "Create sandboxes, run programs in them, move files.",
    .children = children,
};
