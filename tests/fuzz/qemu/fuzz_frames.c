/* Frames of a guest, a length byte ahead of each: parsed, judged, counted. What is parsed never
 * holds more than came; what is no frame of ours goes nowhere. */
#include <stdint.h>
#include <stdlib.h>

#include "activity.h"
#include "frame.h"
#include "policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* TCP and UDP lead to an address that policy.h has a word for, and never to a group. */
static bool is_for_us(const struct frame *frame)
{
    enum address_kind kind = address_kind(frame->destination.address);

    if (frame->kind == FRAME_OTHER || kind >= ADDRESS_KIND_MAX)
        return false;
    return (frame->kind != FRAME_TCP && frame->kind != FRAME_UDP) || frame_is_dhcp(frame) ||
           frame->destination.address.high >> 56 != 0xff;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct activity *activity = activity_new();

    while (activity && size > 1) {
        size_t part = data[0] < size - 1 ? data[0] : size - 1;
        struct frame frame;

        frame_parse(data + 1, part, &frame);
        if (frame.kind >= FRAME_KIND_MAX || frame.payload > part)
            abort();
        if (frame_wanted(&frame) && !is_for_us(&frame))
            abort();
        if (activity_frame(activity, &frame) && frame.kind != FRAME_TCP &&
            frame.kind != FRAME_UDP)
            abort();
        data += 1 + part;
        size -= 1 + part;
    }
    activity_free(activity);
    return 0;
}
