/* frame.h - what an Ethernet frame holds, as far as the relay needs to know. Pure.
 *
 * Every length is checked against the bytes that are there: frames come from the guest. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"

/* Of IP in a frame, so that no datagram needs fragments: the largest that libslirp takes. The
 * guest's interface has the largest that there is (qemu_args.c). */
#define FRAME_MTU 65520u
/* Of TCP: the fewer frames, the faster. Four of them fit into libslirp's window, which does not
 * scale; with one alone each would wait for a delayed acknowledgement. */
#define FRAME_TCP_MTU 16384u

enum frame_kind {
    FRAME_OTHER, /* not for us */
    FRAME_ARP,
    FRAME_TCP, /* whole, as is what follows */
    FRAME_UDP,
    FRAME_ICMP, /* of either family; over IPv6 it finds neighbours */
    FRAME_IP,   /* another protocol, or a fragment */
    FRAME_KIND_MAX
};

enum { FRAME_TCP_SYN = 0x02, FRAME_TCP_ACK = 0x10 };

struct frame_end {
    struct address address; /* all 0 unless IP */
    uint16_t port;          /* 0 unless TCP or UDP */
};

struct frame {
    enum frame_kind kind;
    struct frame_end source, destination;
    uint32_t sequence, acknowledged; /* TCP */
    uint8_t flags;                   /* TCP */
    uint8_t protocol;                /* of IP */
    bool asks_neighbour;             /* ARP's request, IPv6's solicitation */
    uint32_t payload;                /* TCP, UDP: bytes behind the header, as IP counts them */
};

/* A frame that is cut or contradicts itself is FRAME_OTHER. */
void frame_parse(const uint8_t *data, size_t size, struct frame *ret_frame);

bool frame_is_dhcp(const struct frame *frame);

/* Whether the stack behind gets to see it: TCP and UDP to a single machine (but TFTP, which it
 * would serve itself), what finds neighbours, DHCP's broadcast. Not fragments, which it would
 * have to keep and search: a guest sends none, unless it makes its interface's MTU smaller than
 * a datagram. Where TCP and UDP may lead is judged when they lead there (gate.h), for the guest
 * is to be told. */
bool frame_wanted(const struct frame *frame);
