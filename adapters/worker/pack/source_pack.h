/* source_pack.h - a private copy of a worker's source folder (contract 12.2).
 *
 * Only descriptors and names without slashes are used and no link is followed, so that nothing
 * outside the folder can be reached, whatever is changed in it meanwhile. */
#pragma once

#include <stdint.h>

#define SOURCE_PACK_DEPTH_MAX 128u
#define SOURCE_PACK_ENTRY_BYTES 64u /* what an entry counts for besides its content */
#define SOURCE_PACK_PATH_BYTES 4096

/* Copies what is in SOURCE_FD (a folder) into the empty folder TARGET_FD: folders, regular
 * files and links, as links; modes and times are kept, the owner is us. All else is left out.
 * 0; -EFBIG: over MAX_BYTES; -ELOOP: deeper than SOURCE_PACK_DEPTH_MAX; another -errno.
 * On failure PATH says where, relative to the folder. */
int source_pack(int source_fd, int target_fd, uint64_t max_bytes,
                char ret_path[SOURCE_PACK_PATH_BYTES]);
