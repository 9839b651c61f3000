/* binding.c - see binding.h. It moves only in binding_set_state(). */
#include "binding.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

static const char *const state_texts[] = {
    [BINDING_NONE] = "none",
    [BINDING_WAITING] = "waiting",
    [BINDING_MISMATCH] = "mismatch",
    [BINDING_BOUND] = "bound",
};
static_assert(ARRAY_SIZE(state_texts) == BINDING_STATE_MAX, "a text for each state");

/* From (row) to (column). A swap may lead from one connected adapter to another. */
static const bool moves[BINDING_STATE_MAX][BINDING_STATE_MAX] = {
    [BINDING_NONE] = { [BINDING_WAITING] = true,
                       [BINDING_MISMATCH] = true,
                       [BINDING_BOUND] = true },
    [BINDING_WAITING] = { [BINDING_NONE] = true,
                          [BINDING_WAITING] = true,
                          [BINDING_MISMATCH] = true,
                          [BINDING_BOUND] = true },
    [BINDING_MISMATCH] = { [BINDING_NONE] = true,
                           [BINDING_WAITING] = true,
                           [BINDING_MISMATCH] = true,
                           [BINDING_BOUND] = true },
    [BINDING_BOUND] = { [BINDING_NONE] = true,
                        [BINDING_WAITING] = true,
                        [BINDING_MISMATCH] = true,
                        [BINDING_BOUND] = true },
};

const char *binding_state_text(enum binding_state state)
{
    return state_texts[state];
}

static enum binding_state state_with(const struct adapter *adapter)
{
    if (!adapter)
        return BINDING_WAITING;
    return adapter->verdict == VERDICT_FITS ? BINDING_BOUND : BINDING_MISMATCH;
}

static void binding_set_state(struct binding *binding, enum binding_state state,
                              struct adapter *adapter)
{
    assert(moves[binding->state][state]);
    assert((adapter != NULL) == (state == BINDING_MISMATCH || state == BINDING_BOUND));
    log_event(LOG_INFO, "binding_state", log_text("from", state_texts[binding->state]),
              log_text("to", state_texts[state]), log_text("adapter", binding->name),
              log_text("version", adapter ? adapter->version : NULL),
              log_uint("connection", adapter ? adapter->generation : 0));
    binding->state = state;
    binding->adapter = adapter;
    if (binding->changed)
        binding->changed(binding->changed_ctx, binding);
}

void binding_init(struct binding *binding)
{
    *binding = (struct binding){ .state = BINDING_NONE };
}

void binding_done(struct binding *binding)
{
    free(binding->name);
    binding_init(binding);
}

int binding_configure(struct binding *binding, const char *name,
                      const struct adapter_set *adapters)
{
    struct adapter *adapter;
    char *copy;

    if (name && binding->name && strcmp(name, binding->name) == 0)
        return 0;
    if (!name && !binding->name)
        return 0;
    copy = name ? strdup(name) : NULL;
    if (name && !copy)
        return -ENOMEM;
    free(binding->name);
    binding->name = copy;
    binding->absence[0] = 0;
    adapter = name ? adapter_find(adapters, span_of_text(name)) : NULL;
    binding_set_state(binding, name ? state_with(adapter) : BINDING_NONE, adapter);
    return 0;
}

void binding_connected(struct binding *binding, struct adapter *adapter)
{
    if (!binding->name || strcmp(binding->name, adapter->name) != 0)
        return;
    binding->absence[0] = 0;
    binding_set_state(binding, state_with(adapter), adapter);
}

void binding_lost(struct binding *binding, const struct adapter *adapter)
{
    if (binding->adapter == adapter)
        binding_set_state(binding, BINDING_WAITING, NULL);
}

void binding_note_absence(struct binding *binding, struct span name, const char *format, ...)
{
    va_list arguments;

    if (!binding->name || !span_equals(name, binding->name))
        return;
    va_start(arguments, format);
    (void)vsnprintf(binding->absence, sizeof(binding->absence), format, arguments);
    va_end(arguments);
}
