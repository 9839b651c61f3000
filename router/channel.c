/* channel.c - see channel.h. What is held moves in channel_pump(), and only there. */
#include "channel.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "table.h"
#include "uuid.h"

#define BLOCK_BYTES 4096u /* smallest memory for bytes of a windowed writer */

struct message {
    struct list node;
    bool is_text;
    size_t size;
    size_t capacity;
    size_t taken; /* bytes the reader has */
    uint8_t data[];
};

struct channel_end {
    struct channel *channel;
    bool taken;    /* somebody attached, ever */
    bool attached; /* and is there */
    bool windowed;
    bool whole_messages;
    const struct channel_events *events;
    void *ctx;
};

enum channel_state {
    CHANNEL_OPEN,  /* the writer may send, or may still come */
    CHANNEL_ENDED, /* clean end: the reader gets what is held, then its end */
    CHANNEL_GONE,  /* unknown to all; memory waits for our callbacks on the stack */
};

struct channel {
    struct list node;
    struct channel_set *set;
    struct channel_refs refs;
    enum channel_state state;
    struct channel_end reader;
    struct channel_end writer;

    struct list messages;
    size_t message_count;
    size_t held_bytes;
    uint32_t buffer;   /* in messages */
    uint64_t credit;   /* the reader may be given so much */
    uint64_t window;   /* a windowed writer may send so much */
    bool writer_waits; /* another one was told to pause */
    uint64_t created_ms;
    uint64_t moved_ms; /* a held byte moved, or began to wait */
    struct loop_timer *timer;
    struct loop_notice work; /* deferred: opens the window once both ends are there */
    unsigned calls;          /* callbacks of ours on the stack */
    bool pumping;
};

struct channel_set {
    struct loop *loop;
    struct table *by_id;
    struct list channels;
    size_t count;
    size_t held_bytes;
    uint32_t untaken_ms;
    uint32_t stall_ms;
};

/* Life. */

static void channel_release(struct channel *channel)
{
    if (channel->calls == 0)
        free(channel);
}

static void message_drop(struct channel *channel, struct message *message)
{
    size_t left = message->size - message->taken;

    list_remove(&message->node);
    channel->message_count--;
    channel->held_bytes -= left;
    channel->set->held_bytes -= left;
    free(message);
}

/* Unknown from now on; attached ends have heard of it, or are the caller's business. */
static void channel_vanish(struct channel *channel)
{
    if (channel->state == CHANNEL_GONE)
        return;
    channel->state = CHANNEL_GONE;
    while (!list_empty(&channel->messages))
        message_drop(channel, LIST_ENTRY(channel->messages.next, struct message, node));
    (void)table_remove_text(channel->set->by_id, channel->refs.channel_id);
    list_remove(&channel->node);
    channel->set->count--;
    loop_notice_cancel(channel->set->loop, &channel->work);
    loop_timer_free(channel->timer);
    channel_release(channel);
}

static void end_tell_closed(struct channel_end *end, const struct channel_reason *reason)
{
    if (!end->attached)
        return;
    end->attached = false;
    end->events->closed(end->ctx, reason);
}

/* Tells both ends that are still attached; then the channel is gone. */
static void channel_close(struct channel *channel, enum channel_close close, struct span code,
                          struct span message)
{
    struct channel_reason reason = { .close = close, .code = code, .message = message };

    channel->calls++; /* a callback that detaches the other end must not free us */
    end_tell_closed(&channel->reader, &reason);
    end_tell_closed(&channel->writer, &reason);
    channel->calls--;
    if (channel->state == CHANNEL_GONE)
        channel_release(channel);
    else
        channel_vanish(channel);
}

static void channel_close_with(struct channel *channel, enum channel_close close,
                               const char *message)
{
    channel_close(channel, close, span_of_text("S218"), span_of_text(message));
}

/* Time. */

static uint64_t channel_due_ms(const struct channel *channel)
{
    bool untaken = !channel->reader.taken || !channel->writer.taken;

    if (untaken)
        return channel->created_ms + channel->set->untaken_ms;
    return channel->held_bytes > 0 ? channel->moved_ms + channel->set->stall_ms : UINT64_MAX;
}

static void channel_watch(struct channel *channel)
{
    uint64_t due_ms = channel_due_ms(channel);
    uint64_t now_ms = loop_now_ms(channel->set->loop);

    if (due_ms == UINT64_MAX || loop_timer_armed(channel->timer))
        return;
    loop_timer_arm(channel->timer, due_ms > now_ms ? due_ms - now_ms : 0);
}

static void on_timer(void *ctx)
{
    struct channel *channel = ctx;

    if (loop_now_ms(channel->set->loop) < channel_due_ms(channel)) {
        channel_watch(channel); /* something moved, or there is nothing to watch */
        return;
    }
    if (channel->reader.taken && channel->writer.taken)
        channel_close_with(channel, CHANNEL_CLOSE_ABORTED,
                           "the reader took nothing for too long");
    else
        channel_close_with(channel, CHANNEL_CLOSE_EXPIRED,
                           "the other end of the channel was not taken in time");
}

static void channel_moved(struct channel *channel)
{
    channel->moved_ms = loop_now_ms(channel->set->loop);
}

/* Windows of the writer. */

static void open_window(struct channel *channel)
{
    uint64_t used = channel->window + channel->held_bytes;
    uint64_t owed = used < CHANNEL_HELD_BYTES ? CHANNEL_HELD_BYTES - used : 0;

    if (!channel->reader.attached || owed == 0)
        return;
    if (owed < CHANNEL_HELD_BYTES / 4 && channel->window > 0)
        return; /* not worth a message yet */
    channel->window += owed;
    channel->writer.events->grant(channel->writer.ctx, owed);
}

static bool holds_enough(const struct channel *channel)
{
    return channel->held_bytes >= CHANNEL_HELD_BYTES ||
           channel->message_count >= channel->buffer;
}

static void wake_writer(struct channel *channel)
{
    if (!channel->writer_waits || channel->held_bytes > CHANNEL_HELD_BYTES / 2 ||
        channel->message_count > channel->buffer / 2)
        return;
    channel->writer_waits = false;
    channel->writer.events->grant(channel->writer.ctx, CHANNEL_HELD_BYTES);
}

static void refill_writer(struct channel *channel)
{
    if (channel->state != CHANNEL_OPEN || !channel->writer.attached)
        return;
    if (channel->writer.windowed)
        open_window(channel);
    else
        wake_writer(channel);
}

/* Towards the reader. */

/* How much of SIZE bytes may go to the reader now. */
static size_t portion(const struct channel *channel, size_t size)
{
    if (channel->reader.whole_messages)
        return channel->credit > 0 ? size : 0;
    if (size > ENVELOPE_DATA_MAX_BYTES)
        size = ENVELOPE_DATA_MAX_BYTES;
    return size < channel->credit ? size : (size_t)channel->credit;
}

static void spend_credit(struct channel *channel, size_t size)
{
    channel->credit -= size < channel->credit ? size : channel->credit;
    channel_moved(channel);
}

static void pump_text(struct channel *channel, struct message *own_message)
{
    const struct channel_end *reader = &channel->reader;

    spend_credit(channel, own_message->size);
    channel->message_count--;
    channel->held_bytes -= own_message->size;
    channel->set->held_bytes -= own_message->size;
    list_remove(&own_message->node);
    if (reader->events->text)
        reader->events->text(reader->ctx, own_message->data, own_message->size);
    free(own_message);
}

static void pump_data(struct channel *channel, struct message *message, size_t size)
{
    const struct channel_end *reader = &channel->reader;
    uint8_t *data = message->data + message->taken;
    bool last = message->taken + size == message->size;

    spend_credit(channel, size);
    message->taken += size;
    channel->held_bytes -= size;
    channel->set->held_bytes -= size;
    if (last) {
        list_remove(&message->node);
        channel->message_count--;
    }
    reader->events->data(reader->ctx, data, size);
    if (last)
        free(message); /* it is ours alone: the callback could not reach it */
}

/* One step; false: nothing more can go now. */
static bool pump_step(struct channel *channel)
{
    struct message *message;
    size_t size;

    if (channel->state == CHANNEL_GONE || !channel->reader.attached ||
        list_empty(&channel->messages))
        return false;
    message = LIST_ENTRY(channel->messages.next, struct message, node);
    if (message->is_text) {
        if (channel->credit == 0 && message->size > 0)
            return false;
        pump_text(channel, message);
        return true;
    }
    size = portion(channel, message->size - message->taken);
    if (size == 0)
        return false;
    pump_data(channel, message, size);
    return true;
}

/* Gives the reader what it may have, the writer what that made free, and both their end. */
static void channel_pump(struct channel *channel)
{
    if (channel->pumping)
        return; /* a callback of the pump below us: it goes on by itself */
    channel->pumping = true;
    channel->calls++;
    while (pump_step(channel))
        refill_writer(channel);
    if (channel->state != CHANNEL_GONE)
        refill_writer(channel);
    channel->calls--;
    channel->pumping = false;
    if (channel->state == CHANNEL_GONE)
        channel_release(channel);
    else if (channel->state == CHANNEL_ENDED && channel->reader.attached &&
             list_empty(&channel->messages))
        channel_close(channel, CHANNEL_CLOSE_CLEAN, (struct span){ 0 }, (struct span){ 0 });
    else
        channel_watch(channel);
}

static void on_work(void *ctx)
{
    struct channel *channel = ctx;

    refill_writer(channel);
}

void channel_grant(struct channel_end *reader, uint64_t bytes)
{
    struct channel *channel = reader->channel;

    if (__builtin_add_overflow(channel->credit, bytes, &channel->credit))
        channel->credit = UINT64_MAX;
    channel_pump(channel);
}

/* From the writer. */

static struct message *message_new(const uint8_t *data, size_t size, size_t capacity,
                                   bool is_text)
{
    struct message *message = malloc(sizeof(*message) + capacity);

    if (!message)
        return NULL;
    *message = (struct message){ .is_text = is_text, .size = size, .capacity = capacity };
    list_init(&message->node);
    if (size > 0)
        memcpy(message->data, data, size);
    return message;
}

/* A windowed writer's bytes have no boundaries: they join what is held last. */
static size_t append_to_last(struct channel *channel, const uint8_t *data, size_t size)
{
    struct message *last;
    size_t room;

    if (!channel->writer.windowed || list_empty(&channel->messages))
        return 0;
    last = LIST_ENTRY(channel->messages.previous, struct message, node);
    room = last->is_text ? 0 : last->capacity - last->size;
    if (size > room)
        size = room;
    memcpy(last->data + last->size, data, size);
    last->size += size;
    return size;
}

static int hold(struct channel *channel, const uint8_t *data, size_t size, bool is_text)
{
    size_t joined = is_text ? 0 : append_to_last(channel, data, size);
    size_t rest = size - joined;
    struct message *message;

    if (channel->held_bytes == 0)
        channel_moved(channel);
    channel->held_bytes += joined;
    channel->set->held_bytes += joined;
    if (rest == 0 && size > 0)
        return 0;
    message = message_new(data + joined, rest,
                          channel->writer.windowed && rest < BLOCK_BYTES ? BLOCK_BYTES : rest,
                          is_text);
    if (!message)
        return -ENOMEM;
    list_append(&channel->messages, &message->node);
    channel->message_count++;
    channel->held_bytes += rest;
    channel->set->held_bytes += rest;
    return 0;
}

/* Nothing is held: what the reader may have goes to it without a copy. How much went. */
static size_t hand_over(struct channel *channel, const uint8_t *data, size_t size)
{
    size_t given = 0;

    if (channel->pumping)
        return 0;
    channel->pumping = true;
    while (given < size && channel->state == CHANNEL_OPEN && channel->reader.attached &&
           list_empty(&channel->messages)) {
        size_t now = portion(channel, size - given);

        if (now == 0)
            break;
        spend_credit(channel, now);
        channel->reader.events->data(channel->reader.ctx, data + given, now);
        given += now;
    }
    channel->pumping = false;
    return given;
}

static int check_window(struct channel *channel, size_t size)
{
    size_t cost = channel->held_bytes + channel->message_count * sizeof(struct message) + size;

    if (!channel->writer.windowed)
        return cost > CHANNEL_HELD_BYTES + CHANNEL_OVERRUN_BYTES ? -EMSGSIZE : 0;
    if (size > channel->window)
        return -EMSGSIZE;
    channel->window -= size;
    return 0;
}

static int channel_take(struct channel *channel, const uint8_t *data, size_t size, bool is_text)
{
    size_t given = is_text ? 0 : hand_over(channel, data, size);

    if (channel->state != CHANNEL_OPEN)
        return 0; /* the reader left meanwhile; the writer has heard of it */
    if (given == size && !is_text)
        return 0;
    return hold(channel, data + given, size - given, is_text);
}

static int channel_send(struct channel_end *writer, const uint8_t *data, size_t size,
                        bool is_text)
{
    struct channel *channel = writer->channel;
    int result = check_window(channel, size);

    if (result < 0)
        return result;
    channel->calls++;
    result = channel_take(channel, data, size, is_text);
    if (result == 0 && channel->state != CHANNEL_GONE)
        channel_pump(channel);
    if (result == 0 && channel->state == CHANNEL_OPEN && !writer->windowed &&
        holds_enough(channel)) {
        channel->writer_waits = true;
        result = 1;
    }
    channel->calls--;
    if (channel->state == CHANNEL_GONE)
        channel_release(channel);
    return result;
}

int channel_write(struct channel_end *writer, const uint8_t *data, size_t size)
{
    return size > 0 ? channel_send(writer, data, size, false) : 0;
}

int channel_write_text(struct channel_end *writer, const uint8_t *text, size_t size)
{
    return channel_send(writer, text, size, true);
}

/* Detaching. */

void channel_finish(struct channel_end *writer)
{
    struct channel *channel = writer->channel;

    writer->attached = false;
    channel->state = CHANNEL_ENDED;
    channel_pump(channel);
}

void channel_abort(struct channel_end *end, struct span code, struct span message)
{
    end->attached = false;
    channel_close(end->channel, CHANNEL_CLOSE_ABORTED, code.data ? code : span_of_text("S218"),
                  message);
}

void channel_leave(struct channel_end *end)
{
    struct channel *channel = end->channel;
    bool is_writer = end == &channel->writer;

    channel_abort(end, (struct span){ 0 },
                  span_of_text(is_writer ? "the writer left without ending the stream"
                                         : "the reader left"));
}

/* Attaching. */

static struct channel *find(const struct channel_set *set, struct span id, struct span key)
{
    char text[CHANNEL_TEXT_SIZE];
    struct channel *channel;

    if (!id.data || id.size != CHANNEL_TEXT_SIZE - 1 || memchr(id.data, '\0', id.size))
        return NULL;
    memcpy(text, id.data, id.size);
    text[id.size] = '\0';
    channel = table_get_text(set->by_id, text);
    if (!channel || !span_equals_constant_time(key, channel->refs.access_key))
        return NULL;
    return channel;
}

int channel_attach(struct channel_set *set, const struct channel_attach *attach,
                   struct channel_end **ret_end)
{
    struct channel *channel = find(set, attach->channel_id, attach->access_key);
    struct channel_end *end;

    if (!channel)
        return -ENOENT;
    end = attach->direction == CHANNEL_READ ? &channel->reader : &channel->writer;
    if (end->taken)
        return -EBUSY;
    *end = (struct channel_end){
        .channel = channel,
        .taken = true,
        .attached = true,
        .windowed = attach->windowed,
        .whole_messages = attach->whole_messages,
        .events = attach->events,
        .ctx = attach->ctx,
    };
    channel_moved(channel); /* what waits is given its time from here */
    if (channel->reader.taken && channel->writer.taken)
        loop_timer_disarm(channel->timer);
    channel_watch(channel);
    loop_defer(set->loop, &channel->work);
    *ret_end = end;
    return 0;
}

/* Making. */

static int channel_register(struct channel *channel)
{
    struct channel_set *set = channel->set;
    int result = uuid_random(channel->refs.channel_id);

    if (result == 0)
        result = uuid_random(channel->refs.access_key);
    if (result == 0)
        result = loop_timer_new(set->loop, on_timer, channel, &channel->timer);
    if (result == 0)
        result = table_put_text(set->by_id, channel->refs.channel_id, channel);
    return result;
}

int channel_create(struct channel_set *set, uint32_t buffer, struct channel_refs *ret_refs)
{
    struct channel *channel;
    int result;

    assert(buffer <= CHANNEL_BUFFER_MAX);
    if (set->count == CHANNELS_MAX)
        return -EMFILE;
    channel = calloc(1, sizeof(*channel));
    if (!channel)
        return -ENOMEM;
    channel->set = set;
    channel->buffer = buffer ? buffer : CHANNEL_BUFFER_DEFAULT;
    channel->reader.channel = channel;
    channel->writer.channel = channel;
    channel->created_ms = loop_now_ms(set->loop);
    list_init(&channel->messages);
    loop_notice_init(&channel->work, on_work, channel);
    result = channel_register(channel);
    if (result < 0) {
        loop_timer_free(channel->timer);
        free(channel);
        return result;
    }
    list_append(&set->channels, &channel->node);
    set->count++;
    channel_watch(channel);
    *ret_refs = channel->refs;
    return 0;
}

int channel_set_new(struct loop *loop, struct channel_set **ret_set)
{
    struct channel_set *set = calloc(1, sizeof(*set));
    int result;

    if (!set)
        return -ENOMEM;
    *set = (struct channel_set){ .loop = loop };
    channel_set_times(set, CHANNEL_UNTAKEN_MS, CHANNEL_STALL_MS);
    list_init(&set->channels);
    result = table_new(&set->by_id);
    if (result < 0) {
        free(set);
        return result;
    }
    *ret_set = set;
    return 0;
}

void channel_set_free(struct channel_set *set)
{
    if (!set)
        return;
    while (!list_empty(&set->channels))
        channel_vanish(LIST_ENTRY(set->channels.next, struct channel, node));
    table_free(set->by_id);
    free(set);
}

void channel_set_times(struct channel_set *set, uint32_t untaken_ms, uint32_t stall_ms)
{
    set->untaken_ms = untaken_ms;
    set->stall_ms = stall_ms;
}

size_t channel_set_count(const struct channel_set *set)
{
    return set->count;
}

size_t channel_set_held_bytes(const struct channel_set *set)
{
    return set->held_bytes;
}
