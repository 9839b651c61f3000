/* dial.c - see dial.h. The resolver may block for long, so it runs in a thread of its own,
 * which shares nothing with us but a lookup that the last of the two frees. */
#include "dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define URL_MAX_BYTES 96

/* What the resolver's thread works on. Two own it: the thread and the dial. */
struct lookup {
    struct loop *loop;
    char *host;
    struct loop_notice done; /* of the dial; cancelled when that ends first */
    pthread_mutex_t lock;
    bool abandoned; /* the dial is gone: nobody is told */
    int error;      /* of getaddrinfo() */
    struct addrinfo *found;
    atomic_int owners;
};

struct dial {
    struct loop *loop;
    uint16_t port;
    dial_done_fn done;
    void *ctx;
    struct lookup *lookup;
    char urls[DIAL_ADDRESSES_MAX][URL_MAX_BYTES];
    unsigned url_count;
    struct attempt {
        struct dial *dial;
        struct stream_dialer *dialer;
        bool failed;
    } attempts[DIAL_ADDRESSES_MAX];
    unsigned started;
    unsigned failed;
    int last_error;
    struct loop_timer *stagger;
};

/* The resolver. */

static void lookup_release(struct lookup *lookup)
{
    if (atomic_fetch_sub(&lookup->owners, 1) > 1)
        return;
    if (lookup->found)
        freeaddrinfo(lookup->found);
    (void)pthread_mutex_destroy(&lookup->lock); /* nobody can hold it any more */
    free(lookup->host);
    free(lookup);
}

static void *lookup_run(void *argument)
{
    static const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct lookup *lookup = argument;

    lookup->error = getaddrinfo(lookup->host, NULL, &hints, &lookup->found);
    (void)pthread_mutex_lock(&lookup->lock);
    if (!lookup->abandoned)
        loop_notify(lookup->loop, &lookup->done);
    (void)pthread_mutex_unlock(&lookup->lock);
    lookup_release(lookup);
    return NULL;
}

static void lookup_abandon(struct lookup *lookup)
{
    if (!lookup)
        return;
    (void)pthread_mutex_lock(&lookup->lock);
    lookup->abandoned = true;
    (void)pthread_mutex_unlock(&lookup->lock);
    loop_notice_cancel(lookup->loop, &lookup->done);
    lookup_release(lookup);
}

/* Attempts. */

static void finish(struct dial *dial, struct stream *own_stream, const char *why)
{
    loop_timer_disarm(dial->stagger);
    dial->done(dial->ctx, own_stream, why); /* may free: nothing follows */
}

static void start_next(struct dial *dial);

static void check_failed(struct dial *dial)
{
    if (dial->failed == dial->url_count)
        finish(dial, NULL, strerror(-dial->last_error));
    else if (dial->started < dial->url_count)
        start_next(dial);
}

static void on_dialed(void *ctx, int error, struct stream *own_stream)
{
    struct attempt *attempt = ctx;
    struct dial *dial = attempt->dial;

    if (error == 0) {
        finish(dial, own_stream, NULL);
        return;
    }
    attempt->failed = true;
    dial->failed++;
    dial->last_error = error;
    check_failed(dial);
}

static void start_next(struct dial *dial)
{
    unsigned index = dial->started++;
    struct attempt *attempt = &dial->attempts[index];
    int result;

    attempt->dial = dial;
    if (dial->started < dial->url_count)
        loop_timer_arm(dial->stagger, DIAL_STAGGER_MS);
    result = stream_dial(dial->loop, dial->urls[index], NULL, UINT32_MAX, on_dialed, attempt,
                         &attempt->dialer);
    if (result < 0)
        on_dialed(attempt, result, NULL);
}

static void on_stagger(void *ctx)
{
    struct dial *dial = ctx;

    if (dial->started < dial->url_count)
        start_next(dial);
}

static bool url_of(const struct addrinfo *info, uint16_t port, char ret_url[URL_MAX_BYTES])
{
    char text[INET6_ADDRSTRLEN];
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)info->ai_addr;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)info->ai_addr;

    if (info->ai_family == AF_INET) {
        (void)inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text)); /* fits */
        (void)snprintf(ret_url, URL_MAX_BYTES, "tcp://%s:%u", text, port);
    } else if (info->ai_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text)); /* fits */
        (void)snprintf(ret_url, URL_MAX_BYTES, "tcp://[%s]:%u", text, port);
    }
    return info->ai_family == AF_INET || info->ai_family == AF_INET6;
}

static void on_resolved(void *ctx)
{
    struct dial *dial = ctx;
    const struct addrinfo *info = dial->lookup->found;

    if (dial->lookup->error != 0) {
        finish(dial, NULL, gai_strerror(dial->lookup->error));
        return;
    }
    for (; info && dial->url_count < DIAL_ADDRESSES_MAX; info = info->ai_next)
        dial->url_count += url_of(info, dial->port, dial->urls[dial->url_count]);
    if (dial->url_count == 0)
        finish(dial, NULL, "the name has no address");
    else
        start_next(dial);
}

/* Life. */

static char *host_without_brackets(const char *host)
{
    size_t size = strlen(host);

    if (size > 2 && host[0] == '[' && host[size - 1] == ']')
        return strndup(host + 1, size - 2);
    return strdup(host);
}

static int lookup_start(struct dial *dial, const char *host)
{
    struct lookup *lookup = calloc(1, sizeof(*lookup));
    pthread_t thread;
    int result;

    if (!lookup)
        return -ENOMEM;
    lookup->loop = dial->loop;
    lookup->host = host_without_brackets(host);
    loop_notice_init(&lookup->done, on_resolved, dial);
    atomic_init(&lookup->owners, 2);
    result = -pthread_mutex_init(&lookup->lock, NULL);
    if (result == 0 && !lookup->host)
        result = -ENOMEM;
    if (result == 0)
        result = -pthread_create(&thread, NULL, lookup_run, lookup);
    if (result < 0) {
        free(lookup->host);
        free(lookup);
        return result;
    }
    (void)pthread_detach(thread); /* it was just made: cannot fail */
    dial->lookup = lookup;
    return 0;
}

int dial_new(struct loop *loop, const char *host, uint16_t port, dial_done_fn done, void *ctx,
             struct dial **ret_dial)
{
    _cleanup_(dial_freep)
    struct dial *dial = calloc(1, sizeof(*dial));
    int result;

    if (!dial)
        return -ENOMEM;
    dial->loop = loop;
    dial->port = port;
    dial->done = done;
    dial->ctx = ctx;
    result = loop_timer_new(loop, on_stagger, dial, &dial->stagger);
    if (result == 0)
        result = lookup_start(dial, host);
    if (result < 0)
        return result;
    *ret_dial = take_ptr(dial);
    return 0;
}

void dial_free(struct dial *dial)
{
    if (!dial)
        return;
    lookup_abandon(dial->lookup);
    for (unsigned i = 0; i < dial->started; i++)
        stream_dialer_free(dial->attempts[i].dialer);
    loop_timer_free(dial->stagger);
    free(dial);
}
