/* router_call.c - see router_call.h. */
#include "router_call.h"

#include <errno.h>
#include <string.h>

#include "serve.h"
#include "table.h"

struct router_calls {
    struct adapter *adapter;
    struct table *by_id;
};

struct router_call {
    struct router_calls *calls;
    uint64_t id;
    router_call_fn done;
    void *ctx;
};

int router_calls_new(struct adapter *adapter, struct router_calls **ret_calls)
{
    _cleanup_(router_calls_freep)
    struct router_calls *calls = calloc(1, sizeof(*calls));
    int ret;

    if (!calls)
        return -ENOMEM;
    calls->adapter = adapter;
    ret = table_new(&calls->by_id);
    if (ret < 0)
        return ret;
    *ret_calls = take_ptr(calls);
    return 0;
}

void router_calls_free(struct router_calls *calls)
{
    size_t cursor = 0;
    struct router_call *call;

    if (!calls)
        return;
    while (calls->by_id && (call = table_next(calls->by_id, &cursor)))
        free(call);
    table_free(calls->by_id);
    free(calls);
}

int router_call(struct adapter *adapter, const char *operation, const char *json,
                router_call_fn done, void *ctx, struct router_call **ret_call)
{
    struct router_calls *calls = adapter_router_calls(adapter);
    struct serve *serve = adapter_serve(adapter);
    _cleanup_free_ struct router_call *call = calloc(1, sizeof(*call));
    int ret;

    if (!call)
        return -ENOMEM;
    *call = (struct router_call){
        .calls = calls, .id = serve_next_id(serve), .done = done, .ctx = ctx
    };
    ret = table_put(calls->by_id, call->id, call);
    if (ret < 0)
        return ret;
    ret = serve_send(serve, serve_link(serve),
                     &(struct envelope){ .kind = ENVELOPE_CALL,
                                         .id = call->id,
                                         .operation = span_of_text(operation),
                                         .deadline_ms = ENVELOPE_NO_DEADLINE,
                                         .body = span_of_text(json) });
    if (ret < 0) {
        (void)table_remove(calls->by_id, call->id); /* the call itself; freed on return */
        return ret;
    }
    *ret_call = take_ptr(call);
    return 0;
}

void router_call_forget(struct router_call *call)
{
    if (!call)
        return;
    (void)table_remove(call->calls->by_id, call->id); /* the call itself */
    free(call);
}

static void router_call_end(struct router_call *own_call, const struct span *reply,
                            const struct span *error)
{
    struct router_call call = *own_call;

    router_call_forget(own_call);
    call.done(call.ctx, reply, error);
}

void router_calls_answer(struct router_calls *calls, const struct envelope *answer)
{
    struct router_call *call = table_get(calls->by_id, answer->id);
    bool is_reply = answer->kind == ENVELOPE_REPLY;

    if (call)
        router_call_end(call, is_reply ? &answer->body : NULL, is_reply ? NULL : &answer->body);
}

void router_calls_link_lost(struct router_calls *calls)
{
    struct router_call *call;

    /* A callback may forget others, so each one starts anew. */
    for (size_t cursor = 0; (call = table_next(calls->by_id, &cursor)); cursor = 0)
        router_call_end(call, NULL, NULL);
}
