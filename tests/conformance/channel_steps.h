/* channel_steps.h - the steps that make, fill and read channels (README.md). */
#pragma once

#include "step.h"

bool channel_step_make(struct play *play, const struct yaml_node *step, struct buf *why);
bool channel_step_send(struct play *play, const struct yaml_node *step, struct buf *why);
bool channel_step_overfill(struct play *play, const struct yaml_node *step, struct buf *why);
bool channel_step_finish(struct play *play, const struct yaml_node *step, struct buf *why);
bool channel_step_beside(struct play *play, const struct yaml_node *step, struct buf *why);
bool channel_step_drop(struct play *play, const struct yaml_node *step, struct buf *why);
bool channel_step_open(struct play *play, const struct yaml_node *step, struct buf *why);
bool channel_step_receive(struct play *play, const struct yaml_node *step, struct buf *why);
void channel_steps_done(struct play *play);
