/* test_frames.c - frames, where they may go, and what counts as activity (contract 10). */
#include "frames.h"

#include "activity.h"
#include "frame.h"
#include "unit.h"

static const struct ends out = { GUEST, 0x5db8d822, 40000, 80 };
static const struct ends in = { 0x5db8d822, GUEST, 80, 40000 };

static uint8_t data[2048];

static struct frame parse(size_t size)
{
    struct frame frame;

    frame_parse(data, size, &frame);
    return frame;
}

START_TEST(test_parse)
{
    struct frame frame = parse(frame_tcp(data, &out, 7, 9, ACK | PSH, 100));

    ck_assert_int_eq(frame.kind, FRAME_TCP);
    ck_assert(address_equal(frame.source.address, address_v4(out.source)));
    ck_assert(address_equal(frame.destination.address, address_v4(out.destination)));
    ck_assert_uint_eq(frame.source.port, 40000);
    ck_assert_uint_eq(frame.destination.port, 80);
    ck_assert_uint_eq(frame.sequence, 7);
    ck_assert_uint_eq(frame.acknowledged, 9);
    ck_assert_uint_eq(frame.payload, 100);
    frame = parse(frame_udp(data, &out, "hello"));
    ck_assert_int_eq(frame.kind, FRAME_UDP);
    ck_assert_uint_eq(frame.payload, 5);
    put16(data + 12, 0x0806);
    ck_assert_int_eq(parse(42).kind, FRAME_ARP);
    put16(data + 20, 2);
    ck_assert(!parse(42).asks_neighbour);
    put16(data + 20, 1);
    ck_assert(parse(42).asks_neighbour);
    ck_assert_int_eq(parse(41).kind, FRAME_OTHER);
    put16(data + 12, 0x86dd);
    ck_assert_int_eq(parse(42).kind, FRAME_OTHER);
}
END_TEST

static const uint8_t here6[16] = { 0xfd, 0x5a, [15] = 15 };
static const uint8_t there6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 };

START_TEST(test_parse_ipv6)
{
    struct frame frame;
    size_t size;

    (void)frame_tcp(data, &out, 7, 9, ACK | PSH, 100);
    memmove(data + 54, data + 34, 120);
    size = frame_ip6(data, here6, there6, 6, 120);
    frame = parse(size + 4); /* padded */
    ck_assert_int_eq(frame.kind, FRAME_TCP);
    ck_assert(address_equal(frame.source.address, address_v6(here6)));
    ck_assert(address_equal(frame.destination.address, address_v6(there6)));
    ck_assert_uint_eq(frame.destination.port, 80);
    ck_assert_uint_eq(frame.payload, 100);
    for (size_t cut = 0; cut < size; cut++)
        ck_assert_int_eq(parse(cut).kind, FRAME_OTHER);
    data[20] = 44; /* a fragment's header */
    ck_assert_int_eq(parse(size).kind, FRAME_IP);
    data[20] = 58;
    ck_assert_int_eq(parse(size).kind, FRAME_ICMP);
    data[54] = 136;
    ck_assert(!parse(size).asks_neighbour);
    data[54] = 135;
    ck_assert(parse(size).asks_neighbour);
    data[14] = 0x45; /* version 4 in a frame of version 6 */
    ck_assert_int_eq(parse(size).kind, FRAME_OTHER);
}
END_TEST

/* A bare ACK is padded to 60 bytes on a wire: the padding is no payload. */
START_TEST(test_padding)
{
    ck_assert_uint_eq(frame_tcp(data, &out, 7, 9, ACK, 0), 54);
    ck_assert_uint_eq(parse(60).payload, 0);
}
END_TEST

START_TEST(test_cut_and_contradicting)
{
    size_t size = frame_tcp(data, &out, 7, 9, ACK, 100);

    for (size_t cut = 0; cut < size; cut++)
        ck_assert_int_eq(parse(cut).kind, FRAME_OTHER);
    data[14] = 0x44; /* a header shorter than a header */
    ck_assert_int_eq(parse(size).kind, FRAME_OTHER);
    data[14] = 0x65; /* version 6 in a frame of version 4 */
    ck_assert_int_eq(parse(size).kind, FRAME_OTHER);
    size = frame_tcp(data, &out, 7, 9, ACK, 100);
    put16(data + 16, 19); /* in all less than the header */
    ck_assert_int_eq(parse(size).kind, FRAME_OTHER);
    size = frame_tcp(data, &out, 7, 9, ACK, 100);
    data[46] = 4 << 4; /* TCP's header too short, and too long */
    ck_assert_int_eq(parse(size).kind, FRAME_IP);
    size = frame_tcp(data, &out, 7, 9, ACK, 0);
    data[46] = 6 << 4;
    ck_assert_int_eq(parse(size).kind, FRAME_IP);
    size = frame_udp(data, &out, "hello");
    put16(data + 20, 100); /* a later fragment has no ports */
    ck_assert_int_eq(parse(size).kind, FRAME_IP);
}
END_TEST

/* What is for no single machine ends here; where the rest may go is not asked here. */
START_TEST(test_wanted)
{
    static const struct {
        uint32_t address;
        bool wanted;
    } rows[] = {
        { 0x7f000001, false }, { 0x7fffffff, false }, { 0x00000000, false },
        { 0x00ffffff, false }, { 0xe0000001, false }, { 0xffffffff, false },
        { 0xf0000001, false }, { GATEWAY, true },     { NAME_SERVER, true },
        { 0x08080808, true },  { 0xa9fea9fe, true },  { 0x80000000, true },
    };
    struct ends ends = out;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct frame frame;

        ends.destination = rows[i].address;
        frame = parse(frame_udp(data, &ends, "x"));
        ck_assert_msg(frame_wanted(&frame) == rows[i].wanted, "%08x", rows[i].address);
        frame = parse(frame_tcp(data, &ends, 0, 0, SYN, 0));
        ck_assert_msg(frame_wanted(&frame) == rows[i].wanted, "%08x", rows[i].address);
    }
}
END_TEST

static bool wanted6(const uint8_t destination[16], uint8_t next)
{
    struct frame frame;

    memset(data + 54, 0, 20);
    data[54 + 12] = 5 << 4;
    frame = parse(frame_ip6(data, here6, destination, next, 20));
    return frame_wanted(&frame);
}

START_TEST(test_wanted_ipv6)
{
    static const uint8_t group[16] = { 0xff, 0x02, [15] = 1 }, nobody[16],
                         loopback[16] = { [15] = 1 };
    static const uint8_t hidden[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };

    ck_assert(wanted6(there6, 6));
    ck_assert(wanted6(there6, 17));
    ck_assert(wanted6(group, 58)); /* who is a neighbour */
    ck_assert(!wanted6(group, 17));
    ck_assert(!wanted6(nobody, 6));
    ck_assert(!wanted6(loopback, 17));
    ck_assert(!wanted6(hidden, 6));
    ck_assert(!wanted6(there6, 44));
}
END_TEST

START_TEST(test_tftp_is_not_wanted)
{
    struct ends ends = { GUEST, GATEWAY, 5000, 69 };
    struct frame frame = parse(frame_udp(data, &ends, "file"));

    ck_assert(!frame_wanted(&frame));
    frame = parse(frame_tcp(data, &ends, 0, 0, SYN, 0));
    ck_assert(frame_wanted(&frame)); /* a port as any other */
}
END_TEST

START_TEST(test_fragments_are_not_wanted)
{
    size_t size = frame_udp(data, &out, "hello");
    struct frame frame;

    put16(data + 20, 0x2000); /* the first */
    frame = parse(size);
    ck_assert_int_eq(frame.kind, FRAME_IP);
    ck_assert(!frame_wanted(&frame));
    put16(data + 20, 100); /* the last */
    frame = parse(size);
    ck_assert(!frame_wanted(&frame));
    put16(data + 20, 0x4000); /* says that it may not be cut */
    frame = parse(size);
    ck_assert_int_eq(frame.kind, FRAME_UDP);
}
END_TEST

START_TEST(test_dhcp_may_be_asked)
{
    const struct ends dhcp = { 0, 0xffffffff, 68, 67 };
    struct activity *activity = activity_new();
    struct frame frame = parse(frame_udp(data, &dhcp, "discover"));

    ck_assert(frame_wanted(&frame));
    ck_assert(!activity_frame(activity, &frame));
    activity_free(activity);
}
END_TEST

static bool counts(struct activity *activity, size_t size)
{
    struct frame frame = parse(size);

    return activity_frame(activity, &frame);
}

static bool tcp(struct activity *activity, const struct ends *ends, uint32_t sequence,
                uint32_t acknowledged, uint8_t flags, size_t payload)
{
    return counts(activity, frame_tcp(data, ends, sequence, acknowledged, flags, payload));
}

START_TEST(test_tcp_payload)
{
    struct activity *activity = activity_new();

    ck_assert(!tcp(activity, &out, 99, 0, SYN, 0));
    ck_assert(!tcp(activity, &in, 499, 100, SYN | ACK, 0));
    ck_assert(!tcp(activity, &out, 100, 500, ACK, 0));
    ck_assert(tcp(activity, &out, 100, 500, ACK | PSH, 10)); /* the request */
    ck_assert(tcp(activity, &out, 100, 500, ACK | PSH, 10)); /* again: not acknowledged yet */
    ck_assert(!tcp(activity, &in, 500, 110, ACK, 0));
    ck_assert(!tcp(activity, &out, 100, 500, ACK | PSH, 10)); /* again, in vain */
    ck_assert(tcp(activity, &in, 500, 110, ACK | PSH, 1000)); /* the answer */
    ck_assert(!tcp(activity, &out, 110, 1500, ACK, 0));
    ck_assert(!tcp(activity, &in, 1499, 110, ACK, 1)); /* keep-alive with an old byte */
    ck_assert(!tcp(activity, &in, 1499, 110, ACK, 0)); /* and without */
    ck_assert(tcp(activity, &in, 1490, 110, ACK, 11)); /* old bytes and one new */
    ck_assert(!tcp(activity, &in, 1501, 110, FIN | ACK, 0));
    ck_assert(!tcp(activity, &out, 110, 1502, RST, 0));
    activity_free(activity);
}
END_TEST

START_TEST(test_sequence_numbers_wrap)
{
    struct activity *activity = activity_new();

    ck_assert(!tcp(activity, &in, 0, 0xfffffff0, ACK, 0));
    ck_assert(tcp(activity, &out, 0xfffffff0, 0, ACK, 32)); /* to 16 */
    ck_assert(!tcp(activity, &in, 0, 16, ACK, 0));
    ck_assert(!tcp(activity, &out, 15, 0, ACK, 1));
    ck_assert(tcp(activity, &out, 16, 0, ACK, 1));
    activity_free(activity);
}
END_TEST

/* The same ends again: what the first connection acknowledged says nothing of the second. */
START_TEST(test_ends_used_again)
{
    struct activity *activity = activity_new();

    ck_assert(!tcp(activity, &in, 0, 2000000000, ACK, 0));
    ck_assert(!tcp(activity, &out, 1999999999, 0, SYN, 0));
    ck_assert(!tcp(activity, &in, 7, 1000, SYN | ACK, 0));
    ck_assert(tcp(activity, &out, 1000, 8, ACK, 5));
    activity_free(activity);
}
END_TEST

START_TEST(test_udp_and_others)
{
    const struct ends dns = { GUEST, 0x0a000203, 5000, 53 };
    struct activity *activity = activity_new();
    size_t size;

    ck_assert(counts(activity, frame_udp(data, &dns, "query")));
    ck_assert(counts(activity, frame_udp(data, &out, "")));
    memset(data + 34, 0, 8);
    size = frame_ip(data, &out, 1, 8); /* ICMP */
    ck_assert(!counts(activity, size));
    put16(data + 12, 0x0806);
    ck_assert(!counts(activity, size)); /* ARP */
    activity_free(activity);
}
END_TEST

/* More connections than are remembered: old ones are forgotten, new ones still judged. */
START_TEST(test_many_connections)
{
    struct activity *activity = activity_new();

    for (unsigned i = 0; i < 20 * ACTIVITY_FLOWS; i++) {
        const struct ends ends = { GUEST, 0x08000000 + i / 60000, (uint16_t)(1024 + i % 60000),
                                   80 };
        const struct ends back = { ends.destination, GUEST, 80, ends.source_port };

        ck_assert(!tcp(activity, &back, 0, 100, ACK, 0));
        if (!tcp(activity, &ends, 100, 0, ACK, 1) || tcp(activity, &ends, 99, 0, ACK, 1))
            ck_abort_msg("connection %u", i);
    }
    activity_free(activity);
}
END_TEST

UNIT_MAIN("qemu_frames", test_parse, test_parse_ipv6, test_padding, test_cut_and_contradicting,
          test_wanted, test_wanted_ipv6, test_tftp_is_not_wanted, test_fragments_are_not_wanted,
          test_dhcp_may_be_asked, test_tcp_payload, test_sequence_numbers_wrap,
          test_ends_used_again, test_udp_and_others, test_many_connections)
