/* channel_flow.c - bytes through a channel, and the windows that bound them; see channel.h.
 *
 * What is held moves in channel_pump(), and only there. */
#include <errno.h>
#include <string.h>

#include "channel_state.h"

#define BLOCK_BYTES 4096u /* smallest memory for bytes of a windowed writer */

/* Windows of the writer. */

static void open_window(struct channel *channel)
{
    uint64_t used = channel->window + channel->held_bytes;
    uint64_t owed = used < CHANNEL_HELD_BYTES ? CHANNEL_HELD_BYTES - used : 0;

    if (!channel->reader.attached || owed == 0)
        return;
    if (owed < CHANNEL_HELD_BYTES / 2 && channel->window > 0)
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

void channel_refill_writer(struct channel *channel)
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

/* An adapter has no text: it is dropped, and costs none of the credit that only bytes bring
 * back. */
static bool reader_takes_text(const struct channel *channel)
{
    return channel->reader.events->text != NULL;
}

static void pump_text(struct channel *channel, struct message *own_message)
{
    const struct channel_end *reader = &channel->reader;

    if (reader_takes_text(channel))
        spend_credit(channel, own_message->size);
    channel->message_count--;
    channel->held_bytes -= own_message->size;
    channel->set->held_bytes -= own_message->size;
    list_remove(&own_message->node);
    if (reader_takes_text(channel))
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
        if (reader_takes_text(channel) && channel->credit == 0 && message->size > 0)
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

void channel_pump(struct channel *channel)
{
    if (channel->pumping)
        return; /* a callback of the pump below us: it goes on by itself */
    channel->pumping = true;
    channel->calls++;
    while (pump_step(channel))
        channel_refill_writer(channel);
    if (channel->state != CHANNEL_GONE)
        channel_refill_writer(channel);
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

/* The end. */

static void message_drop(struct channel *channel, struct message *message)
{
    size_t left = message->size - message->taken;

    list_remove(&message->node);
    channel->message_count--;
    channel->held_bytes -= left;
    channel->set->held_bytes -= left;
    free(message);
}

void channel_drop_messages(struct channel *channel)
{
    while (!list_empty(&channel->messages))
        message_drop(channel, LIST_ENTRY(channel->messages.next, struct message, node));
}
