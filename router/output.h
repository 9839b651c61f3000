/* output.h - what a managed adapter writes to its stdout and stderr, line by line into our log.
 *
 * Bounded: a long line is cut, too many in a second are counted instead. An output outlives its
 * process as long as somebody holds its other end, so that no child of it dies of SIGPIPE. */
#pragma once

#include "loop.h"

struct output;

/* NAME is copied. *ret_fd is the writing end, the caller's. LIST gets the output, which leaves
 * it at its end of file. 0 or -errno. */
int output_open(struct loop *loop, const char *name, struct list *list, int *ret_fd);
void output_close_all(struct list *list);
