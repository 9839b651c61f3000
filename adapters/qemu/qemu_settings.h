/* qemu_settings.h - the section `sandbox.qemu` of the settings. */
#pragma once

#include "accel.h"
#include "error.h"
#include "settings.h"

/* Who runs the interpreters of an image before anybody asks for them. */
enum qemu_warm_up {
    WARM_UP_OFF,
    WARM_UP_TEMPLATE, /* their files are in the memory that all clones share */
    WARM_UP_POOL,     /* so do the pool's machines: their code is translated as well */
};

struct qemu_settings {
    char *program;                     /* QEMU */
    char *acceleration;                /* auto, kvm, tcg */
    char *user;                        /* that QEMU runs as, when we are root */
    char *agent;                       /* NULL: the one beside this program */
    char *kernel;                      /* NULL: Debian's, fetched */
    char *initrd;                      /* NULL: made of the agent and the kernel's modules */
    char *command_line;                /* further words for the kernel; NULL: none */
    bool allow_private_networks;       /* a guest may reach them */
    struct setting_numbers host_ports; /* of this machine's loopback, that a guest may reach */
    bool templates;                    /* start machines as copies of one that has booted */
    char *warm_up;                     /* auto, off, template, pool */
    uint32_t max_templates;
    uint32_t template_cache_mb; /* disk for templates; 0: none is kept */
    uint32_t pool_size;         /* machines kept ready for each template */
    uint32_t max_pool_size;
    uint32_t pool_memory_mb;   /* of those machines; 0: no limit */
    uint32_t pool_cpu_percent; /* of one processor, for making them; 0: no limit */
    uint32_t translation_mb;   /* TCG: its buffer of translated code */
};

int qemu_settings_read(const struct settings *settings, struct qemu_settings *ret_settings,
                       struct sandbox_error *err);
/* What `warm_up` means with ACCEL. */
enum qemu_warm_up qemu_settings_warm_up(const struct qemu_settings *settings,
                                        const struct accel *accel);
void qemu_settings_done(struct qemu_settings *settings);
