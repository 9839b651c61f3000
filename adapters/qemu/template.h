/* template.h - machines that have booted, saved, so that others can begin as copies of them.
 *
 * A template holds an image's guest up to the agent's HELLO: nothing of a user has run in it
 * and nothing in it identifies a sandbox. Its memory is sealed: a QEMU that was broken into
 * cannot change what later machines start from. A copy is kept on disk (template_cache.h) and
 * read anew, never used in its place. */
#pragma once

#include <stdint.h>

#include "backend.h"
#include "boot_files.h"
#include "list.h"
#include "qemu_args.h"

struct template;
struct templates;
struct vm_spec;

enum template_state {
    TEMPLATE_PREPARING,  /* waits for the boot files */
    TEMPLATE_LOOKING,    /* for one on disk */
    TEMPLATE_BOOTING,    /* its machine starts */
    TEMPLATE_REHEARSING, /* it does what its clones will be asked for */
    TEMPLATE_RESTING,    /* until its guest's kernel has nothing left to do */
    TEMPLATE_SAVING,     /* stopped, its state is on its way to us */
    TEMPLATE_ENDING,     /* saved; its QEMU ends */
    TEMPLATE_READY,      /* may be cloned */
    TEMPLATE_FAILED,     /* machines of this shape boot cold, until it is tried again */
    TEMPLATE_STATE_MAX
};

/* One who waits for the end of the work; lives in its owner. */
struct template_wait {
    struct list node;
    void (*done)(void *ctx); /* once: ready or failed */
    void *ctx;
};

/* The file that image-install makes of an image; opened for reading, or -errno. */
#define IMAGE_FILE "root.erofs"
int image_open(const struct image *image);

int templates_new(struct backend *backend, struct templates **ret_templates);
/* Before the backend's vms end; whoever waits is not told. */
void templates_free(struct templates *templates);

/* The template of IMAGE and SHAPE; begun when there is none, or when it failed some time ago.
 * NULL: out of memory, or all are in use. The reference is the caller's. */
struct template *template_get(struct templates *templates, const struct image *image,
                              const struct qemu_shape *shape);
struct template *template_ref(struct template *template);
void template_unref(struct template *template);

enum template_state template_state(const struct template *template);
/* Of a template that is neither ready nor failed. DONE is never called from inside. */
void template_await(struct template *template, struct template_wait *wait);
void template_wait_init(struct template_wait *wait, void (*done)(void *ctx), void *ctx);
void template_wait_cancel(struct template_wait *wait);

/* Of a ready one: fills in what a clone starts from. The descriptors of disk and state are new
 * and the caller's, the others borrowed. 0 or -errno. */
int template_clone(const struct template *template, struct vm_spec *spec);
/* The agent's HELLO, whole. */
const void *template_hello(const struct template *template, size_t *ret_size);
