/* frame.c - see frame.h. */
#include "frame.h"

#include "cleanup.h"

#define ETHERNET_BYTES 14u
#define ARP_BYTES 28u
#define IP_BYTES_MIN 20u
#define IP6_BYTES 40u
#define TCP_BYTES_MIN 20u
#define UDP_BYTES 8u

#define TYPE_IP 0x0800u
#define TYPE_ARP 0x0806u
#define TYPE_IP6 0x86ddu
#define PROTOCOL_ICMP 1u
#define PROTOCOL_TCP 6u
#define PROTOCOL_UDP 17u
#define PROTOCOL_ICMP6 58u
#define ARP_REQUEST 1u
#define ICMP6_NEIGHBOUR_SOLICITATION 135u
#define FRAGMENT_OFFSET 0x1fffu
#define FRAGMENT_MORE 0x2000u

#define TFTP_PORT 69u /* libslirp would serve files, had it some: it need not even parse it */
#define DHCP_SERVER_PORT 67u
#define DHCP_CLIENT_PORT 68u
#define BROADCAST 0xffffffffu

static uint16_t read16(const uint8_t *data)
{
    return (uint16_t)(data[0] << 8 | data[1]);
}

static uint32_t read32(const uint8_t *data)
{
    return (uint32_t)read16(data) << 16 | read16(data + 2);
}

static void parse_tcp(const uint8_t *data, size_t size, struct frame *frame)
{
    size_t header;

    if (size < TCP_BYTES_MIN)
        return;
    header = (size_t)(data[12] >> 4) * 4;
    if (header < TCP_BYTES_MIN || header > size)
        return;
    frame->kind = FRAME_TCP;
    frame->source.port = read16(data);
    frame->destination.port = read16(data + 2);
    frame->sequence = read32(data + 4);
    frame->acknowledged = read32(data + 8);
    frame->flags = data[13];
    frame->payload = (uint32_t)(size - header);
}

static void parse_udp(const uint8_t *data, size_t size, struct frame *frame)
{
    if (size < UDP_BYTES)
        return;
    frame->kind = FRAME_UDP;
    frame->source.port = read16(data);
    frame->destination.port = read16(data + 2);
    frame->payload = (uint32_t)(size - UDP_BYTES);
}

static void parse_arp(const uint8_t *data, size_t size, struct frame *frame)
{
    if (size < ARP_BYTES)
        return;
    frame->kind = FRAME_ARP;
    frame->asks_neighbour = read16(data + 6) == ARP_REQUEST;
}

static void parse_icmp(const uint8_t *data, size_t size, struct frame *frame)
{
    frame->kind = FRAME_ICMP;
    frame->asks_neighbour = frame->protocol == PROTOCOL_ICMP6 && size > 0 &&
                            data[0] == ICMP6_NEIGHBOUR_SOLICITATION;
}

/* What IP carries. */
static void parse_protocol(const uint8_t *data, size_t size, struct frame *frame)
{
    frame->kind = FRAME_IP;
    if (frame->protocol == PROTOCOL_TCP)
        parse_tcp(data, size, frame);
    else if (frame->protocol == PROTOCOL_UDP)
        parse_udp(data, size, frame);
    else if (frame->protocol == PROTOCOL_ICMP || frame->protocol == PROTOCOL_ICMP6)
        parse_icmp(data, size, frame);
}

static void parse_ip(const uint8_t *data, size_t size, struct frame *frame)
{
    size_t header, total;

    if (size < IP_BYTES_MIN || data[0] >> 4 != 4)
        return;
    header = (size_t)(data[0] & 15) * 4;
    total = read16(data + 2); /* a short frame is padded: this counts */
    if (header < IP_BYTES_MIN || total < header || total > size)
        return;
    frame->protocol = data[9];
    frame->source.address = address_v4(read32(data + 12));
    frame->destination.address = address_v4(read32(data + 16));
    if (read16(data + 6) & (FRAGMENT_OFFSET | FRAGMENT_MORE))
        frame->kind = FRAME_IP;
    else
        parse_protocol(data + header, total - header, frame);
}

/* Extension headers, fragments among them, are another protocol: libslirp takes none. */
static void parse_ip6(const uint8_t *data, size_t size, struct frame *frame)
{
    size_t payload;

    if (size < IP6_BYTES || data[0] >> 4 != 6)
        return;
    payload = read16(data + 4);
    if (payload > size - IP6_BYTES)
        return;
    frame->protocol = data[6];
    frame->source.address = address_v6(data + 8);
    frame->destination.address = address_v6(data + 24);
    parse_protocol(data + IP6_BYTES, payload, frame);
}

void frame_parse(const uint8_t *data, size_t size, struct frame *ret_frame)
{
    *ret_frame = (struct frame){ .kind = FRAME_OTHER };
    if (size < ETHERNET_BYTES)
        return;
    if (read16(data + 12) == TYPE_ARP)
        parse_arp(data + ETHERNET_BYTES, size - ETHERNET_BYTES, ret_frame);
    else if (read16(data + 12) == TYPE_IP)
        parse_ip(data + ETHERNET_BYTES, size - ETHERNET_BYTES, ret_frame);
    else if (read16(data + 12) == TYPE_IP6)
        parse_ip6(data + ETHERNET_BYTES, size - ETHERNET_BYTES, ret_frame);
}

bool frame_is_dhcp(const struct frame *frame)
{
    uint16_t from = frame->source.port, to = frame->destination.port;

    return frame->kind == FRAME_UDP && ((from == DHCP_SERVER_PORT && to == DHCP_CLIENT_PORT) ||
                                        (from == DHCP_CLIENT_PORT && to == DHCP_SERVER_PORT));
}

/* Loopback of its own, groups, nobody: no single machine that a frame could be for. */
static bool is_single_machine(struct address address)
{
    static const struct {
        struct address prefix;
        unsigned bits;
    } rows[] = {
        { { 0, 0xffff00000000u }, 96 + 8 }, { { 0, 0xffff7f000000u }, 96 + 8 },
        { { 0, 0xffffe0000000u }, 96 + 3 }, { { 0, 0 }, 127 },
        { { 0xff00000000000000u, 0 }, 8 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (address_in(address, rows[i].prefix, rows[i].bits))
            return false;
    }
    return true;
}

bool frame_wanted(const struct frame *frame)
{
    switch (frame->kind) {
    case FRAME_ARP:
    case FRAME_ICMP:
        return true;
    case FRAME_UDP:
        if (frame_is_dhcp(frame) &&
            address_equal(frame->destination.address, address_v4(BROADCAST)))
            return true;
        return frame->destination.port != TFTP_PORT &&
               is_single_machine(frame->destination.address);
    case FRAME_TCP:
        return is_single_machine(frame->destination.address);
    case FRAME_IP:
    case FRAME_OTHER:
    case FRAME_KIND_MAX:
        break;
    }
    return false;
}
