/* frame.c - see frame.h. */
#include "frame.h"

#include "cleanup.h"

#define ETHERNET_BYTES 14u
#define IP_BYTES_MIN 20u
#define TCP_BYTES_MIN 20u
#define UDP_BYTES 8u

#define TYPE_IP 0x0800u
#define TYPE_ARP 0x0806u
#define PROTOCOL_TCP 6u
#define PROTOCOL_UDP 17u
#define FRAGMENT_OFFSET 0x1fffu

#define DHCP_SERVER_PORT 67u
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
    frame->source_port = read16(data);
    frame->destination_port = read16(data + 2);
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
    frame->source_port = read16(data);
    frame->destination_port = read16(data + 2);
    frame->payload = (uint32_t)(size - UDP_BYTES);
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
    frame->kind = FRAME_IP;
    frame->protocol = data[9];
    frame->source = read32(data + 12);
    frame->destination = read32(data + 16);
    if (read16(data + 6) & FRAGMENT_OFFSET)
        return;
    if (frame->protocol == PROTOCOL_TCP)
        parse_tcp(data + header, total - header, frame);
    else if (frame->protocol == PROTOCOL_UDP)
        parse_udp(data + header, total - header, frame);
}

void frame_parse(const uint8_t *data, size_t size, struct frame *ret_frame)
{
    *ret_frame = (struct frame){ .kind = FRAME_OTHER };
    if (size < ETHERNET_BYTES)
        return;
    if (read16(data + 12) == TYPE_ARP)
        ret_frame->kind = FRAME_ARP;
    else if (read16(data + 12) == TYPE_IP)
        parse_ip(data + ETHERNET_BYTES, size - ETHERNET_BYTES, ret_frame);
}

bool frame_denied(const struct frame *frame)
{
    static const struct {
        uint32_t address;
        unsigned bits;
    } rows[] = {
        { 0x00000000, 8 },  /* this network */
        { 0x7f000000, 8 },  /* loopback */
        { 0xa9fe0000, 16 }, /* link-local */
        { 0xe0000000, 4 },  /* multicast */
        { 0xf0000000, 4 },  /* reserved, broadcast */
    };

    if (frame->kind == FRAME_OTHER)
        return true;
    if (frame->kind == FRAME_ARP)
        return false;
    if (frame->kind == FRAME_UDP && frame->destination == BROADCAST &&
        frame->destination_port == DHCP_SERVER_PORT)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if ((frame->destination ^ rows[i].address) >> (32 - rows[i].bits) == 0)
            return true;
    return false;
}
