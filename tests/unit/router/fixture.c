/* fixture.c - see fixture.h. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PEER_MAX_BYTES (300u * 1024 * 1024)

/* The router. */

static void write_settings(const struct fixture *fixture, const char *sandbox)
{
    FILE *file = fopen(fixture->config, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(
        fprintf(file, "sandbox:\n  runtime_dir: %s/run\n%s", fixture->folder, sandbox), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static struct settings *load(const struct fixture *fixture)
{
    char error[SETTINGS_ERROR_MAX] = "";
    struct settings *settings = NULL;

    ck_assert_msg(settings_load(fixture->config, &settings, error) == 0, "%s", error);
    return settings;
}

void fixture_open(struct fixture *fixture, const char *sandbox,
                  const struct link_timing *timing)
{
    static const struct link_timing by_limits;
    char error[FRONT_NATIVE_ERROR_MAX] = "";

    *fixture = (struct fixture){ .folder = "/tmp/router-test-XXXXXX" };
    ck_assert_ptr_nonnull(mkdtemp(fixture->folder));
    (void)snprintf(fixture->config, sizeof(fixture->config), "%s/config.yaml", fixture->folder);
    write_settings(fixture, sandbox);
    fixture->settings = load(fixture);
    ck_assert_int_eq(loop_new(&fixture->loop), 0);
    ck_assert_int_eq(router_init(&fixture->router, fixture->loop, fixture->settings), 0);
    ck_assert_msg(runtime_dir_open(fixture->settings->router.runtime_dir, &fixture->directory,
                                   error) == 0,
                  "%s", error);
    ck_assert_msg(front_native_open(&fixture->native, &fixture->router, fixture_url(fixture),
                                    timing ? timing : &by_limits, error) == 0,
                  "%s", error);
}

const char *fixture_url(const struct fixture *fixture)
{
    return runtime_dir_url(fixture->directory);
}

void fixture_reload(struct fixture *fixture, const char *sandbox)
{
    struct settings *old = fixture->settings;

    write_settings(fixture, sandbox);
    fixture->settings = load(fixture);
    router_reload(&fixture->router, fixture->settings);
    front_native_reload(&fixture->native);
    settings_free(old);
}

void fixture_close(struct fixture *fixture)
{
    char path[128];

    front_native_done(&fixture->native);
    router_done(&fixture->router);
    runtime_dir_close(fixture->directory);
    loop_free(fixture->loop);
    settings_free(fixture->settings);
    (void)snprintf(path, sizeof(path), "%s/run/router.lock", fixture->folder);
    ck_assert_int_eq(unlink(path), 0);
    (void)snprintf(path, sizeof(path), "%s/run/router.sock", fixture->folder);
    (void)unlink(path); /* the listener has removed it already, or not */
    (void)snprintf(path, sizeof(path), "%s/run", fixture->folder);
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(unlink(fixture->config), 0);
    ck_assert_int_eq(rmdir(fixture->folder), 0);
}

/* Peers. */

static void on_ready(void *ctx)
{
    ((struct peer *)ctx)->ready = true;
}

static void on_message(void *ctx, uint8_t *data, size_t size)
{
    struct peer *peer = ctx;
    struct received *received = malloc(sizeof(*received) + size);
    const char *reason = "";

    if (!received)
        ck_abort_msg("out of memory");
    memcpy(received->data, data, size);
    received->size = size;
    if (envelope_decode(received->data, size, &received->envelope, &reason) != 0)
        ck_abort_msg("the router sent what cannot be read: %s", reason);
    if (received->envelope.kind == ENVELOPE_PING && !peer->mute)
        peer_send(peer,
                  &(struct envelope){ .kind = ENVELOPE_PONG, .id = received->envelope.id });
    if (received->envelope.kind == ENVELOPE_PING || received->envelope.kind == ENVELOPE_PONG) {
        free(received);
        return;
    }
    list_append(&peer->received, &received->node);
    peer->received_count++;
}

static void on_closed(void *ctx, int error, const char *reason)
{
    ((struct peer *)ctx)->closed = true;
}

static const struct sp_events peer_events = { .ready = on_ready,
                                              .message = on_message,
                                              .closed = on_closed };

static void on_dialed(void *ctx, int error, struct stream *own_stream)
{
    struct peer *peer = ctx;

    ck_assert_int_eq(error, 0);
    ck_assert_int_eq(sp_new(peer->fixture->loop, own_stream, SP_MAPPING_IPC, PEER_MAX_BYTES,
                            TURN_DEADLINE_MS, &peer_events, peer, &peer->sp),
                     0);
}

void peer_dial(struct peer *peer, struct fixture *fixture)
{
    *peer = (struct peer){ .fixture = fixture };
    list_init(&peer->received);
    ck_assert_int_eq(stream_dial(fixture->loop, fixture_url(fixture), NULL, TURN_DEADLINE_MS,
                                 on_dialed, peer, &peer->dialer),
                     0);
    TURN_UNTIL(fixture->loop, peer->ready || peer->closed);
}

void peer_hello(struct peer *peer, const char *role, const char *name,
                struct contract_version contract)
{
    peer_send(peer, &(struct envelope){ .kind = ENVELOPE_HELLO,
                                        .role = span_of_text(role),
                                        .name = span_of_text(name),
                                        .version = span_of_text("7"),
                                        .has_contract = true,
                                        .contract = contract });
}

void peer_as_caller(struct peer *peer, struct fixture *fixture)
{
    peer_dial(peer, fixture);
    peer_hello(peer, "caller", "test", (struct contract_version){ 1, 2 });
    peer_expect(peer, ENVELOPE_WELCOME);
}

void peer_as_adapter(struct peer *peer, struct fixture *fixture, const char *name)
{
    peer_dial(peer, fixture);
    peer_hello(peer, "adapter", name, (struct contract_version){ 1, 2 });
    peer_expect(peer, ENVELOPE_WELCOME);
}

void peer_close(struct peer *peer)
{
    struct list *node;

    sp_free(take_ptr(peer->sp));
    stream_dialer_free(take_ptr(peer->dialer));
    while ((node = list_pop(&peer->received)) != NULL)
        free(LIST_ENTRY(node, struct received, node));
}

void peer_send(struct peer *peer, const struct envelope *envelope)
{
    _cleanup_(buf_done)
    struct buf bytes = { 0 };

    if (envelope_encode(envelope, &bytes) < 0)
        ck_abort_msg("out of memory");
    (void)sp_send(peer->sp, bytes.data, bytes.size); /* the router may have closed */
}

struct received *peer_take(struct peer *peer, enum envelope_kind kind)
{
    struct received *received;

    TURN_UNTIL(peer->fixture->loop, !list_empty(&peer->received) || peer->closed);
    if (list_empty(&peer->received))
        ck_abort_msg("closed instead of a message of kind %d", kind);
    received = LIST_ENTRY(list_pop(&peer->received), struct received, node);
    ck_assert_int_eq(received->envelope.kind, kind);
    return received;
}

void peer_expect(struct peer *peer, enum envelope_kind kind)
{
    free(peer_take(peer, kind));
}

void peer_call(struct peer *caller, uint64_t id, const char *function, const char *body)
{
    peer_send(caller, &(struct envelope){ .kind = ENVELOPE_CALL,
                                          .id = id,
                                          .operation = span_of_text(function),
                                          .deadline_ms = ENVELOPE_NO_DEADLINE,
                                          .body = span_of_text(body) });
}

void peer_answer(struct peer *adapter, enum envelope_kind kind, uint64_t id, const char *body)
{
    peer_send(adapter,
              &(struct envelope){ .kind = kind, .id = id, .body = span_of_text(body) });
}

void peer_expect_answer(struct peer *caller, enum envelope_kind kind, uint64_t id,
                        const char *text)
{
    struct received *received = peer_take(caller, kind);
    struct span body = received->envelope.body;

    ck_assert_uint_eq(received->envelope.id, id);
    ck_assert_msg(memmem(body.data, body.size, text, strlen(text)) != NULL, "%s is not in %.*s",
                  text, (int)body.size, body.data);
    free(received);
}

uint64_t peer_expect_call(struct peer *adapter, const char *operation)
{
    struct received *received = peer_take(adapter, ENVELOPE_CALL);
    uint64_t id = received->envelope.id;

    ck_assert_msg(span_equals(received->envelope.operation, operation), "got %.*s",
                  (int)received->envelope.operation.size, received->envelope.operation.data);
    free(received);
    return id;
}
