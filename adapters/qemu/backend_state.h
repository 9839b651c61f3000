/* backend_state.h - what the files of this folder share of the back end; nobody else includes
 * it. ops.c makes and frees it. */
#pragma once

#include "accel.h"
#include "boot_files.h"
#include "confine.h"
#include "loop.h"
#include "machine.h"
#include "pool.h"
#include "qemu_settings.h"
#include "start_queue.h"
#include "template.h"

struct backend {
    struct loop *loop;
    struct qemu_settings settings; /* as of the start, or the last reload that could be read */
    struct accel accel;            /* as of the start, as is what follows */
    struct confine confine;
    char *installer;
    char *scratch_directory; /* of files without names */
    struct list vms;         /* struct vm, all of them */
    struct list networks;    /* struct network, all of them */
    struct zygote *zygote;
    struct boot_files *boot_files;
    struct template_cache *template_cache;
    struct templates *templates;
    struct pool *pool;
    struct start_queue starts;
    struct workers *workers; /* NULL until the first worker:: operation */
};
