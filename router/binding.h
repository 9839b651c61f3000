/* binding.h - the one adapter slot of this router (contract 2.3).
 *
 * It moves when the settings name another adapter and when an adapter of the configured name
 * comes or is lost. Calls read the state and do no I/O. */
#pragma once

#include "adapter.h"

enum binding_state {
    BINDING_NONE,     /* no adapter is configured; S303. Leaves by binding_configure() */
    BINDING_WAITING,  /* configured, not connected; S301. Leaves when one says hello */
    BINDING_MISMATCH, /* connected and parked, its major differs; S302. Leaves when it is lost
                       */
    BINDING_BOUND, /* connected, its major fits; calls are forwarded. Leaves when it is lost */
    BINDING_STATE_MAX
};

#define BINDING_ABSENCE_MAX 384

struct binding {
    enum binding_state state;
    char *name;              /* configured; NULL: none */
    struct adapter *adapter; /* MISMATCH, BOUND; else NULL */
    /* Why none of that name is connected, as far as it is known; "" else. For people. */
    char absence[BINDING_ABSENCE_MAX];
    /* After each move; may be NULL. Set after binding_init(). */
    void (*changed)(void *ctx, const struct binding *binding);
    void *changed_ctx;
};

void binding_init(struct binding *binding);
void binding_done(struct binding *binding);

/* The configured name (NULL: none), at start and after a reload; ADAPTERS are the connected
 * ones. 0 or -ENOMEM, nothing changed then. */
int binding_configure(struct binding *binding, const char *name,
                      const struct adapter_set *adapters);
/* Any adapter; those of another name change nothing. */
void binding_connected(struct binding *binding, struct adapter *adapter);
void binding_lost(struct binding *binding, const struct adapter *adapter);

/* What keeps adapter NAME away; the last word counts, until one connects. Of no other name than
 * the configured one anything is kept. Whoever calls `sandbox::*` gets to read it. */
void binding_note_absence(struct binding *binding, struct span name, const char *format, ...)
    _printf_(3, 4);

const char *binding_state_text(enum binding_state state);
