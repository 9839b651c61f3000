/* request.c - see request.h. */
#include "request.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "adapter.h"
#include "codec.h"
#include "dispatch.h"
#include "fault.h"
#include "handlers.h"
#include "idempotency.h"
#include "list.h"
#include "log.h"
#include "serve.h"
#include "table.h"
#include "uuid.h"

/* Bodies of calls that are not answered yet; more is refused (S400). */
#define REQUESTS_BODY_MAX_BYTES (512u * 1024 * 1024)
#define REQUEST_NAME_MAX_BYTES 128u
#define CUT_MARK "..."
/* Answers whose way a CANCEL may cross: more than can be on their way at once. */
#define TELLINGS_MAX 256u

enum request_state {
    REQUEST_RECEIVED,  /* not dispatched yet: here only while a test hook holds it */
    REQUEST_RUNNING,   /* with its handler; a cancel is passed on */
    REQUEST_CANCELLED, /* the same, but nobody waits for the answer */
    REQUEST_ANSWERED,  /* the answer is made; here only while a test hook holds it */
    REQUEST_STATE_MAX
};

static const bool request_moves[REQUEST_STATE_MAX][REQUEST_STATE_MAX] = {
    [REQUEST_RECEIVED] = { [REQUEST_RUNNING] = true,
                           [REQUEST_CANCELLED] = true,
                           [REQUEST_ANSWERED] = true },
    [REQUEST_RUNNING] = { [REQUEST_CANCELLED] = true, [REQUEST_ANSWERED] = true },
    [REQUEST_CANCELLED] = { [REQUEST_ANSWERED] = true },
};

/* An answer that was sent over the present connection and alone tells of a sandbox. */
struct telling {
    uint64_t call;
    char sandbox_id[UUID_TEXT_BYTES]; /* "": none */
};

struct requests {
    struct adapter *adapter;
    struct table *by_id; /* of the present connection */
    struct list all;
    size_t count;
    size_t body_bytes;

    struct telling tellings[TELLINGS_MAX]; /* a ring: the oldest is forgotten */
    size_t next_telling;

    /* The body that is being dispatched; only its own request may look at it. */
    const struct request *current;
    struct span current_json;
};

struct request {
    struct requests *requests;
    struct list node;
    enum request_state state;
    uint64_t link;
    uint64_t id;
    uint64_t began_ms;
    size_t body_bytes;
    char *name;
    char traceparent[ENVELOPE_TRACE_LOGGED_BYTES +
                     1]; /* for the log; "": none, or too long for it */
    struct snapshot *snapshot;
    const struct operation *operation; /* NULL: in no table, or not found yet */
    void *body;                        /* struct of operation->request */
    struct idempotency_entry *idempotency;
    char tells_of[UUID_TEXT_BYTES]; /* a sandbox; "": none */

    void (*cancel)(void *ctx);
    void *cancel_ctx;
    struct loop_notice cancel_notice; /* deferred: the cancel came before its function */

    /* While a test hook holds the call or its answer. */
    struct buf held;
    enum envelope_kind held_kind;
};

static void request_set_state(struct request *request, enum request_state state)
{
    assert(request_moves[request->state][state]);
    request->state = state;
}

/* Life of the table. */

int requests_new(struct adapter *adapter, struct requests **ret_requests)
{
    _cleanup_(requests_freep)
    struct requests *requests = calloc(1, sizeof(*requests));
    int ret;

    if (!requests)
        return -ENOMEM;
    requests->adapter = adapter;
    list_init(&requests->all);
    ret = table_new(&requests->by_id);
    if (ret < 0)
        return ret;
    *ret_requests = take_ptr(requests);
    return 0;
}

void requests_free(struct requests *requests)
{
    if (!requests)
        return;
    while (!list_empty(&requests->all))
        request_drop(LIST_ENTRY(requests->all.next, struct request, node));
    table_free(requests->by_id);
    free(requests);
}

size_t requests_count(const struct requests *requests)
{
    return requests->count;
}

/* Sandboxes that only an answer tells of. */

static struct telling *telling_find(struct requests *requests, uint64_t call)
{
    for (size_t i = 0; i < TELLINGS_MAX; i++) {
        if (requests->tellings[i].sandbox_id[0] && requests->tellings[i].call == call)
            return &requests->tellings[i];
    }
    return NULL;
}

static void telling_add(struct requests *requests, uint64_t call, const char *sandbox_id)
{
    struct telling *telling = &requests->tellings[requests->next_telling++ % TELLINGS_MAX];

    telling->call = call;
    memcpy(telling->sandbox_id, sandbox_id, sizeof(telling->sandbox_id));
}

/* SANDBOX_ID is set to "". */
static void end_untold(struct requests *requests, char sandbox_id[UUID_TEXT_BYTES])
{
    if (sandbox_id[0])
        sandboxes_end(adapter_sandboxes(requests->adapter), sandbox_id,
                      "its caller was gone before it could be told of it");
    sandbox_id[0] = 0;
}

void request_tells_of(struct request *request, const char *sandbox_id)
{
    if (!request->idempotency)
        (void)snprintf(request->tells_of, sizeof(request->tells_of), "%s", sandbox_id);
}

/* Life of one. */

static void request_free(struct request *request)
{
    struct requests *requests = request->requests;

    if (table_get(requests->by_id, request->id) == request)
        (void)table_remove(requests->by_id, request->id); /* the request itself */
    list_remove(&request->node);
    requests->count--;
    requests->body_bytes -= request->body_bytes;
    loop_notice_cancel(adapter_loop(requests->adapter), &request->cancel_notice);
    if (request->body)
        codec_free(request->operation->request, request->body);
    free(request->body);
    snapshot_unref(request->snapshot);
    buf_done(&request->held);
    free(request->name);
    free(request);
}

void request_drop(struct request *request)
{
    idempotency_dropped(request);
    request_free(request);
}

static void on_deferred_cancel(void *ctx)
{
    struct request *request = ctx;
    void (*cancel)(void *) = take_ptr(request->cancel);

    if (cancel)
        cancel(request->cancel_ctx);
}

/* Names come from strangers: a long one is cut, and NUL shows, so that neither can pass for one
 * of ours. */
static char *copy_name(struct span operation)
{
    bool cut = operation.size > REQUEST_NAME_MAX_BYTES;
    char *name = calloc(1, REQUEST_NAME_MAX_BYTES + sizeof(CUT_MARK));

    if (!name)
        return NULL;
    for (size_t i = 0; i < operation.size && i < REQUEST_NAME_MAX_BYTES; i++)
        name[i] = operation.data[i] ? operation.data[i] : '?';
    if (cut)
        memcpy(name + REQUEST_NAME_MAX_BYTES, CUT_MARK, sizeof(CUT_MARK));
    return name;
}

static void keep_traceparent(struct request *request, struct span traceparent)
{
    if (traceparent.data && traceparent.size <= ENVELOPE_TRACE_LOGGED_BYTES)
        memcpy(request->traceparent, traceparent.data, traceparent.size);
}

static const char *logged_traceparent(const struct request *request)
{
    return request->traceparent[0] ? request->traceparent : NULL;
}

static int request_new(struct requests *requests, uint64_t link, const struct envelope *call,
                       struct request **ret_request)
{
    struct request *request = calloc(1, sizeof(*request));
    struct telling *telling = telling_find(requests, call->id);
    int ret;

    if (telling)
        telling->sandbox_id[0] = 0; /* the id names another call now */
    if (!request)
        return -ENOMEM;
    request->name = copy_name(call->operation);
    ret = request->name ? table_put(requests->by_id, call->id, request) : -ENOMEM;
    if (ret < 0) {
        free(request->name);
        free(request);
        return ret;
    }
    request->requests = requests;
    request->state = REQUEST_RECEIVED;
    request->link = link;
    request->id = call->id;
    request->began_ms = loop_now_ms(adapter_loop(requests->adapter));
    request->body_bytes = call->body.size;
    keep_traceparent(request, call->traceparent);
    request->snapshot = snapshot_ref(adapter_snapshot(requests->adapter));
    loop_notice_init(&request->cancel_notice, on_deferred_cancel, request);
    list_append(&requests->all, &request->node);
    requests->count++;
    requests->body_bytes += call->body.size;
    *ret_request = request;
    return 0;
}

/* Beginning. */

static bool request_refused(struct request *request)
{
    struct requests *requests = request->requests;
    struct sandbox_error err = { 0 };

    if (requests->body_bytes > REQUESTS_BODY_MAX_BYTES)
        sandbox_error_set(&err, S400,
                          "calls in flight hold %zu bytes of bodies, which exceeds the limit "
                          "of %u: call again when some have ended",
                          requests->body_bytes, REQUESTS_BODY_MAX_BYTES);
    else if (adapter_stopping(requests->adapter))
        sandbox_error_set(&err, S300, "adapter %s is shutting down",
                          adapter_name(requests->adapter));
    else
        return false;
    sandbox_error_set_outcome(&err, OUTCOME_NEVER_RAN);
    request_fail(request, &err);
    return true;
}

static void request_dispatch(struct request *request, struct span json)
{
    struct requests *requests = request->requests;

    request_set_state(request, REQUEST_RUNNING);
    requests->current = request;
    requests->current_json = json;
    dispatch(request, json.data, json.size);
    requests->current = NULL;
}

int requests_begin(struct requests *requests, uint64_t link, const struct envelope *call)
{
    const struct fault *fault = adapter_fault(requests->adapter);
    struct span json = call->body.data ? call->body : span_of_text("");
    struct request *request;
    int ret = request_new(requests, link, call, &request);

    if (ret < 0)
        return ret;
    if (fault && fault->called) {
        /* The hook may keep the request, the message's bytes are gone by then. */
        if (buf_append(&request->held, json.data, json.size) < 0) {
            request_free(request);
            return -ENOMEM;
        }
        if (fault->called(fault->ctx, request, request->name))
            return 0;
        buf_done(&request->held);
    }
    if (!request_refused(request))
        request_dispatch(request, json);
    return 0;
}

void request_go_on(struct request *request)
{
    _cleanup_(buf_done)
    struct buf json = request->held;
    struct sandbox_error err = { 0 };

    request->held = (struct buf){ 0 };
    if (request->state == REQUEST_CANCELLED) {
        sandbox_error_set(&err, S300, "cancelled before it began");
        sandbox_error_set_outcome(&err, OUTCOME_NEVER_RAN);
        request_fail(request, &err);
        return;
    }
    if (!request_refused(request))
        request_dispatch(request, (struct span){ (const char *)json.data, json.size });
}

/* Cancelling. */

static void request_cancel(struct request *request)
{
    void (*cancel)(void *);

    if (request->state == REQUEST_ANSWERED)
        end_untold(request->requests, request->tells_of);
    if (request->state > REQUEST_RUNNING || request->idempotency)
        return; /* with a key it runs to its end (contract 2.4) */
    request_set_state(request, REQUEST_CANCELLED);
    log_event(LOG_DEBUG, "call_cancelled", log_uint("call", request->id),
              log_text("op", request->name),
              log_text("traceparent", logged_traceparent(request)));
    cancel = take_ptr(request->cancel);
    if (cancel)
        cancel(request->cancel_ctx);
}

void requests_cancel(struct requests *requests, uint64_t link, uint64_t id)
{
    struct request *request = table_get(requests->by_id, id);
    struct telling *telling = telling_find(requests, id);

    if (request && request->link == link)
        request_cancel(request);
    else if (telling)
        end_untold(requests, telling->sandbox_id);
}

void requests_cancel_link(struct requests *requests, uint64_t link)
{
    struct request *request;

    memset(requests->tellings, 0, sizeof(requests->tellings)); /* arrived or not: who knows */
    /* A cancel may end this request and others, so each one starts anew. */
    for (size_t cursor = 0; (request = table_next(requests->by_id, &cursor)); cursor = 0) {
        assert(request->link == link);
        (void)table_remove(requests->by_id, request->id); /* the request itself */
        request_cancel(request);
    }
}

void request_on_cancel(struct request *request, void (*fn)(void *ctx), void *ctx)
{
    struct loop *loop = adapter_loop(request->requests->adapter);

    request->cancel = fn;
    request->cancel_ctx = ctx;
    if (fn && request->state == REQUEST_CANCELLED)
        loop_defer(loop, &request->cancel_notice);
    else
        loop_notice_cancel(loop, &request->cancel_notice);
}

bool request_cancelled(const struct request *request)
{
    return request->state == REQUEST_CANCELLED;
}

/* Answering. */

static void request_send(struct request *request, enum envelope_kind kind, const void *body,
                         size_t size);

/* The router would not take so long an answer; the caller learns that instead. */
static void request_send_too_large(struct request *request, size_t size)
{
    struct adapter *adapter = request->requests->adapter;
    bool is_fs = strncmp(request->name, "fs::", 4) == 0;
    _cleanup_(buf_done)
    struct buf body = { 0 };
    struct sandbox_error err = { 0 };

    sandbox_error_set(&err, is_fs ? S216 : S300,
                      "the reply of %s has %zu bytes, a message has room for %zu",
                      request->name, size, serve_max_message_bytes(adapter_serve(adapter)));
    if (!is_fs)
        sandbox_error_set_outcome(&err, OUTCOME_MAY_HAVE_RUN);
    if (sandbox_error_encode(&err, adapter_docs_base(adapter), &body) == 0)
        request_send(request, ENVELOPE_ERROR, body.data, body.size);
    else
        request_free(request);
}

/* Sends and ends it. */
static void request_send(struct request *request, enum envelope_kind kind, const void *body,
                         size_t size)
{
    struct serve *serve = adapter_serve(request->requests->adapter);
    int ret = serve_send_body(serve, request->link, kind, request->id, body, size);

    if (ret == -EMSGSIZE && kind == ENVELOPE_REPLY) {
        request_send_too_large(request, size);
        return;
    }
    if (ret == 0 && request->tells_of[0])
        telling_add(request->requests, request->id, request->tells_of);
    else if (ret < 0)
        end_untold(request->requests, request->tells_of);
    if (ret < 0)
        log_event(LOG_WARN, "answer_lost", log_uint("call", request->id),
                  log_text("op", request->name), log_text("error", strerror(-ret)));
    if (ret < 0 && ret != -ENOTCONN) /* nobody may wait for ever: the router answers S301 */
        serve_disconnect(serve);
    request_free(request);
}

static void request_answer(struct request *request, enum sandbox_code code, struct buf *body)
{
    const struct fault *fault = adapter_fault(request->requests->adapter);
    enum envelope_kind kind = code == SANDBOX_OK ? ENVELOPE_REPLY : ENVELOPE_ERROR;
    uint64_t now_ms = loop_now_ms(adapter_loop(request->requests->adapter));

    log_event(code == SANDBOX_OK ? LOG_DEBUG : LOG_INFO, "call_answered",
              log_uint("call", request->id), log_text("op", request->name),
              log_text("code", code == SANDBOX_OK ? NULL : error_info_get(code)->code),
              log_uint("duration_ms", now_ms - request->began_ms),
              log_text("traceparent", logged_traceparent(request)));
    request->cancel = NULL;
    idempotency_answered(request, code, body->data, body->size);
    request_set_state(request, REQUEST_ANSWERED);
    if (fault && fault->answering &&
        fault->answering(fault->ctx, request, request->name, body)) {
        request->held_kind = kind;
        request->held = *body;
        *body = (struct buf){ 0 };
        return;
    }
    request_send(request, kind, body->data, body->size);
}

void request_send_held(struct request *request)
{
    _cleanup_(buf_done)
    struct buf body = request->held;

    request->held = (struct buf){ 0 };
    request_send(request, request->held_kind, body.data, body.size);
}

static void request_encode_reply(struct request *request, const struct type *type, bool array,
                                 const void *reply)
{
    _cleanup_(buf_done)
    struct buf body = { 0 };
    struct sandbox_error err = { 0 };

    if (codec_encode_json(type, reply, array, &body) < 0) {
        sandbox_error_set(&err, S300, "no memory for the reply");
        request_fail(request, &err);
        return;
    }
    request_answer(request, SANDBOX_OK, &body);
}

void request_reply(struct request *request, const void *reply)
{
    const struct operation *operation = request->operation;

    request_encode_reply(request, operation->reply, operation->flags & ARRAY_REPLY, reply);
}

void request_reply_as(struct request *request, const struct type *type, const void *reply)
{
    request_encode_reply(request, type, false, reply);
}

void request_reply_json(struct request *request, const char *json, size_t size)
{
    _cleanup_(buf_done)
    struct buf body = { 0 };
    struct sandbox_error err = { 0 };

    if (buf_append(&body, json, size) < 0) {
        sandbox_error_set(&err, S300, "no memory for the reply");
        request_fail(request, &err);
        return;
    }
    request_answer(request, SANDBOX_OK, &body);
}

/* Contract 3.4: on S300 and S301 of operations with side effects, and nowhere else. */
static void request_settle_outcome(const struct request *request, struct sandbox_error *err)
{
    const struct operation *operation = operation_find(request->name, strlen(request->name));
    bool wanted = operation && (operation->flags & SIDE_EFFECTS) &&
                  (err->code == S300 || err->code == S301);

    if (!wanted)
        err->outcome = OUTCOME_NONE;
    else if (err->outcome == OUTCOME_NONE)
        err->outcome = OUTCOME_MAY_HAVE_RUN;
}

void request_fail(struct request *request, struct sandbox_error *err)
{
    const char *docs_base = adapter_docs_base(request->requests->adapter);
    _cleanup_(buf_done)
    struct buf body = { 0 };
    enum sandbox_code code = err->code;
    int ret;

    assert(code != SANDBOX_OK);
    request_settle_outcome(request, err);
    ret = sandbox_error_encode(err, docs_base, &body);
    sandbox_error_done(err);
    if (ret == 0) {
        request_answer(request, code, &body);
        return;
    }
    /* Not even memory for an error: the link cannot keep its promise of one answer. */
    log_event(LOG_ERROR, "answer_lost", log_uint("call", request->id),
              log_text("error", strerror(-ret)));
    serve_disconnect(adapter_serve(request->requests->adapter));
    request_drop(request);
}

void request_repeat(struct request *request, enum envelope_kind kind, const void *body,
                    size_t size)
{
    request->idempotency = NULL;
    request->cancel = NULL;
    request_send(request, kind, body, size);
}

void request_event(struct request *request, const char *json, size_t size)
{
    if (request->state != REQUEST_RUNNING)
        return;
    /* Nobody has to read events, so one that cannot be sent is lost. */
    (void)serve_send_body(adapter_serve(request->requests->adapter), request->link,
                          ENVELOPE_EVENT, request->id, json, size);
}

/* Looking. */

struct adapter *request_adapter(const struct request *request)
{
    return request->requests->adapter;
}

const struct operation *request_operation(const struct request *request)
{
    return request->operation;
}

const char *request_operation_name(const struct request *request)
{
    return request->name;
}

const void *request_body(const struct request *request)
{
    return request->body;
}

const struct adapter_settings *request_settings(const struct request *request)
{
    return snapshot_adapter(request->snapshot);
}

const char *request_json(const struct request *request, size_t *ret_size)
{
    const struct requests *requests = request->requests;
    struct span json = span_of_text("");

    if (requests->current == request)
        json = requests->current_json;
    else if (request->held.data) /* a test hook looks at it before it is dispatched */
        json = (struct span){ (const char *)request->held.data, request->held.size };
    *ret_size = json.size;
    return json.data;
}

uint64_t request_id(const struct request *request)
{
    return request->id;
}

void request_set_body(struct request *request, const struct operation *operation,
                      void *own_body)
{
    request->operation = operation;
    request->body = own_body;
}

struct idempotency_entry *request_idempotency(const struct request *request)
{
    return request->idempotency;
}

void request_set_idempotency(struct request *request, struct idempotency_entry *entry)
{
    request->idempotency = entry;
}
