/* frames.h - Ethernet frames for tests. */
#pragma once

#include <stdint.h>
#include <string.h>

#define GUEST 0x0a00020fu /* 10.0.2.15 */
#define GATEWAY 0x0a000202u
#define NAME_SERVER 0x0a000203u

enum { FIN = 0x01, SYN = 0x02, RST = 0x04, PSH = 0x08, ACK = 0x10 }; /* of TCP */

struct ends {
    uint32_t source, destination;
    uint16_t source_port, destination_port;
};

static inline void put16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}

static inline void put32(uint8_t *to, uint32_t value)
{
    put16(to, value >> 16);
    put16(to + 2, value & 0xffff);
}

static inline uint32_t sum16(const uint8_t *data, size_t size, uint32_t sum)
{
    for (size_t i = 0; i < size; i++)
        sum += i % 2 ? data[i] : (uint32_t)data[i] << 8;
    return sum;
}

static inline uint16_t checksum(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

/* Anew, after its header was changed. */
static inline void frame_ip_sum(uint8_t *frame)
{
    uint8_t *ip = frame + 14;

    put16(ip + 10, 0);
    put16(ip + 10, checksum(sum16(ip, 20, 0)));
}

/* Ethernet and IPv4 around what stands at frame + 34 already; its size. */
static inline size_t frame_ip(uint8_t *frame, const struct ends *ends, uint8_t protocol,
                              size_t size)
{
    static const uint8_t macs[12] = {
        0x52, 0x55, 0x0a, 0, 2, 2, 0x52, 0x54, 0, 0x12, 0x34, 0x56
    };
    uint8_t *ip = frame + 14;

    memcpy(frame, macs, sizeof(macs));
    put16(frame + 12, 0x0800);
    memset(ip, 0, 20);
    ip[0] = 0x45;
    put16(ip + 2, (uint32_t)size + 20);
    ip[8] = 64;
    ip[9] = protocol;
    put32(ip + 12, ends->source);
    put32(ip + 16, ends->destination);
    frame_ip_sum(frame);
    return size + 34;
}

/* Ethernet and IPv6 around what stands at frame + 54 already; its size. */
static inline size_t frame_ip6(uint8_t *frame, const uint8_t source[16],
                               const uint8_t destination[16], uint8_t next, size_t size)
{
    uint8_t *ip = frame + 14;

    memset(frame, 0, 54);
    put16(frame + 12, 0x86dd);
    ip[0] = 0x60;
    put16(ip + 4, (uint32_t)size);
    ip[6] = next;
    ip[7] = 64;
    memcpy(ip + 8, source, 16);
    memcpy(ip + 24, destination, 16);
    return size + 54;
}

static inline void frame_ports(uint8_t *frame, const struct ends *ends, uint8_t protocol,
                               size_t size, size_t sum_at)
{
    uint8_t *body = frame + 34, pseudo[12];

    put16(body, ends->source_port);
    put16(body + 2, ends->destination_port);
    put32(pseudo, ends->source);
    put32(pseudo + 4, ends->destination);
    put16(pseudo + 8, protocol);
    put16(pseudo + 10, (uint32_t)size);
    put16(body + sum_at, checksum(sum16(body, size, sum16(pseudo, sizeof(pseudo), 0))));
}

static inline size_t frame_udp(uint8_t *frame, const struct ends *ends, const char *text)
{
    size_t size = 8 + strlen(text);

    memset(frame + 34, 0, 8);
    put16(frame + 38, (uint32_t)size);
    memcpy(frame + 42, text, strlen(text));
    frame_ports(frame, ends, 17, size, 6);
    return frame_ip(frame, ends, 17, size);
}

/* PAYLOAD bytes of no meaning. */
static inline size_t frame_tcp(uint8_t *frame, const struct ends *ends, uint32_t sequence,
                               uint32_t acknowledged, uint8_t flags, size_t payload)
{
    size_t size = 20 + payload;

    memset(frame + 34, 0, size);
    put32(frame + 38, sequence);
    put32(frame + 42, acknowledged);
    frame[46] = 5 << 4;
    frame[47] = flags;
    put16(frame + 48, 8192);
    frame_ports(frame, ends, 6, size, 16);
    return frame_ip(frame, ends, 6, size);
}
