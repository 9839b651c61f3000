/* template.c - see template.h. template_save.c does the work on the machine. */
#include "template.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend_state.h"
#include "log.h"
#include "scratch.h"
#include "template_state.h"
#include "vm.h"

#define RETRY_MS 60000u /* a failed one is tried again after that */

static const char *const state_names[] = {
    [TEMPLATE_PREPARING] = "preparing", [TEMPLATE_LOOKING] = "looking",
    [TEMPLATE_BOOTING] = "booting",     [TEMPLATE_REHEARSING] = "rehearsing",
    [TEMPLATE_RESTING] = "resting",     [TEMPLATE_SAVING] = "saving",
    [TEMPLATE_ENDING] = "ending",       [TEMPLATE_READY] = "ready",
    [TEMPLATE_FAILED] = "failed",
};
static_assert(ARRAY_SIZE(state_names) == TEMPLATE_STATE_MAX, "a name for each state");

bool template_move_allowed(enum template_state from, enum template_state to)
{
    static const unsigned moves[] = {
        [TEMPLATE_PREPARING] = 1u << TEMPLATE_LOOKING | 1u << TEMPLATE_BOOTING |
                               1u << TEMPLATE_FAILED,
        [TEMPLATE_LOOKING] = 1u << TEMPLATE_PREPARING | 1u << TEMPLATE_READY |
                             1u << TEMPLATE_FAILED,
        [TEMPLATE_BOOTING] = 1u << TEMPLATE_PREPARING | 1u << TEMPLATE_REHEARSING |
                             1u << TEMPLATE_RESTING | 1u << TEMPLATE_FAILED,
        [TEMPLATE_REHEARSING] = 1u << TEMPLATE_RESTING | 1u << TEMPLATE_FAILED,
        [TEMPLATE_RESTING] = 1u << TEMPLATE_SAVING | 1u << TEMPLATE_FAILED,
        [TEMPLATE_SAVING] = 1u << TEMPLATE_ENDING | 1u << TEMPLATE_FAILED,
        [TEMPLATE_ENDING] = 1u << TEMPLATE_READY | 1u << TEMPLATE_FAILED,
        [TEMPLATE_READY] = 0,
        [TEMPLATE_FAILED] = 0,
    };
    static_assert(ARRAY_SIZE(moves) == TEMPLATE_STATE_MAX, "moves of each state");

    return moves[from] & 1u << to;
}

void template_set_state(struct template *template, enum template_state state)
{
    assert(template_move_allowed(template->state, state));
    log_event(state >= TEMPLATE_READY ? LOG_INFO : LOG_DEBUG, "template_state",
              log_text("template", template->name),
              log_text("from", state_names[template->state]),
              log_text("to", state_names[state]),
              log_uint("ms", loop_now_ms(template->backend->loop) - template->began_ms));
    template->state = state;
}

enum template_state template_state(const struct template *template)
{
    return template->state;
}

const void *template_hello(const struct template *template, size_t *ret_size)
{
    *ret_size = template->parts.hello.size;
    return template->parts.hello.data;
}

/* Life. */

static void template_release(struct template *template)
{
    assert(list_empty(&template->waits));
    list_remove(&template->node);
    loop_notice_cancel(template->backend->loop, &template->begin);
    boot_wait_cancel(&template->boot_wait);
    loop_io_free(template->agent_io);
    rehearsal_free(template->rehearsal);
    quiet_free(template->quiet);
    template_lookup_cancel(template->lookup);
    vm_free(template->vm);
    loop_timer_free(template->timer);
    closep(&template->image_fd);
    template_parts_done(&template->parts);
    free(template->digest);
    free(template);
}

struct template *template_ref(struct template *template)
{
    template->references++;
    return template;
}

void template_unref(struct template *template)
{
    if (template && --template->references == 0)
        template_release(template);
}

int image_open(const struct image *image)
{
    char path[4096];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/" IMAGE_FILE, image->directory);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int template_new(struct templates *templates, const struct image *image,
                        const struct qemu_shape *shape, struct template **ret_template)
{
    struct template *template = calloc(1, sizeof(*template));

    if (!template)
        return -ENOMEM;
    *template = (struct template){
        .backend = templates->backend,
        .state = TEMPLATE_PREPARING,
        .references = 1,
        .shape = *shape,
        .digest = strdup(image->content),
        .image_fd = image_open(image),
        .parts = TEMPLATE_NO_PARTS,
        .began_ms = loop_now_ms(templates->backend->loop),
    };
    list_init(&template->node);
    list_init(&template->waits);
    loop_notice_init(&template->begin, template_on_begin, template);
    boot_wait_init(&template->boot_wait, template_boot_files_ready, template);
    (void)snprintf(template->name, sizeof(template->name), "template-%s-%ux%u%s", image->name,
                   shape->cpus, shape->memory_mb, shape->network ? "-net" : "");
    if (!template->digest || template->image_fd < 0 ||
        loop_timer_new(templates->backend->loop, template_on_timer, template,
                       &template->timer) < 0) {
        template_unref(template);
        return -ENOMEM;
    }
    *ret_template = template;
    return 0;
}

/* Look-up. */

static bool template_fits(const struct template *template, const struct image *image,
                          const struct qemu_shape *shape)
{
    return template->shape.cpus == shape->cpus && template->shape.network == shape->network &&
           template->shape.memory_mb == shape->memory_mb &&
           template->shape.disk_mb == shape->disk_mb &&
           strcmp(template->digest, image->content) == 0;
}

/* It starts nothing any more; who holds it may go on. */
static void template_drop(struct templates *templates, struct template *template)
{
    list_remove(&template->node);
    templates->count--;
    template_unref(template);
}

/* QEMU was upgraded: what the old one saved, and runs in the pool, is not for the new one. */
static void templates_check_program(struct templates *templates)
{
    const char *name = templates->backend->settings.program;

    if (program_unchanged(&templates->program))
        return;
    LIST_FOREACH(node, &templates->all)
    {
        struct template *template = LIST_ENTRY(node, struct template, node);

        log_event(LOG_INFO, "template_stale", log_text("template", template->name),
                  log_text("program", name));
        pool_drop(templates->backend->pool, template);
        template_drop(templates, template);
    }
    (void)program_find(name, &templates->program); /* without one nothing starts anyway */
}

/* Makes room by the one that was used longest ago; the list is in that order. */
static bool templates_make_room(struct templates *templates)
{
    if (templates->count < templates->backend->settings.max_templates)
        return true;
    LIST_FOREACH(node, &templates->all)
    {
        struct template *template = LIST_ENTRY(node, struct template, node);

        if (template->state >= TEMPLATE_READY) {
            pool_drop(templates->backend->pool, template);
            template_drop(templates, template);
            return true;
        }
    }
    return false;
}

static struct template *templates_find(struct templates *templates, const struct image *image,
                                       const struct qemu_shape *shape)
{
    LIST_FOREACH(node, &templates->all)
    {
        struct template *template = LIST_ENTRY(node, struct template, node);

        if (!template_fits(template, image, shape))
            continue;
        if (template->state == TEMPLATE_FAILED &&
            loop_now_ms(templates->backend->loop) - template->ended_ms >= RETRY_MS) {
            template_drop(templates, template);
            return NULL;
        }
        list_remove(node);
        list_append(&templates->all, node);
        return template;
    }
    return NULL;
}

struct template *template_get(struct templates *templates, const struct image *image,
                              const struct qemu_shape *shape)
{
    struct template *template;

    templates_check_program(templates);
    template = templates_find(templates, image, shape);
    if (template)
        return template_ref(template);
    if (!templates_make_room(templates) || template_new(templates, image, shape, &template) < 0)
        return NULL;
    list_append(&templates->all, &template->node);
    templates->count++;
    template_begin(template);
    return template_ref(template);
}

int templates_new(struct backend *backend, struct templates **ret_templates)
{
    struct templates *templates = calloc(1, sizeof(*templates));

    if (!templates)
        return -ENOMEM;
    templates->backend = backend;
    list_init(&templates->all);
    *ret_templates = templates;
    return 0;
}

void templates_free(struct templates *templates)
{
    if (!templates)
        return;
    LIST_FOREACH(node, &templates->all)
    {
        struct template *template = LIST_ENTRY(node, struct template, node);

        list_init(&template->waits); /* they are gone by now */
        template_drop(templates, template);
    }
    free(templates);
}

/* Waits. */

void template_wait_init(struct template_wait *wait, void (*done)(void *ctx), void *ctx)
{
    list_init(&wait->node);
    wait->done = done;
    wait->ctx = ctx;
}

void template_wait_cancel(struct template_wait *wait)
{
    list_remove(&wait->node);
}

void template_await(struct template *template, struct template_wait *wait)
{
    assert(template->state < TEMPLATE_READY);
    list_append(&template->waits, &wait->node);
}

void template_tell(struct template *template)
{
    struct list telling, *node;

    template->ended_ms = loop_now_ms(template->backend->loop);
    (void)template_ref(template);
    list_init(&telling);
    list_move_all(&telling, &template->waits);
    while ((node = list_pop(&telling))) {
        struct template_wait *wait = LIST_ENTRY(node, struct template_wait, node);

        wait->done(wait->ctx);
    }
    template_unref(template);
}

/* Clones. */

int template_clone(const struct template *template, struct vm_spec *spec)
{
    char path[32];
    int result;

    assert(template->state == TEMPLATE_READY);
    spec->mode = QEMU_CLONE;
    spec->shape = template->shape;
    spec->image_fd = template->image_fd;
    spec->memory_fd = template->parts.memory_fd;
    /* Opened anew: an offset is shared by all that was inherited. */
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", template->parts.state_fd);
    spec->state_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (spec->state_fd < 0)
        return -errno;
    result = scratch_copy(template->parts.disk_fd, template->backend->scratch_directory,
                          &spec->disk_fd);
    if (result < 0)
        closep(&spec->state_fd);
    return result;
}
