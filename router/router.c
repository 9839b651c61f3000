/* router.c - see router.h. */
#include "router.h"

#include "log.h"

int router_init(struct router *router, struct loop *loop, const struct settings *settings)
{
    int result;

    *router = (struct router){ .loop = loop, .settings = settings };
    adapter_set_init(&router->adapters);
    binding_init(&router->binding);
    passthrough_init(&router->passthrough, router);
    result = channel_set_new(loop, &router->channels);
    if (result == 0)
        result = backlog_init(&router->backlog, loop);
    if (result == 0)
        result = binding_configure(&router->binding, settings->router.adapter,
                                   &router->adapters);
    if (result < 0)
        router_done(router);
    return result;
}

void router_reload(struct router *router, const struct settings *settings)
{
    router->settings = settings;
    if (binding_configure(&router->binding, settings->router.adapter, &router->adapters) < 0)
        log_event(LOG_ERROR, "binding_unchanged", log_text("why", "out of memory"));
}

void router_done(struct router *router)
{
    passthrough_done(&router->passthrough);
    binding_done(&router->binding);
    backlog_done(&router->backlog);
    channel_set_free(router->channels);
    *router = (struct router){ 0 };
}
