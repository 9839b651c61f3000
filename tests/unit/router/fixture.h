/* fixture.h - a router with its native front, and peers that talk to it, all on one loop.
 *
 * Everything waits with TURN_UNTIL, so a test that hangs fails with what it waited for. */
#pragma once

#include <check.h>

#include "front_native.h"
#include "runtime_dir.h"
#include "turn.h"

struct fixture {
    struct loop *loop;
    char folder[64];
    char config[80];
    struct runtime_dir *directory;
    struct settings *settings;
    struct router router;
    struct front_native native;
};

/* SANDBOX: lines of the map `sandbox`, each indented by two; "" for none. TIMING may be NULL.
 */
void fixture_open(struct fixture *fixture, const char *sandbox,
                  const struct link_timing *timing);
/* Writes the file anew and reloads. */
void fixture_reload(struct fixture *fixture, const char *sandbox);
void fixture_close(struct fixture *fixture);
const char *fixture_url(const struct fixture *fixture);

/* One peer: it answers PING, keeps the rest in order. */
struct peer {
    struct fixture *fixture;
    struct stream_dialer *dialer;
    struct sp *sp;
    struct list received; /* of struct received */
    unsigned received_count;
    bool mute; /* answers no PING, like a stopped process */
    bool ready;
    bool closed;
};

struct received {
    struct list node;
    struct envelope envelope; /* its spans point into data */
    size_t size;
    uint8_t data[];
};

void peer_dial(struct peer *peer, struct fixture *fixture);
/* Dials, says hello and takes the answer: WELCOME, or REFUSED for another major. */
void peer_as_caller(struct peer *peer, struct fixture *fixture);
void peer_as_adapter(struct peer *peer, struct fixture *fixture, const char *name);
void peer_hello(struct peer *peer, const char *role, const char *name,
                struct contract_version contract);
void peer_close(struct peer *peer);

void peer_send(struct peer *peer, const struct envelope *envelope);
/* The next message, which must be of KIND; the caller frees it. */
struct received *peer_take(struct peer *peer, enum envelope_kind kind);
/* The same, thrown away. */
void peer_expect(struct peer *peer, enum envelope_kind kind);

void peer_call(struct peer *caller, uint64_t id, const char *function, const char *body);
void peer_answer(struct peer *adapter, enum envelope_kind kind, uint64_t id, const char *body);
/* The next message answers ID with KIND and a body that holds TEXT. */
void peer_expect_answer(struct peer *caller, enum envelope_kind kind, uint64_t id,
                        const char *text);
/* The next message is a CALL of OPERATION; its id. */
uint64_t peer_expect_call(struct peer *adapter, const char *operation);
