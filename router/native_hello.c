/* native_hello.c - the greeting of a native connection, and its time as an adapter.
 *
 * Two adapters of one name cannot both have it: the newcomer waits as the rival of the one that
 * holds the place until that one shows life or is lost; one that retires hands it over. */
#include <assert.h>
#include <stdio.h>

#include "log.h"
#include "native_peer_state.h"
#include "router_limits.h"

#define REFUSED_LINGER_MS 1000u

/* Greeting. */

static void peer_refuse(struct native_peer *peer, const char *code, const char *message)
{
    struct envelope refused = { .kind = ENVELOPE_REFUSED,
                                .code = span_of_text(code),
                                .message = span_of_text(message) };

    native_peer_send(peer, &refused);
}

static void peer_welcome(struct native_peer *peer)
{
    const struct router_settings *settings = &native_peer_router(peer)->settings->router;
    struct envelope welcome = {
        .kind = ENVELOPE_WELCOME,
        .version = span_of_text(SANDBOX_VERSION),
        .has_contract = true,
        .contract = { .major = CONTRACT_MAJOR, .minor = CONTRACT_MINOR },
        .docs_base = span_of_text(settings->docs_base),
        .max_message_bytes = settings->max_message_bytes,
        .credit = ENVELOPE_WINDOW_BYTES,
    };

    native_peer_send(peer, &welcome);
}

/* The kernel tells of the end of a caller on this machine, and a stopped one harms nobody. */
static void peer_greeted(struct native_peer *peer, enum peer_role role)
{
    link_greeted(peer->link, role == PEER_ROLE_ADAPTER || peer->remote);
    link_set_max_message_bytes(peer->link,
                               native_peer_router(peer)->settings->router.max_message_bytes);
}

static void adapter_park(struct native_peer *peer)
{
    char message[256];

    (void)snprintf(message, sizeof(message),
                   "contract %u.%u differs in its major from this router's %u.%u",
                   peer->adapter->contract.major, peer->adapter->contract.minor, CONTRACT_MAJOR,
                   CONTRACT_MINOR);
    peer_refuse(peer, "S302", message);
}

static void adapter_begin(struct native_peer *peer, const struct envelope *hello,
                          enum verdict verdict)
{
    struct router *router = native_peer_router(peer);

    struct adapter *retired = adapter_find(&router->adapters, hello->name);

    if (adapter_new(&router->adapters, hello, verdict, peer->link, &peer->adapter) < 0) {
        link_break(peer->link, "no memory for an adapter");
        return;
    }
    if (retired)
        retired->tenure = ADAPTER_ENDS;
    native_peer_set_state(peer, PEER_ADAPTER);
    router->metrics.adapter_connects++;
    log_event(LOG_INFO, "adapter_connected", log_text("adapter", peer->adapter->name),
              log_text("version", peer->adapter->version),
              log_uint("contract_major", hello->contract.major),
              log_uint("contract_minor", hello->contract.minor),
              log_uint("connection", peer->adapter->generation));
    if (verdict == VERDICT_FITS)
        peer_welcome(peer);
    else
        adapter_park(peer);
    binding_connected(&router->binding, peer->adapter);
}

static void greet_caller(struct native_peer *peer)
{
    native_caller_begin(peer);
    peer_welcome(peer);
}

/* Two adapters of one name: the connected one stays if it shows life. */

void native_hello_rival_part(struct native_peer *rival)
{
    rival->holder->rival = NULL;
    rival->holder = NULL;
    if (rival->patience)
        loop_timer_disarm(rival->patience);
}

static void rival_refuse(struct native_peer *rival)
{
    log_event(LOG_WARN, "adapter_refused", log_text("why", "its name is connected already"));
    peer_refuse(rival, "S301", "an adapter of this name is connected and answers");
    native_peer_set_state(rival, PEER_CLOSING);
    link_finish(rival->link, REFUSED_LINGER_MS);
}

void native_hello_alive(struct native_peer *holder)
{
    struct native_peer *rival = holder->rival;

    if (!rival)
        return;
    native_hello_rival_part(rival);
    rival_refuse(rival);
}

static void on_patience_over(void *ctx)
{
    struct native_peer *rival = ctx;

    link_break(rival->holder->link, "did not answer when another of its name came");
}

void native_hello_rival_promote(struct native_peer *rival)
{
    struct envelope hello;
    enum peer_role role;
    const char *reason;

    if (rival->state == PEER_CLOSING)
        return;
    if (envelope_decode(rival->hello.data, rival->hello.size, &hello, &reason) < 0) {
        link_break(rival->link, reason);
        return;
    }
    adapter_begin(rival, &hello, negotiate(&hello, &role, &reason));
    buf_done(&rival->hello);
}

static struct native_peer *peer_of_adapter(const struct front_native *front,
                                           const struct adapter *adapter)
{
    LIST_FOREACH(node, &front->peers)
    {
        struct native_peer *peer = LIST_ENTRY(node, struct native_peer, node);

        if (peer->adapter == adapter)
            return peer;
    }
    return NULL;
}

static void rival_begin(struct native_peer *peer, struct native_peer *holder,
                        const uint8_t *hello, size_t size)
{
    if (holder->rival) {
        rival_refuse(peer);
        return;
    }
    if (buf_append(&peer->hello, hello, size) < 0 ||
        loop_timer_new(native_peer_router(peer)->loop, on_patience_over, peer,
                       &peer->patience) < 0) {
        link_break(peer->link, "no memory for an adapter");
        return;
    }
    native_peer_set_state(peer, PEER_RIVAL);
    peer->holder = holder;
    holder->rival = peer;
    loop_timer_arm(peer->patience, RIVAL_TIMEOUT_MS);
    link_challenge(holder->link);
}

static void greet_adapter(struct native_peer *peer, const struct envelope *hello,
                          enum verdict verdict, const uint8_t *data, size_t size)
{
    struct router *router = native_peer_router(peer);
    struct adapter *connected = adapter_find(&router->adapters, hello->name);
    struct adapter *retired = connected && connected->tenure == ADAPTER_RETIRES ? connected
                                                                                : NULL;

    if (connected && !retired)
        rival_begin(peer, peer_of_adapter(peer->front, connected), data, size);
    else if (router->adapters.count == ADAPTERS_MAX)
        link_break(peer->link, "too many adapters are connected");
    else
        adapter_begin(peer, hello, verdict);
    if (retired && peer->adapter)
        adapter_check_idle(retired);
}

void native_hello_message(struct native_peer *peer, const struct envelope *hello,
                          const uint8_t *data, size_t size)
{
    struct binding *binding = &native_peer_router(peer)->binding;
    enum peer_role role;
    const char *reason;
    enum verdict verdict = negotiate(hello, &role, &reason);

    if (verdict == VERDICT_MALFORMED) {
        if (!binding->adapter)
            binding_note_absence(binding, hello->name, "it was refused: %s", reason);
        link_break(peer->link, reason);
        return;
    }
    peer_greeted(peer, role);
    if (role == PEER_ROLE_CALLER)
        greet_caller(peer);
    else
        greet_adapter(peer, hello, verdict, data, size);
}

/* The end of an adapter. */

void native_hello_adapter_lost(struct native_peer *peer, const char *reason)
{
    struct router *router = native_peer_router(peer);
    struct adapter *adapter = take_ptr(peer->adapter);

    router->metrics.adapter_losses++;
    log_event(peer->front->closing ? LOG_INFO : LOG_WARN, "adapter_lost",
              log_text("adapter", adapter->name), log_uint("connection", adapter->generation),
              log_text("why", reason), log_uint("calls", adapter->in_flight));
    adapter_detach(adapter);
    if (router->binding.adapter == adapter && !router->binding.absence[0])
        binding_note_absence(&router->binding, span_of_text(adapter->name),
                             "its connection was lost: %s", reason);
    binding_lost(&router->binding, adapter);
    passthrough_adapter_lost(&router->passthrough, adapter);
    adapter_check_idle(adapter);
    adapter_free(adapter);
}
