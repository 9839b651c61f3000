/* adapter.h - the process: loop, settings, link, back end and the tables of what is going on.
 *
 * adapter.c owns all of them, their order of birth and death, reload and shutdown. What each of
 * them does stands in its own header. */
#pragma once

#include <stdbool.h>

#include "backend.h"
#include "loop.h"
#include "settings.h"
#include "snapshot.h"

struct adapter;
struct channels;    /* channel.h */
struct fault;       /* fault.h */
struct idempotency; /* idempotency.h */
struct image_cache; /* image_cache.h */
struct list;
struct requests;     /* request.h */
struct router_calls; /* router_call.h */
struct sandboxes;    /* sandbox.h */
struct serve;        /* serve.h */

struct loop *adapter_loop(const struct adapter *adapter);
const struct backend_ops *adapter_ops(const struct adapter *adapter);
struct backend *adapter_backend(const struct adapter *adapter);

/* The current settings, for what belongs to no call (ticks, new machines of a pool). Borrowed;
 * a reload replaces them, so whoever outlives the callback takes a snapshot_ref(). A call uses
 * request_settings() instead. */
struct snapshot *adapter_snapshot(const struct adapter *adapter);
const struct adapter_settings *adapter_settings(const struct adapter *adapter);

struct image_cache *adapter_images(const struct adapter *adapter);
/* The image calls that are not answered yet: struct image_call of image_operations.h. */
struct list *adapter_image_calls(struct adapter *adapter);
struct sandboxes *adapter_sandboxes(const struct adapter *adapter);
struct idempotency *adapter_idempotency(const struct adapter *adapter);
struct channels *adapter_channels(const struct adapter *adapter);
struct router_calls *adapter_router_calls(const struct adapter *adapter);
struct requests *adapter_requests(const struct adapter *adapter);
struct serve *adapter_serve(const struct adapter *adapter);

/* NULL: none, the normal case. */
const struct fault *adapter_fault(const struct adapter *adapter);

const char *adapter_name(const struct adapter *adapter);
const char *adapter_instance(const struct adapter *adapter); /* random, of this process */
/* Start of docs_url: the router's word, else the contract's default. */
const char *adapter_docs_base(const struct adapter *adapter);
/* Shutdown has begun: new calls are refused. */
bool adapter_stopping(const struct adapter *adapter);

/* Life, for main.c and tests. */

struct adapter_options {
    const struct backend_ops *ops;
    const char *config_path;
    const char *router_url; /* NULL: router.sock in the runtime_dir of the settings */
};

#define ADAPTER_ERROR_MAX 9216

/* Loads the settings, opens the back end and begins to dial the router. On failure ERROR holds
 * one line for people. Call it before anything that starts threads. */
int adapter_new(struct loop *loop, const struct adapter_options *options,
                struct adapter **ret_adapter, char ret_error[ADAPTER_ERROR_MAX]);
/* Refuses new calls, stops all sandboxes, then ends the loop with code 0. */
void adapter_stop(struct adapter *adapter);
/* Reads the settings file again; a bad one changes nothing. */
void adapter_reload(struct adapter *adapter);
void adapter_free(struct adapter *adapter);
DEFINE_CLEANUP(struct adapter *, adapter_free)
