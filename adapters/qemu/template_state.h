/* template_state.h - what the files template*.c share; nobody else includes it. */
#pragma once

#include "program.h"
#include "quiet.h"
#include "rehearsal.h"
#include "template.h"
#include "template_cache.h"

struct templates {
    struct backend *backend;
    struct list all; /* struct template, the one used last at the end; a reference each */
    uint32_t count;
    struct program program; /* whose state they are */
};

struct template
{
    struct list node;
    struct backend *backend;
    enum template_state state;
    unsigned references;
    char name[96];
    char *digest; /* of the image */
    struct qemu_shape shape;
    int image_fd;
    struct template_parts
        parts; /* memory and state sealed when ready; a clone's disk is a copy */
    struct template_lookup *lookup;
    bool looked_up;                  /* and not found; KEY is of that */
    char key[HASH_SHA256_HEX_BYTES]; /* "": cannot be kept */
    struct list waits;               /* struct template_wait */
    struct loop_notice begin;        /* deferred: the first step */
    struct boot_wait boot_wait;
    struct vm *vm;
    struct loop_io *agent_io; /* until HELLO is whole */
    struct rehearsal *rehearsal;
    struct quiet *quiet;
    struct loop_timer *timer; /* of the whole work */
    uint64_t began_ms;
    uint64_t ended_ms;
};

bool template_move_allowed(enum template_state from, enum template_state to);
void template_set_state(struct template *template, enum template_state state);
/* Ready or failed: all waits are told. */
void template_tell(struct template *template);

/* template_save.c */
void template_begin(struct template *template); /* template->begin then does the first step */
void template_on_begin(void *ctx);
void template_boot_files_ready(void *ctx, const char *why);
void template_on_timer(void *ctx);
