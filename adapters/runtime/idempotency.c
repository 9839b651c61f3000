/* idempotency.c - see idempotency.h.
 *
 * States of a key: running (its first call is with a handler; repeats wait) -> kept (the answer
 * is stored; repeats get it) -> gone, 10 minutes after the first call came. A key whose call
 * still runs by then leaves the table, but those who wait still get the answer. */
#include "idempotency.h"

#include <errno.h>
#include <string.h>

#include "adapter.h"
#include "json_digest.h"
#include "json_scan.h"
#include "list.h"
#include "log.h"
#include "reply_store.h"
#include "table.h"

struct idempotency {
    struct adapter *adapter;
    struct table *by_name;
    struct list by_age; /* those in the table, oldest first */
    struct loop_timer *expiry;
    struct reply_store *store;
};

struct waiter {
    struct list node;
    struct request *request;
};

struct idempotency_entry {
    struct idempotency *idempotency;
    struct list node; /* in by_age; in no list once it has expired */
    char *name;       /* operation, space, key */
    uint8_t digest[HASH_SHA256_BYTES];
    uint64_t expires_ms;
    struct request *runner; /* NULL: the answer is kept */
    struct list waiters;    /* while it runs */
    enum envelope_kind kind;
    struct stored_reply reply;
};

static uint64_t now_ms(const struct idempotency *idempotency)
{
    return loop_now_ms(adapter_loop(idempotency->adapter));
}

/* Life. */

static void entry_free(struct idempotency_entry *entry)
{
    struct list *node;

    while ((node = list_pop(&entry->waiters)))
        free(LIST_ENTRY(node, struct waiter, node));
    reply_store_drop(entry->idempotency->store, &entry->reply);
    free(entry->name);
    free(entry);
}

/* Out of the table: a repeat runs anew. */
static void entry_retire(struct idempotency_entry *entry)
{
    if (list_empty(&entry->node))
        return;
    list_remove(&entry->node);
    (void)table_remove_text(entry->idempotency->by_name, entry->name); /* the entry itself */
}

static void arm_expiry(struct idempotency *idempotency)
{
    struct idempotency_entry *oldest;

    if (list_empty(&idempotency->by_age)) {
        loop_timer_disarm(idempotency->expiry);
        return;
    }
    oldest = LIST_ENTRY(idempotency->by_age.next, struct idempotency_entry, node);
    loop_timer_arm(idempotency->expiry, oldest->expires_ms > now_ms(idempotency)
                                            ? oldest->expires_ms - now_ms(idempotency)
                                            : 0);
}

static void on_expiry(void *ctx)
{
    struct idempotency *idempotency = ctx;

    LIST_FOREACH(node, &idempotency->by_age)
    {
        struct idempotency_entry *entry = LIST_ENTRY(node, struct idempotency_entry, node);

        if (entry->expires_ms > now_ms(idempotency))
            break;
        entry_retire(entry);
        if (!entry->runner)
            entry_free(entry);
    }
    arm_expiry(idempotency);
}

int idempotency_new(struct adapter *adapter, struct idempotency **ret_idempotency)
{
    _cleanup_(idempotency_freep)
    struct idempotency *idempotency = calloc(1, sizeof(*idempotency));
    int ret;

    if (!idempotency)
        return -ENOMEM;
    idempotency->adapter = adapter;
    list_init(&idempotency->by_age);
    ret = table_new(&idempotency->by_name);
    if (ret == 0)
        ret = loop_timer_new(adapter_loop(adapter), on_expiry, idempotency,
                             &idempotency->expiry);
    if (ret == 0)
        ret = reply_store_new(adapter_settings(adapter)->cache_dir, &idempotency->store);
    if (ret < 0)
        return ret;
    *ret_idempotency = take_ptr(idempotency);
    return 0;
}

void idempotency_free(struct idempotency *idempotency)
{
    struct list *node;

    if (!idempotency)
        return;
    /* All requests are gone, so no entry runs any more. */
    while ((node = list_pop(&idempotency->by_age)))
        entry_free(LIST_ENTRY(node, struct idempotency_entry, node));
    table_free(idempotency->by_name);
    loop_timer_free(idempotency->expiry);
    reply_store_free(idempotency->store);
    free(idempotency);
}

/* Admitting. */

/* Our own failure, S300. */
static int refuse(struct request *request, enum sandbox_outcome outcome, const char *message)
{
    struct sandbox_error err = { 0 };

    sandbox_error_set(&err, S300, "%s", message);
    sandbox_error_set_outcome(&err, outcome);
    request_fail(request, &err);
    return -1;
}

/* "operation key", or NULL without a key; -1 on failure, which is answered. */
static int read_name(struct request *request, struct span json, char **ret_name)
{
    _cleanup_(buf_done)
    struct buf name = { 0 };
    struct span object, key;

    *ret_name = NULL;
    if (json_scan(json.data, json.size, &object, NULL) < 0 || json_kind(object) != JSON_OBJECT)
        return 0;
    key = json_get(object, "idempotency_key");
    if (!key.data || json_kind(key) != JSON_STRING)
        return 0;
    if (buf_printf(&name, "%s ", request_operation_name(request)) < 0 ||
        json_string_decode(key, &name) < 0 || !buf_text(&name))
        return refuse(request, OUTCOME_NEVER_RAN, "no memory for the idempotency_key");
    *ret_name = (char *)buf_take(&name, NULL);
    return 0;
}

static int entry_new(struct idempotency *idempotency, char *own_name,
                     const uint8_t digest[HASH_SHA256_BYTES], struct request *runner)
{
    struct idempotency_entry *entry = calloc(1, sizeof(*entry));

    if (!entry) {
        free(own_name);
        return -ENOMEM;
    }
    *entry = (struct idempotency_entry){ .idempotency = idempotency,
                                         .name = own_name,
                                         .expires_ms = now_ms(idempotency) +
                                                       IDEMPOTENCY_KEEP_MS,
                                         .runner = runner };
    memcpy(entry->digest, digest, HASH_SHA256_BYTES);
    list_init(&entry->node);
    list_init(&entry->waiters);
    if (table_put_text(idempotency->by_name, entry->name, entry) < 0) {
        entry_free(entry);
        return -ENOMEM;
    }
    list_append(&idempotency->by_age, &entry->node);
    request_set_idempotency(runner, entry);
    if (!loop_timer_armed(idempotency->expiry))
        arm_expiry(idempotency);
    return 0;
}

static void wait_for(struct idempotency_entry *entry, struct request *request)
{
    struct waiter *waiter = calloc(1, sizeof(*waiter));

    if (!waiter) {
        (void)refuse(request, OUTCOME_NEVER_RAN,
                     "no memory to wait for the call with this key");
        return;
    }
    waiter->request = request;
    list_append(&entry->waiters, &waiter->node);
    request_set_idempotency(request, entry);
}

static void replay(struct idempotency_entry *entry, struct request *request)
{
    _cleanup_(buf_done)
    struct buf body = { 0 };

    if (reply_store_get(entry->idempotency->store, &entry->reply, &body) < 0)
        (void)refuse(request, OUTCOME_MAY_HAVE_RUN, "the kept answer cannot be read");
    else
        request_repeat(request, entry->kind, body.data, body.size);
}

static void repeat(struct idempotency_entry *entry, struct request *request,
                   const uint8_t digest[HASH_SHA256_BYTES])
{
    struct sandbox_error err = { 0 };

    if (memcmp(entry->digest, digest, HASH_SHA256_BYTES) != 0) {
        sandbox_error_set(&err, S001,
                          "idempotency_key %s was used with another body: a repeat has the "
                          "same body, another request another key",
                          strchr(entry->name, ' ') + 1);
        request_fail(request, &err);
    } else if (entry->runner) {
        wait_for(entry, request);
    } else {
        replay(entry, request);
    }
}

bool idempotency_admit(struct request *request)
{
    struct idempotency *idempotency = adapter_idempotency(request_adapter(request));
    uint8_t digest[HASH_SHA256_BYTES];
    struct idempotency_entry *entry;
    struct sandbox_error err = { 0 };
    char *name;
    struct span json;

    json.data = request_json(request, &json.size);
    if (read_name(request, json, &name) < 0)
        return false;
    if (!name)
        return true;
    entry = table_get_text(idempotency->by_name, name);
    if (json_digest(json, digest) < 0) {
        free(name);
        (void)refuse(request, OUTCOME_NEVER_RAN, "no memory for the idempotency_key");
        return false;
    }
    if (entry) {
        free(name);
        repeat(entry, request, digest);
        return false;
    }
    if (table_count(idempotency->by_name) >= IDEMPOTENCY_KEYS_MAX) {
        free(name);
        sandbox_error_set(&err, S400,
                          "idempotency_key: %u keys are held, which is the limit; each one is "
                          "held for 10 minutes",
                          IDEMPOTENCY_KEYS_MAX);
        request_fail(request, &err);
        return false;
    }
    if (entry_new(idempotency, name, digest, request) == 0)
        return true;
    (void)refuse(request, OUTCOME_NEVER_RAN, "no memory for the idempotency_key");
    return false;
}

/* Answering. */

static bool keeps(enum sandbox_code code)
{
    return code == SANDBOX_OK ||
           (!error_info_get(code)->retryable && code != S003 && code != S400);
}

static void answer_waiters(struct idempotency_entry *entry, enum envelope_kind kind,
                           const void *body, size_t size)
{
    struct list *node;

    while ((node = list_pop(&entry->waiters))) {
        struct waiter *waiter = LIST_ENTRY(node, struct waiter, node);
        struct request *request = waiter->request;

        free(waiter);
        request_repeat(request, kind, body, size);
    }
}

void idempotency_answered(struct request *request, enum sandbox_code code, const void *body,
                          size_t size)
{
    struct idempotency_entry *entry = request_idempotency(request);
    enum envelope_kind kind = code == SANDBOX_OK ? ENVELOPE_REPLY : ENVELOPE_ERROR;
    bool held = false;

    if (!entry || entry->runner != request)
        return;
    request_set_idempotency(request, NULL);
    entry->runner = NULL;
    entry->kind = kind;
    if (keeps(code) && !list_empty(&entry->node)) {
        held = reply_store_put(entry->idempotency->store, body, size, &entry->reply) == 0;
        if (!held)
            log_event(LOG_ERROR, "answer_not_kept", log_uint("call", request_id(request)),
                      log_uint("size_bytes", size));
    }
    answer_waiters(entry, kind, body, size);
    if (held)
        return;
    entry_retire(entry);
    entry_free(entry);
}

static void drop_waiter(struct idempotency_entry *entry, const struct request *request)
{
    LIST_FOREACH(node, &entry->waiters)
    {
        struct waiter *waiter = LIST_ENTRY(node, struct waiter, node);

        if (waiter->request != request)
            continue;
        list_remove(&waiter->node);
        free(waiter);
        return;
    }
}

void idempotency_dropped(struct request *request)
{
    struct idempotency_entry *entry = request_idempotency(request);
    struct list *node;

    if (!entry)
        return;
    request_set_idempotency(request, NULL);
    if (entry->runner != request) {
        drop_waiter(entry, request);
        return;
    }
    entry_retire(entry);
    while ((node = list_pop(&entry->waiters))) {
        struct waiter *waiter = LIST_ENTRY(node, struct waiter, node);
        struct request *waiting = waiter->request;

        free(waiter);
        request_set_idempotency(waiting, NULL);
        (void)refuse(waiting, OUTCOME_MAY_HAVE_RUN,
                     "the call with this idempotency_key ended without answer");
    }
    entry_free(entry);
}
