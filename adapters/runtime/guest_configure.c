/* guest_configure.c - see guest_configure.h. */
#include "guest_configure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base64.h"
#include "codec.h"
#include "localhost.h"

#define SEED_BYTES 32
#define MAC_ID_DIGITS 10 /* of the id in a MAC */

int guest_configure_fill_seed(struct guest_configure *configure)
{
    uint8_t seed[SEED_BYTES];
    _cleanup_(buf_done)
    struct buf text = { 0 };
    ssize_t size = getrandom(seed, sizeof(seed), 0);

    if (size != (ssize_t)sizeof(seed))
        return size < 0 ? -errno : -EIO;
    if (base64_encode(&text, seed, sizeof(seed)) < 0)
        return -ENOMEM;
    explicit_bzero(seed, sizeof(seed));
    configure->seed = (char *)buf_take(&text, NULL);
    return configure->seed ? 0 : -ENOMEM;
}

/* The id without its hyphens is a machine-id; its start is the name of the host. */
static int fill_identity(struct guest_configure *configure, const char *id)
{
    char *digit;

    if (asprintf(&configure->hostname, "sandbox-%.8s", id) < 0) {
        configure->hostname = NULL;
        return -ENOMEM;
    }
    digit = configure->machine_id = calloc(1, strlen(id) + 1);
    if (!digit)
        return -ENOMEM;
    for (; *id; id++) {
        if (*id != '-')
            *digit++ = *id;
    }
    return 0;
}

static int fill_text(const char *from, char **ret_text, bool *ret_has)
{
    if (!from)
        return 0;
    *ret_text = strdup(from);
    *ret_has = *ret_text != NULL;
    return *ret_text ? 0 : -ENOMEM;
}

/* Locally administered, and as unique as the id (a UUID): clones of a template have one. */
static int fill_mac(struct guest_configure *configure, const char *id)
{
    char digits[MAC_ID_DIGITS + 1];
    size_t count = 0;

    for (; *id && count < MAC_ID_DIGITS; id++)
        if (*id != '-')
            digits[count++] = *id;
    memset(digits + count, '0', sizeof(digits) - count);
    if (asprintf(&configure->mac, "02:%.2s:%.2s:%.2s:%.2s:%.2s", digits, digits + 2, digits + 4,
                 digits + 6, digits + 8) < 0) {
        configure->mac = NULL;
        return -ENOMEM;
    }
    configure->has_mac = true;
    return 0;
}

static int fill_network(struct guest_configure *configure, const char *id,
                        const struct machine_network *network)
{
    if (!network)
        return 0;
    if (network->own_interface && fill_mac(configure, id) < 0)
        return -ENOMEM;
    if (fill_text(network->address, &configure->address, &configure->has_address) < 0 ||
        fill_text(network->gateway, &configure->gateway, &configure->has_gateway) < 0 ||
        fill_text(network->dns, &configure->dns, &configure->has_dns) < 0 ||
        fill_text(network->address6, &configure->address6, &configure->has_address6) < 0 ||
        fill_text(network->gateway6, &configure->gateway6, &configure->has_gateway6) < 0 ||
        fill_text(network->dns6, &configure->dns6, &configure->has_dns6) < 0)
        return -ENOMEM;
    return 0;
}

/* In place: ENTRY is NAME=VALUE, and only the value is looked at. */
static int rewrite_entry(char **entry, const char *gateway)
{
    const char *value = strchr(*entry, '=') + 1;
    _cleanup_free_ char *rewritten = localhost_rewrite(value, gateway);
    char *whole;

    if (!rewritten || asprintf(&whole, "%.*s%s", (int)(value - *entry), *entry, rewritten) < 0)
        return -ENOMEM;
    free(*entry);
    *entry = whole;
    return 0;
}

/* The image's layer, then the create's. */
static int fill_env(struct guest_configure *configure, const struct image *image,
                    const struct env *env, const struct machine_network *network)
{
    struct text_list *list = &configure->env;
    size_t create_first;
    int result = 0;

    configure->has_env = true;
    for (size_t i = 0; result == 0 && i < image->env.count; i++)
        result = text_list_append(list, image->env.items[i]);
    create_first = list->count;
    if (result == 0)
        result = env_append(env, list);
    if (!network || !network->gateway)
        return result;
    for (size_t i = create_first; result == 0 && i < list->count; i++)
        result = rewrite_entry(&list->items[i], network->gateway);
    return result;
}

int guest_configure_fill(struct guest_configure *configure, const char *id,
                         const struct image *image, const struct env *env,
                         const struct machine_network *network)
{
    int result = guest_configure_fill_seed(configure);

    if (result == 0)
        result = fill_identity(configure, id);
    if (result == 0)
        result = fill_text(image->workdir, &configure->workdir, &configure->has_workdir);
    if (result == 0)
        result = fill_network(configure, id, network);
    if (result == 0)
        result = fill_env(configure, image, env, network);
    return result;
}

void guest_configure_set_time(struct guest_configure *configure)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail with this clock */
    configure->realtime_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
