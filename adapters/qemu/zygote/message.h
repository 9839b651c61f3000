/* message.h - what adapter and zygote say to each other: one datagram each way for a machine,
 * both of the same build. Several may be asked for at once; they answer in any order.
 *
 * A machine that has answered waits for its permit, a byte on a socket of its own, and ends at
 * that socket's end: whoever asked may have started another one with the same disk meanwhile.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "confine.h"

#define ZYGOTE_NAME "qemu-zygote" /* of the process; its machines have QEMU's */
#define ZYGOTE_FD 3               /* the zygote's end */
#define ZYGOTE_FDS_MAX 32
#define ZYGOTE_REQUEST_MAX_BYTES 65536 /* texts included: a command line has some 3 KB */

/* The machine's descriptors come along, in the order of the targets, and then the socket of its
 * permit; its arguments follow, each with its NUL. */
struct zygote_request {
    uint64_t id;            /* from 1 on, never used twice */
    struct confine confine; /* its pointers are void */
    int rules_fd;
    bool small_pages;
    int answer_fd; /* a target: timers wait for what is sent there (standstill.h); -1: they do
                      not */
    uint32_t fd_count;
    int targets[ZYGOTE_FDS_MAX];
    uint32_t argument_count;
};

/* The first one, without a request, is the greeting: all zeros. */
struct zygote_reply {
    uint64_t id; /* of its request */
    pid_t pid;   /* 0: nothing was cloned */
    int error;   /* -errno; the machine ends by itself then */
};
