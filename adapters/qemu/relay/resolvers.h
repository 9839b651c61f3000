/* resolvers.h - this machine's name servers, which may be anywhere, on its loopback too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "address.h"

#define RESOLVERS_MAX 8u /* more than any resolver library looks at */

struct resolvers {
    size_t count;
    struct address addresses[RESOLVERS_MAX];
};

/* Of a resolv.conf, which is changed while it is read. */
void resolvers_parse(char *text, struct resolvers *ret_resolvers);
/* Whether ADDRESS is one of those that the file names now, to a second. */
bool resolvers_have(struct address address);
