/* agent_call.c - the calls of a link and their streams: ids, windows, one end each.
 *
 * A call stays in the table until the guest has ended it, also when its owner has forgotten it:
 * the guest may still speak of it, and an id that is not in the table is a breach. */
#include "agent_link.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "agent_link_state.h"
#include "codec.h"
#include "utf8.h"

#define GRANT_BYTES (AGENT_WINDOW_BYTES / 4)
#define WIDE_GRANT_BYTES (AGENT_WIDE_WINDOW_BYTES / 2)
#define WINDOW_MAX_BYTES (1ull << 40) /* a guest that grants more means no good */

/* Which streams an operation has; bit n is stream n. */
struct call_streams {
    uint8_t host;
    uint8_t guest;
};
static const struct call_streams streams[GUEST_MAX] = {
    [GUEST_exec] = { .host = 1u << 0, .guest = 1u << 1 | 1u << 2 },
    [GUEST_fs_write] = { .host = 1u << 0 },
    [GUEST_fs_read] = { .guest = 1u << 1 },
};

struct agent_call {
    struct list node;
    struct agent_link *link;
    uint64_t id;
    enum guest_operation_id operation;
    const struct agent_call_events *events; /* NULL: forgotten by its owner */
    void *ctx;
    bool cancelled;
    bool given_up;   /* counted in link->given_up */
    bool wants_head; /* HEAD may come */
    bool has_head;
    uint8_t open;                    /* streams that have not ended, by bit */
    uint8_t widened;                 /* streams whose window was opened wide, by bit */
    uint8_t held_back;               /* streams whose owner waits for `writable`, by bit */
    uint64_t windows[AGENT_STREAMS]; /* what the sender of the stream may still send */
    uint64_t owed[AGENT_STREAMS];    /* granted by the owner, not told the guest yet */
};

static struct list *call_bucket(struct agent_link *link, uint64_t id)
{
    return &link->calls[id & (AGENT_LINK_BUCKETS - 1)];
}

static struct agent_call *call_find(struct agent_link *link, uint64_t id)
{
    LIST_FOREACH(node, call_bucket(link, id))
    {
        struct agent_call *call = LIST_ENTRY(node, struct agent_call, node);

        if (call->id == id)
            return call;
    }
    return NULL;
}

/* Nobody waits for it any more. */
static void call_drop_filling(struct agent_call *call)
{
    struct agent_link *link = call->link;

    if (link->filling.call != call)
        return;
    link->filling.call = NULL;
    mailbox_slot_give(&link->mailbox, link->filling.slot);
}

static void call_free(struct agent_call *call)
{
    call_drop_filling(call);
    list_remove(&call->node);
    call->link->call_count--;
    if (call->given_up)
        call->link->given_up--;
    free(call);
}

void agent_call_free_all(struct agent_link *link)
{
    for (size_t i = 0; i < AGENT_LINK_BUCKETS; i++) {
        LIST_FOREACH(node, &link->calls[i])
        {
            call_free(LIST_ENTRY(node, struct agent_call, node));
        }
    }
}

static void call_send(struct agent_call *call, enum agent_frame_kind kind)
{
    struct agent_frame frame = { .kind = kind, .id = call->id };

    agent_link_send(call->link, &frame);
}

static void call_grant(struct agent_call *call, unsigned stream, uint64_t size)
{
    struct agent_frame frame = {
        .kind = AGENT_FRAME_CREDIT, .id = call->id, .stream = stream, .credit = size
    };

    call->windows[stream] += size;
    if (call->link->mailbox.on)
        agent_link_return_slots(call->link, true);
    agent_link_send(call->link, &frame);
}

/* Nobody takes the guest's bytes any more, but it must be able to come to its end. */
static void call_forget(struct agent_call *call)
{
    call->events = NULL;
    for (unsigned stream = 0; stream < AGENT_STREAMS; stream++) {
        unsigned bit = 1u << stream;
        uint64_t left = call->windows[stream];

        if (streams[call->operation].host & call->open & bit)
            agent_call_end(call, stream, "the call was given up");
        else if ((streams[call->operation].guest & call->open & bit) &&
                 left < AGENT_WINDOW_BYTES)
            call_grant(call, stream, AGENT_WINDOW_BYTES - left);
    }
}

void agent_call_cancel(struct agent_call *call)
{
    if (call->cancelled)
        return;
    call->cancelled = true;
    call_send(call, AGENT_FRAME_CANCEL);
}

void agent_call_abandon(struct agent_call *call)
{
    call_forget(call);
    agent_call_cancel(call);
}

void agent_call_give_up(struct agent_call *call)
{
    struct agent_link *link = call->link;

    agent_call_abandon(call);
    call->given_up = true;
    link->given_up++;
    agent_link_fall_silent(link, "the guest agent did not confirm that a program was killed");
}

/* Ends of calls. */

static void call_lose(struct agent_call *call, const char *reason)
{
    const struct agent_call_events *events = call->events;
    struct sandbox_error err = { 0 };

    agent_call_abandon(call);
    (void)sandbox_error_set(&err, S300, "%s", reason);
    events->ended(call->ctx, NULL, &err, true);
    sandbox_error_done(&err);
}

/* Owners may begin, abandon and lose other calls from their callback, so the search starts anew
 * each time; calls begun meanwhile stay. */
static struct agent_call *call_first_owned(struct agent_link *link, uint64_t below_id)
{
    for (size_t i = 0; i < AGENT_LINK_BUCKETS; i++) {
        LIST_FOREACH(node, &link->calls[i])
        {
            struct agent_call *call = LIST_ENTRY(node, struct agent_call, node);

            if (call->events && call->id < below_id)
                return call;
        }
    }
    return NULL;
}

void agent_link_fail_calls(struct agent_link *link, const char *reason)
{
    uint64_t below_id = link->next_id;
    struct agent_call *call;

    agent_link_enter(link);
    while ((call = call_first_owned(link, below_id)))
        call_lose(call, reason);
    agent_link_leave(link);
}

/* What the guest may say with its own codes; anything else it says is an I/O failure that
 * quotes it (contract 3.3). */
static void read_guest_error(const struct guest_error *from, enum guest_operation_id operation,
                             struct sandbox_error *err)
{
    enum sandbox_code code = error_code_parse(from->code);
    bool has_parents = operation == GUEST_fs_mkdir || operation == GUEST_fs_write;

    if (code != S300 && (code < S210 || code > S219))
        (void)sandbox_error_set(err, S216, "%s: %s", from->code, from->message);
    else
        (void)sandbox_error_set(err, code, "%s", from->message);
    if (code == S211 && has_parents && from->fix_parents)
        sandbox_error_add_fix_bool(err, "parents", true);
}

/* The call is over: out of the table first, so that its owner may do anything. */
static void call_end(struct agent_call *call, const void *reply, struct sandbox_error *err)
{
    const struct agent_call_events *events = call->events;
    void *ctx = call->ctx;

    call_free(call);
    if (events)
        events->ended(ctx, reply, err, false);
}

static const char *take_reply(struct agent_call *call, struct span body)
{
    const struct type *type = guest_operations[call->operation].reply;
    void *reply;

    if (call->operation == GUEST_fs_read && !call->has_head)
        return "a REPLY of fs::read without HEAD";
    reply = calloc(1, type->size);
    if (!reply)
        return "a REPLY for which there is no memory";
    if (codec_decode_msgpack(type, (const uint8_t *)body.data, body.size, reply) < 0) {
        free(reply);
        return "a malformed REPLY";
    }
    call_end(call, reply, NULL);
    codec_free(type, reply);
    free(reply);
    return NULL;
}

static const char *take_error(struct agent_call *call, struct span body)
{
    struct guest_error guest;
    struct sandbox_error err = { 0 };

    if (codec_decode_msgpack(&type_guest_error, (const uint8_t *)body.data, body.size, &guest) <
        0)
        return "a malformed ERROR";
    read_guest_error(&guest, call->operation, &err);
    codec_free(&type_guest_error, &guest);
    call_end(call, NULL, &err);
    sandbox_error_done(&err);
    return NULL;
}

static const char *take_head(struct agent_call *call, struct span body)
{
    static const struct type *const types[GUEST_MAX] = {
        [GUEST_exec] = &type_guest_empty,
        [GUEST_fs_read] = &type_guest_fs_read_head,
    };
    const struct type *type = types[call->operation];
    union {
        struct guest_empty of_exec;
        struct guest_fs_read_head of_file;
    } head;

    if (!call->wants_head || call->has_head)
        return "a HEAD that nobody waits for";
    if (codec_decode_msgpack(type, (const uint8_t *)body.data, body.size, &head) < 0)
        return "a malformed HEAD";
    call->has_head = true;
    if (call->events && call->events->head)
        call->events->head(call->ctx, &head);
    codec_free(type, &head);
    return NULL;
}

/* Streams. */

/* What is wrong with something of the guest on a stream that it sends, or NULL. */
static const char *check_guest_stream(const struct agent_call *call, unsigned stream)
{
    if (!(streams[call->operation].guest & 1u << stream))
        return "a stream that the call does not have";
    if (!(call->open & 1u << stream))
        return "more of a stream that has ended";
    if (call->operation == GUEST_fs_read && !call->has_head)
        return "a stream ahead of its HEAD";
    return NULL;
}

static const char *take_bytes(struct agent_call *call, unsigned stream, const uint8_t *data,
                              size_t size)
{
    const char *wrong = check_guest_stream(call, stream);

    if (wrong)
        return wrong;
    if (size > call->windows[stream])
        return "more of a stream than was granted";
    call->windows[stream] -= size;
    if (!call->events)
        call_grant(call, stream, size);
    else if (call->events->data)
        call->events->data(call->ctx, stream, data, size);
    return NULL;
}

/* Where slots are copied to before anything looks at them. The owner may free the link. */
static const char *take_slot(struct agent_call *call, const struct agent_frame *frame)
{
    static uint8_t bytes[AGENT_MAILBOX_SLOT_BYTES]; /* the loop's thread only, never nested */
    struct agent_link *link = call->link;
    const char *wrong = mailbox_get(&link->mailbox, frame->slot, bytes, frame->size);

    if (!wrong) {
        agent_link_use_mailbox(link);
        agent_link_return_slots(link, false);
        wrong = take_bytes(call, frame->stream, bytes, frame->size);
    }
    return wrong;
}

/* The guest's words, fit for a message. */
static void read_reason(struct span text, char ret_reason[AGENT_LINK_REASON_MAX])
{
    size_t size = utf8_boundary(text.data, text.size, AGENT_LINK_REASON_MAX - 1);

    memcpy(ret_reason, text.data, size);
    ret_reason[size] = 0;
}

static const char *take_end(struct agent_call *call, const struct agent_frame *frame)
{
    const char *wrong = check_guest_stream(call, frame->stream);
    char reason[AGENT_LINK_REASON_MAX];

    if (wrong)
        return wrong;
    call->open &= (uint8_t) ~(1u << frame->stream);
    if (!call->events || !call->events->end)
        return NULL;
    if (frame->text.data)
        read_reason(frame->text, reason);
    call->events->end(call->ctx, frame->stream, frame->text.data ? reason : NULL);
    return NULL;
}

static void call_resume(struct agent_call *call, unsigned stream)
{
    unsigned bit = 1u << stream;

    if (!(call->held_back & bit) || agent_call_window(call, stream) == 0)
        return;
    call->held_back &= (uint8_t)~bit;
    if (call->events && call->events->writable)
        call->events->writable(call->ctx, stream);
}

/* Credit of a stream that we have ended may have been under way. */
static const char *take_credit(struct agent_call *call, const struct agent_frame *frame)
{
    if (!(streams[call->operation].host & 1u << frame->stream))
        return "credit for a stream that the host does not send";
    if (frame->credit > WINDOW_MAX_BYTES - call->windows[frame->stream])
        return "credit beyond all measure";
    call->windows[frame->stream] += frame->credit;
    call_resume(call, frame->stream);
    return NULL;
}

const char *agent_call_frame(struct agent_link *link, const struct agent_frame *frame)
{
    struct agent_call *call;

    if (link->state != AGENT_LINK_READY && link->state != AGENT_LINK_SILENT)
        return "a call's frame ahead of READY";
    call = call_find(link, frame->id);
    if (!call)
        return "a frame of a call that does not exist";
    switch (frame->kind) {
    case AGENT_FRAME_HEAD:
        return take_head(call, frame->body);
    case AGENT_FRAME_REPLY:
        return take_reply(call, frame->body);
    case AGENT_FRAME_ERROR:
        return take_error(call, frame->body);
    case AGENT_FRAME_DATA:
        return take_bytes(call, frame->stream, (const uint8_t *)frame->body.data,
                          frame->body.size);
    case AGENT_FRAME_SLOT:
        return take_slot(call, frame);
    case AGENT_FRAME_END:
        return take_end(call, frame);
    default:
        assert(frame->kind == AGENT_FRAME_CREDIT);
        return take_credit(call, frame);
    }
}

/* A resumed owner may end calls, so only the ones that are still there go on. */
void agent_call_resume_all(struct agent_link *link)
{
    for (size_t i = 0; i < AGENT_LINK_BUCKETS; i++) {
        LIST_FOREACH(node, &link->calls[i])
        {
            call_resume(LIST_ENTRY(node, struct agent_call, node), 0);
            if (agent_link_queued(link) >= AGENT_LINK_STREAM_QUEUE_BYTES)
                return;
        }
    }
}

uint64_t agent_call_id(const struct agent_call *call)
{
    return call->id;
}

size_t agent_call_window(const struct agent_call *call, unsigned stream)
{
    size_t queued = agent_link_queued(call->link);

    if (!(call->open & 1u << stream) || queued >= AGENT_LINK_STREAM_QUEUE_BYTES)
        return 0;
    return call->windows[stream] < SIZE_MAX ? (size_t)call->windows[stream] : SIZE_MAX;
}

void agent_call_send_filling(struct agent_link *link)
{
    struct agent_call *call = take_ptr(link->filling.call);
    struct agent_frame frame;

    if (!call)
        return;
    frame = (struct agent_frame){
        .kind = AGENT_FRAME_SLOT,
        .id = call->id,
        .stream = link->filling.stream,
        .slot = link->filling.slot,
        .size = (uint32_t)link->filling.size,
    };
    mailbox_slot_sent(&link->mailbox, link->filling.slot);
    agent_link_send(link, &frame);
}

/* Begins a slot if PART is worth one. */
static bool call_fill(struct agent_call *call, unsigned stream, size_t part)
{
    struct agent_link *link = call->link;
    int slot;

    if (link->filling.call == call && link->filling.stream == stream)
        return true;
    if (part < AGENT_MAILBOX_MIN_BYTES)
        return false;
    agent_call_send_filling(link);
    slot = mailbox_slot_take(&link->mailbox);
    if (slot < 0)
        return false;
    link->filling.call = call;
    link->filling.stream = stream;
    link->filling.slot = (unsigned)slot;
    link->filling.size = 0;
    agent_link_use_mailbox(link);
    agent_link_send_soon(link);
    return true;
}

/* Into the slot that is being filled. How many bytes; 0: as DATA. */
static size_t call_put(struct agent_call *call, unsigned stream, const uint8_t *data,
                       size_t part)
{
    struct agent_link *link = call->link;
    size_t room;

    if (!call_fill(call, stream, part))
        return 0;
    room = AGENT_MAILBOX_SLOT_BYTES - link->filling.size;
    if (part > room)
        part = room;
    if (mailbox_put(&link->mailbox, link->filling.slot, link->filling.size, data, part) < 0) {
        if (link->filling.size == 0)
            call_drop_filling(call);
        return 0;
    }
    link->filling.size += part;
    if (link->filling.size == AGENT_MAILBOX_SLOT_BYTES)
        agent_call_send_filling(link);
    return part;
}

static size_t call_send_data(struct agent_call *call, unsigned stream, const uint8_t *data,
                             size_t part)
{
    struct agent_frame frame = { .kind = AGENT_FRAME_DATA, .id = call->id, .stream = stream };

    agent_call_send_filling(call->link); /* what is ahead of it */
    if (part > AGENT_DATA_MAX_BYTES)
        part = AGENT_DATA_MAX_BYTES;
    frame.body = (struct span){ .data = (const char *)data, .size = part };
    agent_link_send(call->link, &frame);
    return part;
}

size_t agent_call_write(struct agent_call *call, unsigned stream, const uint8_t *data,
                        size_t size)
{
    size_t taken = 0;

    while (taken < size) {
        size_t put, part = agent_call_window(call, stream);

        if (part == 0) {
            call->held_back |= (uint8_t)(1u << stream);
            break;
        }
        if (part > size - taken)
            part = size - taken;
        put = call_put(call, stream, data + taken, part);
        if (put == 0)
            put = call_send_data(call, stream, data + taken, part);
        call->windows[stream] -= put;
        taken += put;
    }
    return taken;
}

void agent_call_end(struct agent_call *call, unsigned stream, const char *abort_reason)
{
    struct agent_frame frame = {
        .kind = AGENT_FRAME_END,
        .id = call->id,
        .stream = stream,
        .text = span_of_text(abort_reason),
    };

    if (!(call->open & 1u << stream))
        return;
    call->open &= (uint8_t) ~(1u << stream);
    call->held_back &= (uint8_t) ~(1u << stream);
    if (call->link->filling.call == call)
        agent_call_send_filling(call->link);
    agent_link_send(call->link, &frame);
}

/* Small grants are told together, for each frame wakes the guest: the window is open meanwhile,
 * and wide once the owner has shown that it takes. */
void agent_call_grant(struct agent_call *call, unsigned stream, size_t size)
{
    const uint8_t bit = (uint8_t)(1u << stream);

    if (!(call->open & bit))
        return;
    call->owed[stream] += size;
    if (call->owed[stream] < (call->widened & bit ? WIDE_GRANT_BYTES : GRANT_BYTES))
        return;
    if (call->link->wide && !(call->widened & bit)) {
        call->widened |= bit;
        call->owed[stream] += AGENT_WIDE_WINDOW_BYTES - AGENT_WINDOW_BYTES;
    }
    call_grant(call, stream, call->owed[stream]);
    call->owed[stream] = 0;
}

/* Beginning. */

static uint8_t streams_of(enum guest_operation_id operation, const void *request)
{
    unsigned open = streams[operation].host | streams[operation].guest;

    if (operation == GUEST_exec && !((const struct guest_exec *)request)->has_stdin)
        open &= ~(1u << 0);
    return (uint8_t)open;
}

static bool wants_head(enum guest_operation_id operation, const void *request)
{
    return operation == GUEST_fs_read ||
           (operation == GUEST_exec && ((const struct guest_exec *)request)->announce);
}

static int check_room(const struct agent_link *link, struct sandbox_error *err)
{
    if (link->state != AGENT_LINK_READY && link->state != AGENT_LINK_SILENT)
        return sandbox_error_set(err, S300, "the connection to the guest agent is closed");
    if (link->call_count >= AGENT_LINK_CALLS_MAX)
        return sandbox_error_set(err, S300, "%u operations of this sandbox have not ended",
                                 AGENT_LINK_CALLS_MAX);
    if (agent_link_queued(link) >= AGENT_LINK_QUEUE_MAX_BYTES)
        return sandbox_error_set(err, S300, "%u bytes wait for the guest agent to read them",
                                 AGENT_LINK_QUEUE_MAX_BYTES);
    return 0;
}

int agent_call(struct agent_link *link, enum guest_operation_id operation, const void *request,
               const struct agent_call_events *events, void *ctx, struct agent_call **ret_call,
               struct sandbox_error *err)
{
    const struct guest_operation *row = &guest_operations[operation];
    struct agent_call *call;
    int result;

    if (check_room(link, err) < 0)
        return -1;
    call = calloc(1, sizeof(*call));
    if (!call)
        return sandbox_error_set(err, S300, "no memory for a call of the guest agent");
    result = agent_link_send_map(link, AGENT_FRAME_CALL, link->next_id, row->name, row->request,
                                 request);
    if (result < 0) {
        free(call);
        return sandbox_error_set(err, S300, "the call cannot be sent to the guest agent: %s",
                                 strerror(-result));
    }
    call->link = link;
    call->id = link->next_id++;
    call->operation = operation;
    call->events = events;
    call->ctx = ctx;
    call->open = streams_of(operation, request);
    call->wants_head = wants_head(operation, request);
    for (unsigned stream = 0; stream < AGENT_STREAMS; stream++)
        call->windows[stream] = AGENT_WINDOW_BYTES;
    list_append(call_bucket(link, call->id), &call->node);
    link->call_count++;
    *ret_call = call;
    return 0;
}
