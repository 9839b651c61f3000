/* subject_steps.c - see subject_steps.h. */

#include "subject_steps.h"

#include <string.h>

/* The file is there when this returns; that it was read shows in what calls do then. */
bool subject_step_configure(struct play *play, const struct yaml_node *step, struct buf *why)
{
    _cleanup_(buf_done)
    struct buf settings = { 0 };
    int ret = settings_text(play->settings, yaml_get(step, "configure"), &settings);
    if (ret == 0)
        ret = subject_configure(play->subject, buf_text(&settings));
    if (ret < 0)
        (void)buf_printf(why, " the file could not be written: %s", strerror(-ret));
    return ret == 0;
}

bool subject_step_restart(struct play *play, const struct yaml_node *step, struct buf *why)
{
    int ret = subject_restart_adapter(play->subject);
    if (ret < 0)
        (void)buf_printf(why, " killed, and no adapter was bound again: %s", strerror(-ret));
    return ret == 0;
}
