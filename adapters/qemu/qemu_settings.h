/* qemu_settings.h - the section `sandbox.qemu` of the settings. */
#pragma once

#include "error.h"
#include "settings.h"

struct qemu_settings {
    char *program;      /* QEMU */
    char *acceleration; /* auto, kvm, tcg */
    char *user;         /* that QEMU runs as, when we are root */
    char *agent;        /* NULL: the one beside this program */
    char *kernel;       /* NULL: Debian's, fetched */
    char *initrd;       /* NULL: made of the agent and the kernel's modules */
    char *command_line; /* further words for the kernel; NULL: none */
    bool host_loopback; /* the gateway of a guest leads to this machine's loopback */
    bool templates;     /* start machines as copies of one that has booted */
    uint32_t max_templates;
    uint32_t pool_size; /* machines kept ready for each template */
    uint32_t max_pool_size;
    uint32_t translation_mb; /* TCG: its buffer of translated code */
};

int qemu_settings_read(const struct settings *settings, struct qemu_settings *ret_settings,
                       struct sandbox_error *err);
void qemu_settings_done(struct qemu_settings *settings);
