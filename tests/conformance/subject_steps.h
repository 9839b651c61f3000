/* subject_steps.h - the steps that act on the router's and adapter's processes and their file
 * (README.md). Only for what was started here. */
#pragma once

#include "step.h"

bool subject_step_configure(struct play *play, const struct yaml_node *step, struct buf *why);
bool subject_step_restart(struct play *play, const struct yaml_node *step, struct buf *why);
