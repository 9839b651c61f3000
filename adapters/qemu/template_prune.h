/* template_prune.h - the folder of kept templates stays within its size. */
#pragma once

#include <stdint.h>

/* Removes the templates of FOLDER that were not used for longest until all take at most
 * MAX_BYTES of disk, and what a killed process left half written. Blocking: for threads. */
void template_prune(const char *folder, uint64_t max_bytes);
