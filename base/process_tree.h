/* process_tree.h - ending a program with everything it started. */
#pragma once

#include <sys/types.h>

/* Kills ROOT, a child of ours that is not reaped yet, and all its descendants, also those in
 * other sessions. They are stopped first, so that none can start another meanwhile. */
void process_tree_kill(pid_t root);
