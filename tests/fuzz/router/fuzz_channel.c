/* fuzz_channel.c - any order of calls to channels, callbacks that call back included: no end is
 * told twice, nothing is delivered beyond a grant, and what is held stays within its limit. */
#include <assert.h>
#include <string.h>

#include "channel.h"

#define CHANNELS 4

struct side {
    struct channel_end *end; /* NULL: not attached, or gone */
    bool windowed;
    uint64_t grants;  /* reader: left of what was granted; writer: of its window */
    uint8_t reaction; /* what its callbacks do */
    struct side *other;
};

struct relay {
    struct channel_refs refs;
    struct side reader;
    struct side writer;
};

struct input {
    const uint8_t *data;
    size_t size;
};

static uint8_t take(struct input *input)
{
    if (input->size == 0)
        return 0;
    input->size--;
    return *input->data++;
}

static void react(struct side *side)
{
    struct side *target = side->reaction & 4 ? side->other : side;

    if (!target->end)
        return;
    switch (side->reaction & 3) {
    case 1:
        channel_leave(take_ptr(target->end));
        break;
    case 2:
        channel_abort(take_ptr(target->end), span_of_text("S216"), (struct span){ 0 });
        break;
    default:
        break;
    }
}

static void on_data(void *ctx, const uint8_t *data, size_t size)
{
    struct side *side = ctx;

    assert(side->end && size > 0);
    if (side->windowed) {
        assert(size <= side->grants && size <= ENVELOPE_DATA_MAX_BYTES);
        side->grants -= size;
    }
    react(side);
}

static void on_text(void *ctx, const uint8_t *text, size_t size)
{
    struct side *side = ctx;

    assert(side->end);
    if (side->windowed)
        side->grants -= size < side->grants ? size : side->grants;
    react(side);
}

static void on_grant(void *ctx, uint64_t bytes)
{
    struct side *side = ctx;

    assert(side->end);
    side->grants += bytes;
    assert(!side->windowed || side->grants <= CHANNEL_HELD_BYTES);
    react(side);
}

static void on_closed(void *ctx, const struct channel_reason *reason)
{
    struct side *side = ctx;

    assert(side->end);
    side->end = NULL;
}

static const struct channel_events events = {
    .data = on_data, .text = on_text, .grant = on_grant, .closed = on_closed
};

static void attach(struct channel_set *set, struct relay *relay, bool read, struct input *input)
{
    struct side *side = read ? &relay->reader : &relay->writer;
    uint8_t flags = take(input);
    struct channel_attach request = {
        .channel_id = span_of_text(relay->refs.channel_id),
        .access_key = span_of_text(relay->refs.access_key),
        .direction = read ? CHANNEL_READ : CHANNEL_WRITE,
        .windowed = flags & 8,
        .whole_messages = !(flags & 8),
        .events = &events,
        .ctx = side,
    };
    struct channel_end *end;

    if (channel_attach(set, &request, &end) < 0)
        return;
    assert(!side->end);
    side->end = end;
    side->windowed = flags & 8;
    side->reaction = flags & 7;
    side->grants = 0;
    side->other = read ? &relay->writer : &relay->reader;
}

static void write_some(struct relay *relay, struct input *input)
{
    static uint8_t block[128 * 1024];
    struct side *writer = &relay->writer;
    size_t size = (size_t)take(input) << (take(input) & 9);
    bool fits = !writer->windowed || size <= writer->grants;
    int result;

    if (!writer->end || size == 0)
        return;
    if (writer->windowed && fits)
        writer->grants -= size;
    result = channel_write(writer->end, block, size);
    assert(fits || result < 0);
    if (result < 0 && writer->end)
        channel_leave(take_ptr(writer->end));
}

/* Native writers, which have windows, write none. */
static void write_note(struct relay *relay)
{
    struct side *writer = &relay->writer;

    if (!writer->end || writer->windowed)
        return;
    if (channel_write_text(writer->end, (const uint8_t *)"note", 4) < 0 && writer->end)
        channel_leave(take_ptr(writer->end));
}

static void grant_some(struct relay *relay, struct input *input)
{
    struct side *reader = &relay->reader;
    uint64_t bytes = (uint64_t)take(input) << (take(input) & 9);

    if (!reader->end)
        return;
    reader->grants += bytes;
    channel_grant(reader->end, bytes);
}

static void step(struct loop *loop, struct channel_set *set, struct relay *relay,
                 struct input *input)
{
    switch (take(input) & 7) {
    case 0:
        attach(set, relay, true, input);
        break;
    case 1:
        attach(set, relay, false, input);
        break;
    case 2:
        write_some(relay, input);
        break;
    case 3:
        grant_some(relay, input);
        break;
    case 4:
        if (relay->writer.end)
            channel_finish(take_ptr(relay->writer.end));
        break;
    case 5:
        if (relay->reader.end)
            channel_leave(take_ptr(relay->reader.end));
        break;
    case 6:
        write_note(relay);
        break;
    default:
        (void)loop_turn(loop, 0);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = { .data = data, .size = size };
    struct relay relays[CHANNELS] = { 0 };
    struct channel_set *set;
    struct loop *loop;

    if (loop_new(&loop) < 0 || channel_set_new(loop, &set) < 0)
        return 0;
    for (unsigned i = 0; i < CHANNELS; i++) {
        if (channel_create(set, 1 + i * 3, &relays[i].refs) < 0)
            return 0;
    }
    while (input.size > 0) {
        step(loop, set, &relays[take(&input) % CHANNELS], &input);
        assert(channel_set_held_bytes(set) <=
               CHANNELS * (size_t)(CHANNEL_HELD_BYTES + CHANNEL_OVERRUN_BYTES));
    }
    channel_set_free(set);
    loop_free(loop);
    return 0;
}
