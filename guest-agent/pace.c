/* pace.c - see pace.h. */
#include "pace.h"

#include <sched.h>

void pace_set(enum pace pace)
{
    static enum pace current = PACE_PROMPT;
    const struct sched_param none = { 0 };

    if (pace == current)
        return;
    current = pace;
    (void)sched_setscheduler(0, pace == PACE_BULK ? SCHED_BATCH : SCHED_OTHER,
                             &none); /* else it is slower */
}
