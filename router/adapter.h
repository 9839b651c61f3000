/* adapter.h - one connected adapter, and the set of them by name.
 *
 * It knows what the hello said, the verdict, and which calls are its to answer. The connection
 * below belongs to native_peer.c, which makes and frees the adapter. */
#pragma once

#include "link.h"
#include "negotiate.h"

struct adapter_set {
    struct list adapters;
    unsigned count;
    uint64_t last_generation;
};

/* How long a connected one keeps its name; supervise.c moves it. */
enum adapter_tenure {
    ADAPTER_STAYS,
    ADAPTER_RETIRES, /* until another of its name comes, which then need not be its rival */
    ADAPTER_ENDS,    /* no more: it gets no new call and answers those it has */
};

/* States: connected (in its set, LINK is there) -> lost (in no set, LINK is NULL, no calls). */
struct adapter {
    struct list node;
    struct adapter_set *set;
    struct link *link;   /* borrowed; NULL: lost */
    uint64_t generation; /* number of the connection, unique in this process; for the log */
    char name[ADAPTER_NAME_MAX_BYTES + 1];
    char version[ADAPTER_NAME_MAX_BYTES + 1];
    struct contract_version contract;
    enum verdict verdict; /* FITS or MAJOR_DIFFERS */
    enum adapter_tenure tenure;
    struct list calls;  /* of struct pending, tombstones included */
    unsigned in_flight; /* their number */
    unsigned owed;      /* of these, tombstones */
    /* The last call in flight has ended, or the name was taken over or the connection lost with
     * none in flight; may be NULL. Set by supervise.c. */
    void (*idle)(void *ctx);
    void *idle_ctx;
};

void adapter_set_init(struct adapter_set *set);
/* The one that has the name, or NULL. */
struct adapter *adapter_find(const struct adapter_set *set, struct span name);

/* HELLO has passed negotiate() as an adapter's; no other of its name is in SET. 0 or -ENOMEM.
 */
int adapter_new(struct adapter_set *set, const struct envelope *hello, enum verdict verdict,
                struct link *link, struct adapter **ret_adapter);
/* Nothing is in flight, and whoever set `idle` wants to know. */
void adapter_check_idle(struct adapter *adapter);
/* Out of the set; its calls are still there (passthrough_adapter_lost()). */
void adapter_detach(struct adapter *adapter);
void adapter_free(struct adapter *adapter); /* it has no calls; NULL is fine */
DEFINE_CLEANUP(struct adapter *, adapter_free)
