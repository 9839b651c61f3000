/* log_relay.h - a line that log.c made in another process, told again as a line of this one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* LINE, without its newline, in either format, becomes a line in the format of this process:
 * its time, level, event and fields, with PROGRAM for `prog`, so that whoever wrote it speaks
 * for nobody else. A level that is off here says nothing. False: LINE is none, and nothing was
 * done. */
bool log_relay(const char *program, const char *line, size_t size);
