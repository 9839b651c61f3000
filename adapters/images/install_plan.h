/* install_plan.h - what an install is told to do: copies of its spec, and the paths it works
 * with. */
#pragma once

#include "image.h"
#include "source.h"

struct image_install_spec {
    const char *installer; /* program; NULL without a source, as ADDITION, ARCHITECTURE */
    const char *images_directory; /* is there */
    const char *digest;
    const char *image; /* its name, for image.json and the log */
    const char *source_text;
    const struct source *source; /* NULL: nothing is installed, what is there is checked */
    const char *addition;        /* NULL: nothing */
    const char *architecture;
    uint32_t timeout_ms;
    uint32_t max_mb;           /* room of the image while it is made, MiB; 0: no limit */
    uint32_t stall_timeout_ms; /* of a pull from another machine */
    unsigned flags;            /* enum image_flags */
};

struct install_plan {
    /* For the installer; all NULL without a source. */
    char *installer, *kind, *source, *architecture;
    char *addition; /* NULL: nothing */
    bool insecure;

    char *image, *source_text, *digest;
    char *images_directory, *directory, *lock_path;
    uint32_t timeout_ms;
    char max_mb[16];           /* "0": no limit */
    uint32_t stall_timeout_ms; /* 0: nothing comes from elsewhere */
    unsigned flags;            /* enum image_flags */
};

/* Copies SPEC. 0 or -ENOMEM; the plan is to be given back either way. */
int install_plan_copy(struct install_plan *plan, const struct image_install_spec *spec);
void install_plan_done(struct install_plan *plan);

/* The installer's command line, NULL-terminated, with borrowed texts. */
#define INSTALL_ARGV_MAX 16
void install_plan_argv(const struct install_plan *plan, const char *result_directory,
                       const char *ret_argv[INSTALL_ARGV_MAX]);
