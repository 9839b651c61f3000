/* install_plan.c - see install_plan.h. */
#include "install_plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "image_lock.h"

/* What only the installer needs. */
static int copy_source(struct install_plan *plan, const struct image_install_spec *spec)
{
    _cleanup_(buf_done)
    struct buf source = { 0 };
    int ret = source_format(spec->source, &source);

    if (ret < 0 || !buf_text(&source))
        return -ENOMEM;
    plan->source = (char *)buf_take(&source, NULL);
    plan->installer = strdup(spec->installer);
    plan->kind = strdup(source_kind_name(spec->source->kind));
    plan->addition = spec->addition ? strdup(spec->addition) : NULL;
    plan->architecture = strdup(spec->architecture);
    plan->insecure = spec->source->insecure;
    if (source_kind_is_remote(spec->source->kind))
        plan->stall_timeout_ms = spec->stall_timeout_ms;
    return plan->source && plan->installer && plan->kind &&
                   (!spec->addition || plan->addition) && plan->architecture
               ? 0
               : -ENOMEM;
}

int install_plan_copy(struct install_plan *plan, const struct image_install_spec *spec)
{
    int ret = spec->source ? copy_source(plan, spec) : 0;

    plan->image = strdup(spec->image);
    plan->source_text = strdup(spec->source_text);
    plan->images_directory = strdup(spec->images_directory);
    plan->digest = strdup(spec->digest);
    plan->timeout_ms = spec->timeout_ms;
    (void)snprintf(plan->max_mb, sizeof(plan->max_mb), "%u", spec->max_mb);
    plan->flags = spec->flags;
    if (asprintf(&plan->directory, "%s/%s", spec->images_directory, spec->digest) < 0)
        plan->directory = NULL;
    if (asprintf(&plan->lock_path, "%s/%s" IMAGE_LOCK_MARK, spec->images_directory,
                 spec->digest) < 0)
        plan->lock_path = NULL;
    return ret == 0 && plan->image && plan->source_text && plan->images_directory &&
                   plan->digest && plan->directory && plan->lock_path
               ? 0
               : -ENOMEM;
}

void install_plan_done(struct install_plan *plan)
{
    free(plan->installer);
    free(plan->kind);
    free(plan->source);
    free(plan->architecture);
    free(plan->addition);
    free(plan->image);
    free(plan->source_text);
    free(plan->digest);
    free(plan->images_directory);
    free(plan->directory);
    free(plan->lock_path);
    *plan = (struct install_plan){ 0 };
}

void install_plan_argv(const struct install_plan *plan, const char *result_directory,
                       const char *ret_argv[INSTALL_ARGV_MAX])
{
    const char *const always[] = { plan->installer,    "--source", plan->source,     "--kind",
                                   plan->kind,         "--dir",    result_directory, "--arch",
                                   plan->architecture, "--max-mb", plan->max_mb };
    size_t count = ARRAY_SIZE(always);

    memcpy(ret_argv, always, sizeof(always));
    if (plan->insecure)
        ret_argv[count++] = "--insecure";
    if (plan->addition) {
        ret_argv[count++] = "--with";
        ret_argv[count++] = plan->addition;
    }
    ret_argv[count] = NULL;
}
