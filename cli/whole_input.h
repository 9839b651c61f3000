/* whole_input.h - a descriptor to its end: what is only of use as a whole. */
#pragma once

#include "client.h"

struct whole_input_spec {
    int fd; /* borrowed */
    size_t max_bytes;
    uint64_t wait_ms; /* for its end */
};

/* Appends it to TO. CLIENT_ANSWERED: *RET_ERROR is 0, -EFBIG beyond the limit, or -errno of
 * what went wrong. Else it is not at its end: CLIENT_TIMED_OUT, CLIENT_INTERRUPTED,
 * CLIENT_LOST. */
enum client_outcome whole_input_read(struct client *client, const struct whole_input_spec *spec,
                                     struct buf *to, int *ret_error);
