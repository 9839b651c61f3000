/* channel.c - see channel.h: the life of channels, their ends and their times. */
#include "channel.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "channel_state.h"
#include "uuid.h"

/* Life. */

void channel_release(struct channel *channel)
{
    if (channel->calls == 0)
        free(channel);
}

/* Unknown from now on; attached ends have heard of it, or are the caller's business. */
static void channel_vanish(struct channel *channel)
{
    if (channel->state == CHANNEL_GONE)
        return;
    channel->state = CHANNEL_GONE;
    channel_drop_messages(channel);
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

void channel_close(struct channel *channel, enum channel_close close, struct span code,
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

void channel_watch(struct channel *channel)
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

void channel_moved(struct channel *channel)
{
    channel->moved_ms = loop_now_ms(channel->set->loop);
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

/* Both ends may be there now: the window opens. */
static void on_work(void *ctx)
{
    struct channel *channel = ctx;

    channel_refill_writer(channel);
}

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
