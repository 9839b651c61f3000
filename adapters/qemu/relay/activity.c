/* activity.c - see activity.h.
 *
 * Flows are in sets of eight by a hash of their ends, both directions in one; within a set the
 * one used longest ago gives its place. */
#include "activity.h"

#include <stdint.h>
#include <stdlib.h>

#define WAYS 8u
#define SETS (ACTIVITY_FLOWS / WAYS)

/* One end is the lower of the two, whoever sends. */
struct flow {
    struct frame_end low, high; /* all 0: free */
    uint64_t used;
    bool known[2];            /* this end has acknowledged something */
    uint32_t acknowledged[2]; /* by this end, of the other's bytes */
};

struct activity {
    uint64_t clock; /* of `used` */
    struct flow flows[SETS][WAYS];
};

struct activity *activity_new(void)
{
    return calloc(1, sizeof(struct activity));
}

void activity_free(struct activity *activity)
{
    free(activity);
}

static bool end_equal(const struct frame_end *a, const struct frame_end *b)
{
    return address_equal(a->address, b->address) && a->port == b->port;
}

static bool end_below(const struct frame_end *a, const struct frame_end *b)
{
    if (a->address.high != b->address.high)
        return a->address.high < b->address.high;
    if (a->address.low != b->address.low)
        return a->address.low < b->address.low;
    return a->port < b->port;
}

static uint64_t end_hash(const struct frame_end *end)
{
    uint64_t mixed = (end->address.high ^ end->port) * 0x9e3779b97f4a7c15u;

    return (mixed ^ mixed >> 32 ^ end->address.low) * 0xc2b2ae3d27d4eb4fu;
}

static struct flow *flow_find(struct activity *activity, const struct frame_end *low,
                              const struct frame_end *high)
{
    uint64_t hash = end_hash(low) ^ end_hash(high) >> 7;
    struct flow *set = activity->flows[(hash >> 32) % SETS];
    struct flow *oldest = &set[0];

    for (unsigned way = 0; way < WAYS; way++) {
        if (end_equal(&set[way].low, low) && end_equal(&set[way].high, high))
            return &set[way];
        if (set[way].used < oldest->used)
            oldest = &set[way];
    }
    *oldest = (struct flow){ .low = *low, .high = *high };
    return oldest;
}

/* Sequence numbers wrap: A is after B when it is less than half the circle ahead of it. */
static bool is_after(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

static bool activity_tcp(struct activity *activity, const struct frame *frame)
{
    const struct frame_end *source = &frame->source, *destination = &frame->destination;
    bool from_low = end_below(source, destination);
    struct flow *flow = from_low ? flow_find(activity, source, destination)
                                 : flow_find(activity, destination, source);
    unsigned from = from_low ? 0 : 1, to = !from;
    bool is_new = frame->payload > 0;

    flow->used = ++activity->clock;
    if (frame->flags & FRAME_TCP_SYN) /* another connection of the same ends */
        flow->known[0] = flow->known[1] = false;
    if (is_new && flow->known[to])
        is_new = is_after(frame->sequence + frame->payload, flow->acknowledged[to]);
    if (frame->flags & FRAME_TCP_ACK &&
        (!flow->known[from] || is_after(frame->acknowledged, flow->acknowledged[from]))) {
        flow->known[from] = true;
        flow->acknowledged[from] = frame->acknowledged;
    }
    return is_new;
}

bool activity_frame(struct activity *activity, const struct frame *frame)
{
    if (frame->kind == FRAME_TCP)
        return activity_tcp(activity, frame);
    return frame->kind == FRAME_UDP && !frame_is_dhcp(frame);
}
