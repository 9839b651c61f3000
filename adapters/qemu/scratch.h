/* scratch.h - the writable disks of machines: sparse copies of a prepared file.
 *
 * A copy has no name, so that nothing of it outlives its last descriptor, however we end. */
#pragma once

/* An empty one. The descriptor or -errno. */
int scratch_new(const char *folder);
/* A copy of SOURCE_FD, holes kept, in FOLDER's file system. *ret_fd is open for reading and
 * writing. 0 or -errno. */
int scratch_copy(int source_fd, const char *folder, int *ret_fd);
