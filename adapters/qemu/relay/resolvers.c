/* resolvers.c - see resolvers.h. */
#include "resolvers.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "relay_timer.h"

#define PATH "/etc/resolv.conf"
#define FILE_BYTES_MAX 16384
#define FRESH_NS 1000000000

static void parse_line(char *line, struct resolvers *resolvers)
{
    char *rest, *word = strtok_r(line, " \t", &rest);
    char *address = word && strcmp(word, "nameserver") == 0 ? strtok_r(NULL, " \t\r", &rest)
                                                            : NULL;

    if (!address || resolvers->count == RESOLVERS_MAX)
        return;
    address[strcspn(address, "%")] = 0; /* the interface of a link-local one */
    if (address_parse(address, &resolvers->addresses[resolvers->count]) == 0)
        resolvers->count++;
}

void resolvers_parse(char *text, struct resolvers *ret_resolvers)
{
    char *rest;

    ret_resolvers->count = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        parse_line(line, ret_resolvers);
}

static void resolvers_read(struct resolvers *ret_resolvers)
{
    static char text[FILE_BYTES_MAX + 1];
    _cleanup_close_ int fd = open(PATH, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, text, FILE_BYTES_MAX);

    text[size > 0 ? size : 0] = 0;
    resolvers_parse(text, ret_resolvers);
}

bool resolvers_have(struct address address)
{
    static struct resolvers resolvers;
    static int64_t read_ns;
    int64_t now_ns = relay_clock_ns();

    if (read_ns == 0 || now_ns - read_ns >= FRESH_NS) {
        resolvers_read(&resolvers);
        read_ns = now_ns;
    }
    for (size_t i = 0; i < resolvers.count; i++) {
        if (address_equal(resolvers.addresses[i], address))
            return true;
    }
    return false;
}
