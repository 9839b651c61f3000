/* resolvers.h - a list of name servers, and which of them is to be asked: the first one, as
 * long as it answers. Pure.
 *
 * One that refuses, says that it cannot, or stays silent is passed over for a while, each
 * family by itself. That the guest asks again, and when, is the guest's: nothing is sent here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"

#define RESOLVERS_MAX 8u /* more than any resolver library looks at */
/* A question that waited so long is lost: less than the 5 s after which libraries ask again. */
#define RESOLVER_PATIENCE_NS 2000000000
#define RESOLVER_REST_NS 30000000000 /* then it is tried again */

struct resolver {
    struct address address;
    int64_t waiting_ns;    /* since when it owes an answer; 0: it does not */
    int64_t rest_until_ns; /* passed over until then */
};

struct resolvers {
    size_t count;
    struct resolver items[RESOLVERS_MAX];
};

/* Those of a resolv.conf, which is changed while it is read. What is known of the ones that
 * stay is kept. */
void resolvers_read(struct resolvers *resolvers, char *text);
bool resolvers_have(const struct resolvers *resolvers, struct address address);
/* Who is asked now, of that family; NULL: there is none. When all are passed over, the one for
 * the longest time. Borrowed. */
const struct resolver *resolvers_ask(struct resolvers *resolvers, bool v4, int64_t now_ns);
/* An answer of it came, or word that there will be none. */
void resolvers_answered(struct resolvers *resolvers, struct address address);
void resolvers_failed(struct resolvers *resolvers, struct address address, int64_t now_ns);
