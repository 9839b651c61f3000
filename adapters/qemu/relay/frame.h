/* frame.h - what an Ethernet frame holds, as far as the relay needs to know. Pure.
 *
 * Every length is checked against the bytes that are there: frames come from the guest. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum frame_kind {
    FRAME_OTHER, /* not for us */
    FRAME_ARP,
    FRAME_TCP, /* over IPv4, as is what follows; never a later fragment */
    FRAME_UDP,
    FRAME_IP, /* another protocol, or a later fragment */
    FRAME_KIND_MAX
};

enum { FRAME_TCP_SYN = 0x02, FRAME_TCP_ACK = 0x10 };

struct frame {
    enum frame_kind kind;
    uint32_t source, destination; /* IPv4, host order; 0 unless IP */
    uint16_t source_port, destination_port;
    uint32_t sequence, acknowledged; /* TCP */
    uint8_t flags;                   /* TCP */
    uint8_t protocol;                /* of IP */
    uint32_t payload;                /* TCP, UDP: bytes behind the header, as IP counts them */
};

/* A frame that is cut or contradicts itself is FRAME_OTHER. */
void frame_parse(const uint8_t *data, size_t size, struct frame *ret_frame);

/* Whether it goes where no sandbox may: this machine's own loopback, link-local addresses (the
 * metadata services of clouds), multicast and what is reserved; but for DHCP's broadcast. */
bool frame_denied(const struct frame *frame);
