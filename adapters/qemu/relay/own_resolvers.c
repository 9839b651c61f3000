/* own_resolvers.c - see own_resolvers.h. */
#include "own_resolvers.h"

#include <fcntl.h>
#include <unistd.h>

#include "cleanup.h"
#include "relay_timer.h"
#include "resolvers.h"

#define PATH "/etc/resolv.conf"
#define FILE_BYTES_MAX 16384
#define FRESH_NS 1000000000

#define FLAGS_AT 2u /* in a DNS message */
#define FLAG_ANSWER 0x80u
#define CODE_MASK 0x0fu
enum dns_code { DNS_SERVER_FAILED = 2, DNS_NOT_IMPLEMENTED = 4, DNS_REFUSED = 5 };

static struct resolvers resolvers;
static bool is_asking;

static void refresh(int64_t now_ns)
{
    static char text[FILE_BYTES_MAX + 1];
    static int64_t read_ns;
    _cleanup_close_ int fd = -1;
    ssize_t size;

    if (read_ns != 0 && now_ns - read_ns < FRESH_NS)
        return;
    read_ns = now_ns;
    fd = open(PATH, O_RDONLY | O_CLOEXEC);
    size = fd < 0 ? 0 : read(fd, text, FILE_BYTES_MAX);
    text[size > 0 ? size : 0] = 0;
    resolvers_read(&resolvers, text);
}

void own_resolvers_set_asking(bool asking)
{
    is_asking = asking;
}

bool own_resolvers_ask(bool v4, struct address *ret_address)
{
    const struct resolver *resolver;
    int64_t now_ns;

    if (!is_asking)
        return false;
    now_ns = relay_clock_ns();
    refresh(now_ns);
    resolver = resolvers_ask(&resolvers, v4, now_ns);
    if (resolver)
        *ret_address = resolver->address;
    return resolver != NULL;
}

/* What a resolver library takes for a reason to ask the next one. */
static bool says_it_cannot(const uint8_t *message, size_t size)
{
    unsigned code = size > FLAGS_AT + 1 ? message[FLAGS_AT + 1] & CODE_MASK : 0;

    return code == DNS_SERVER_FAILED || code == DNS_NOT_IMPLEMENTED || code == DNS_REFUSED;
}

void own_resolvers_hear(struct address from, const void *data, size_t size)
{
    const uint8_t *message = data;

    if (size <= FLAGS_AT || !(message[FLAGS_AT] & FLAG_ANSWER))
        return;
    if (says_it_cannot(message, size))
        own_resolvers_fail(from);
    else
        resolvers_answered(&resolvers, from);
}

void own_resolvers_fail(struct address address)
{
    resolvers_failed(&resolvers, address, relay_clock_ns());
}
