/* router.h - the state that the fronts share: settings, adapters, calls, channels, counters.
 *
 * Fronts, supervision and the settings' file are main's; here is what a call needs. */
#pragma once

#include "adapter.h"
#include "backlog.h"
#include "binding.h"
#include "channel.h"
#include "metrics.h"
#include "passthrough.h"
#include "settings.h"

struct router {
    struct loop *loop;
    const struct settings *settings; /* the current ones; replaced by router_reload() */
    struct adapter_set adapters;
    struct binding binding;
    struct passthrough passthrough;
    struct channel_set *channels;
    struct backlog backlog;
    struct metrics metrics;
    bool draining; /* no new calls: they get S301 */
};

/* SETTINGS is borrowed until the next reload or the end. 0 or -errno. */
int router_init(struct router *router, struct loop *loop, const struct settings *settings);
void router_reload(struct router *router, const struct settings *settings);
void router_done(struct router *router);
