/* played_adapter.h - an adapter that the test plays: it says the hello it is told to and
 * answers each call by a function of the test. It lives on the test's loop; sp and envelope are
 * the tree's, everything above them is the test's. */
#pragma once

#include "native_client.h"

struct played_adapter;

struct played_adapter_options {
    const char *name;
    const char *version; /* NULL: "1" */
    struct contract_version contract;
    bool without_contract; /* the hello has no such key */
    const char *const *features;
    size_t feature_count;
    /* Answers by played_adapter_reply() or _error(), now or later. NULL: echoes the body. */
    void (*call)(void *ctx, struct played_adapter *adapter, const struct envelope *call);
    void *ctx;
};

/* Returns when the router has answered the hello (welcome or parked); -EPIPE when it closed the
 * connection instead. */
int played_adapter_new(struct loop *loop, const char *url,
                       const struct played_adapter_options *options,
                       struct played_adapter **ret_adapter);
void played_adapter_free(
    struct played_adapter *adapter); /* the connection goes without a word */
DEFINE_CLEANUP(struct played_adapter *, played_adapter_free)

bool played_adapter_parked(const struct played_adapter *adapter);
unsigned played_adapter_calls(const struct played_adapter *adapter);   /* that came */
unsigned played_adapter_cancels(const struct played_adapter *adapter); /* the same */
/* Its own calls and streams. */
struct native_client *played_adapter_client(struct played_adapter *adapter);

void played_adapter_reply(struct played_adapter *adapter, uint64_t id, struct span body);
void played_adapter_error(struct played_adapter *adapter, uint64_t id, struct span body);
