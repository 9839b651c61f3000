/* qemu_args.h - what a machine is made of, as QEMU's command line. Pure.
 *
 * Everything a machine needs reaches it as a descriptor with a fixed number; QEMU opens nothing
 * by a name of ours. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "accel.h"
#include "tables.h"

/* Descriptors of the child; 0 is empty, 1 and 2 are the console's pipe. */
enum qemu_fd {
    QEMU_FD_QMP = 3,   /* socket */
    QEMU_FD_AGENT,     /* socket: the virtio port `agent` */
    QEMU_FD_IMAGE,     /* vda, for reading */
    QEMU_FD_DISK,      /* vdb, for reading and writing */
    QEMU_FD_KERNEL,    /* not for clones */
    QEMU_FD_INITRD,    /* not for clones */
    QEMU_FD_MEMORY,    /* templates and clones: the guest's memory */
    QEMU_FD_STATE,     /* clones: the template's state */
    QEMU_FD_NETWORK,   /* datagram socket of frames; not for templates */
    QEMU_FD_WORKSPACE, /* vdc, for reading; of workers */
    QEMU_FD_LOCK,      /* held, not used; of workers */
    QEMU_FD_MAILBOX,   /* the disk `mailbox`: memory shared with us, for bulk */
    QEMU_FD_LANDLOCK,  /* of confine.h; closed by the exec */
    QEMU_FD_MAX
};

/* The words after -sandbox on: what QEMU itself gives up. */
#define QEMU_SECCOMP "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

enum qemu_mode {
    QEMU_COLD,     /* boots, its memory is its own */
    QEMU_TEMPLATE, /* boots, its memory is shared with us, to be saved */
    QEMU_CLONE, /* loads a template's state; its memory is a private view of the template's */
    QEMU_MODE_MAX
};

/* What a template and its clones must have in common: QEMU checks only some of it. */
struct qemu_shape {
    uint32_t cpus;
    uint32_t memory_mb;
    uint32_t disk_mb;
    bool network;
};

struct qemu_args_spec {
    const char *program;
    enum qemu_mode mode;
    struct qemu_shape shape;
    struct accel accel;
    uint32_t translation_mb;
    bool lasting;             /* a worker: vdb outlives the machine, and there is vdc */
    const char *command_line; /* further words; NULL: none */
};

/* The address of every machine's interface until CONFIGURE. */
#define QEMU_MAC "52:54:00:12:34:56"

/* Appends the arguments, argv[0] included. 0 or -ENOMEM. */
int qemu_args_build(const struct qemu_args_spec *spec, struct text_list *to);
