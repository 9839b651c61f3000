/* scene.h - a back end over a stand-in for QEMU, in a folder of its own. */
#pragma once

#include "backend_state.h"

/* One machine and what it told. */
struct seen {
    struct machine *machine;
    unsigned agents, settles, gones;
    bool hangs; /* its guest gets neither ready nor settled by itself */
    int fd;
    char reason[256];
    char console[256];
};

struct scene {
    struct loop *loop;
    struct backend *backend;
    struct settings *settings;
    struct image image;
    char folder[64];
    bool guests_hang; /* those that are started from now on */
};

/* The stand-in does what BEHAVIOUR says (fake_qemu.c); MORE are lines of sandbox.qemu. */
void scene_begin(struct scene *scene, const char *behaviour, const char *more);
void scene_end(struct scene *scene);
/* The adapter ends and starts again; what is on disk stays. */
void scene_restart(struct scene *scene);
void scene_start(struct scene *scene, struct seen *seen);
void scene_stop(struct scene *scene, struct seen *seen);
void scene_write_file(const struct scene *scene, const char *name, const char *text);
/* The first thing that comes out of the agent's socket is HELLO, whole. */
void scene_check_hello(struct seen *seen);
size_t scene_vm_count(const struct scene *scene);
