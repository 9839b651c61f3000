/* message.h - what adapter and zygote say to each other: one datagram each way for a machine,
 * both of the same build. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "confine.h"

#define ZYGOTE_NAME "qemu-zygote" /* of the process; its machines have QEMU's */
#define ZYGOTE_FD 3               /* the zygote's end */
#define ZYGOTE_FDS_MAX 32
#define ZYGOTE_REQUEST_MAX_BYTES 65536 /* texts included: a command line has some 3 KB */

/* The machine's descriptors come along, in the order of the targets; its arguments follow, each
 * with its NUL. */
struct zygote_request {
    struct confine confine; /* its pointers are void */
    int rules_fd;
    bool small_pages;
    uint32_t fd_count;
    int targets[ZYGOTE_FDS_MAX];
    uint32_t argument_count;
};

/* The first one, without a request, is the greeting: all zeros. */
struct zygote_reply {
    pid_t pid; /* 0: nothing was cloned */
    int error; /* -errno; the machine ends by itself then */
};
