/* resolvers.c - see resolvers.h. */
#include "resolvers.h"

#include <string.h>

static struct resolver *resolver_find(struct resolvers *resolvers, struct address address)
{
    for (size_t i = 0; i < resolvers->count; i++) {
        if (address_equal(resolvers->items[i].address, address))
            return &resolvers->items[i];
    }
    return NULL;
}

bool resolvers_have(const struct resolvers *resolvers, struct address address)
{
    return resolver_find((struct resolvers *)resolvers, address) != NULL; /* only read */
}

/* The list. */

static void read_line(char *line, struct resolvers *old, struct resolvers *to)
{
    char *rest, *word = strtok_r(line, " \t", &rest);
    char *text = word && strcmp(word, "nameserver") == 0 ? strtok_r(NULL, " \t\r", &rest)
                                                         : NULL;
    const struct resolver *known;
    struct address address;

    if (!text || to->count == RESOLVERS_MAX)
        return;
    text[strcspn(text, "%")] = 0; /* the interface of a link-local one */
    if (address_parse(text, &address) < 0 || resolvers_have(to, address))
        return;
    known = resolver_find(old, address);
    to->items[to->count++] = known ? *known : (struct resolver){ .address = address };
}

void resolvers_read(struct resolvers *resolvers, char *text)
{
    struct resolvers old = *resolvers;
    char *rest;

    resolvers->count = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        read_line(line, &old, resolvers);
}

/* Who is asked. */

static void resolver_rest(struct resolver *resolver, int64_t now_ns)
{
    resolver->waiting_ns = 0;
    resolver->rest_until_ns = now_ns + RESOLVER_REST_NS;
}

static bool resolver_rests(struct resolver *resolver, int64_t now_ns)
{
    if (resolver->waiting_ns != 0 && now_ns - resolver->waiting_ns >= RESOLVER_PATIENCE_NS)
        resolver_rest(resolver, now_ns);
    return now_ns < resolver->rest_until_ns;
}

const struct resolver *resolvers_ask(struct resolvers *resolvers, bool v4, int64_t now_ns)
{
    struct resolver *asked = NULL;

    for (size_t i = 0; i < resolvers->count; i++) {
        struct resolver *resolver = &resolvers->items[i];

        if (address_is_v4(resolver->address) != v4)
            continue;
        if (!resolver_rests(resolver, now_ns)) {
            asked = resolver;
            break;
        }
        if (!asked || resolver->rest_until_ns < asked->rest_until_ns)
            asked = resolver;
    }
    if (asked && asked->waiting_ns == 0)
        asked->waiting_ns = now_ns;
    return asked;
}

void resolvers_answered(struct resolvers *resolvers, struct address address)
{
    struct resolver *resolver = resolver_find(resolvers, address);

    if (resolver)
        *resolver = (struct resolver){ .address = address };
}

void resolvers_failed(struct resolvers *resolvers, struct address address, int64_t now_ns)
{
    struct resolver *resolver = resolver_find(resolvers, address);

    if (resolver)
        resolver_rest(resolver, now_ns);
}
