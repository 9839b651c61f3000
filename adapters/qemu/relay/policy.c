/* policy.c - see policy.h. */
#include "policy.h"

#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"

#define V4(a, b, c, d)                                                                         \
    {                                                                                          \
        0, 0xffff00000000u | (uint64_t)(a) << 24 | (b) << 16 | (c) << 8 | (d)                  \
    }
#define V4_BITS(bits) (96 + (bits))
#define LOW_HALF_OF_V4 0xffffffffu
#define PORT_MAX 65535ul

/* The first row that fits counts; what none fits is public. */
static const struct range {
    struct address prefix;
    unsigned bits;
    enum address_kind kind;
} ranges[] = {
    /* Metadata and control services of clouds outside the link-local range. */
    { V4(100, 100, 100, 200), V4_BITS(32), ADDRESS_FORBIDDEN },
    { V4(168, 63, 129, 16), V4_BITS(32), ADDRESS_FORBIDDEN },
    { V4(192, 0, 0, 192), V4_BITS(32), ADDRESS_FORBIDDEN },
    { { 0xfd000ec200000000, 0x254 }, 128, ADDRESS_FORBIDDEN },
    { { 0xfd2000ce00000000, 0x254 }, 128, ADDRESS_FORBIDDEN },

    { V4(0, 0, 0, 0), V4_BITS(8), ADDRESS_FORBIDDEN }, /* this network */
    { V4(127, 0, 0, 0), V4_BITS(8), ADDRESS_LOOPBACK },
    { V4(169, 254, 0, 0), V4_BITS(16), ADDRESS_FORBIDDEN }, /* link-local */
    { V4(224, 0, 0, 0), V4_BITS(4), ADDRESS_FORBIDDEN },    /* multicast */
    { V4(240, 0, 0, 0), V4_BITS(4), ADDRESS_FORBIDDEN },    /* reserved, broadcast */
    { V4(10, 0, 0, 0), V4_BITS(8), ADDRESS_PRIVATE },
    { V4(100, 64, 0, 0), V4_BITS(10), ADDRESS_PRIVATE }, /* behind a carrier's translation */
    { V4(172, 16, 0, 0), V4_BITS(12), ADDRESS_PRIVATE },
    { V4(192, 0, 0, 0), V4_BITS(24), ADDRESS_PRIVATE }, /* protocol assignments */
    { V4(192, 168, 0, 0), V4_BITS(16), ADDRESS_PRIVATE },
    { V4(198, 18, 0, 0), V4_BITS(15), ADDRESS_PRIVATE }, /* measurements between networks */
    { V4(0, 0, 0, 0), V4_BITS(0), ADDRESS_PUBLIC },

    { { 0, 1 }, 128, ADDRESS_LOOPBACK },
    { { 0x0064ff9b00010000, 0 }, 48, ADDRESS_PRIVATE },   /* translation to IPv4, local */
    { { 0, 0 }, 8, ADDRESS_FORBIDDEN },                   /* unspecified, IPv4 in old forms */
    { { 0x0100000000000000, 0 }, 8, ADDRESS_FORBIDDEN },  /* discarded */
    { { 0x2001000000000000, 0 }, 32, ADDRESS_FORBIDDEN }, /* Teredo: hides an IPv4 address */
    { { 0xfc00000000000000, 0 }, 7, ADDRESS_PRIVATE },
    { { 0xfe80000000000000, 0 }, 10, ADDRESS_FORBIDDEN }, /* link-local */
    { { 0xfec0000000000000, 0 }, 10, ADDRESS_PRIVATE },   /* site-local, of old */
    { { 0xff00000000000000, 0 }, 8, ADDRESS_FORBIDDEN },  /* multicast */
};

/* Prefixes behind which an IPv4 address stands: what the address there is, this one is. */
static const struct embedding {
    struct address prefix;
    unsigned bits;
    bool in_high_half;
    unsigned shift;
} embeddings[] = {
    { { 0x0064ff9b00000000, 0 }, 96, false, 0 }, /* translation to IPv4 */
    { { 0x2002000000000000, 0 }, 16, true, 16 }, /* 6to4 */
};

static struct address address_unwrap(struct address address)
{
    for (size_t i = 0; i < ARRAY_SIZE(embeddings); i++) {
        const struct embedding *row = &embeddings[i];
        uint64_t half = row->in_high_half ? address.high : address.low;

        if (address_in(address, row->prefix, row->bits))
            return address_v4((uint32_t)(half >> row->shift & LOW_HALF_OF_V4));
    }
    return address;
}

enum address_kind address_kind(struct address address)
{
    address = address_unwrap(address);
    for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
        if (address_in(address, ranges[i].prefix, ranges[i].bits))
            return ranges[i].kind;
    }
    return ADDRESS_PUBLIC;
}

bool policy_allows(const struct policy *policy, struct address address, uint16_t port)
{
    switch (address_kind(address)) {
    case ADDRESS_PUBLIC:
        return true;
    case ADDRESS_PRIVATE:
        return policy->private_networks;
    case ADDRESS_LOOPBACK:
        return policy->host_ports[port / 64] >> port % 64 & 1;
    case ADDRESS_FORBIDDEN:
    case ADDRESS_KIND_MAX:
        break;
    }
    return false;
}

int policy_name_host_ports(struct policy *policy, const char *text)
{
    while (*text) {
        char *end;
        unsigned long port = strtoul(text, &end, 10);

        if (*text < '0' || *text > '9' || port == 0 || port > PORT_MAX || (*end && *end != ','))
            return -EINVAL;
        policy->host_ports[port / 64] |= 1ull << port % 64;
        text = *end ? end + 1 : end;
    }
    return 0;
}
