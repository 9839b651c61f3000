/* stream.c - bytes from one client to another through the router's channel, against a raw
 * AF_UNIX socket, turn by turn in one run. */
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "bench.h"

#define CHUNK_BYTES (64u * 1024)
#define WAIT_MS 60000

static void *raw_writer(void *ctx)
{
    const int *fd = ctx;
    static uint8_t chunk[CHUNK_BYTES];
    while (send(*fd, chunk, sizeof(chunk), MSG_NOSIGNAL) > 0)
        ;
    return NULL;
}

struct relay {
    int from, to;
};

/* Copies and does nothing else: what a program in between costs at least. */
static void *raw_relay(void *ctx)
{
    const struct relay *relay = ctx;
    static uint8_t chunk[CHUNK_BYTES];
    ssize_t size;
    while ((size = recv(relay->from, chunk, sizeof(chunk), 0)) > 0 &&
           send(relay->to, chunk, (size_t)size, MSG_NOSIGNAL) == size)
        ;
    (void)shutdown(relay->from, SHUT_RD); /* ends the writer by EPIPE */
    return NULL;
}

/* MiB/s of what FD gives, up to TOTAL; then no more is taken from it. */
static double raw_reader(int fd, size_t total)
{
    static uint8_t chunk[CHUNK_BYTES];
    double start = bench_now_ms();
    size_t got = 0;
    while (got < total) {
        ssize_t count = recv(fd, chunk, sizeof(chunk), 0);
        if (count <= 0)
            break;
        got += (size_t)count;
    }
    double ms = bench_now_ms() - start;
    (void)shutdown(fd, SHUT_RD); /* the same */
    return (double)got / 1048576 / ms * 1000;
}

/* 64 KiB writes through a socket pair. */
static double raw_socket(size_t total)
{
    int fds[2];
    pthread_t writer;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 ||
        pthread_create(&writer, NULL, raw_writer, &fds[0]) != 0)
        return 0;
    double rate = raw_reader(fds[1], total);
    (void)pthread_join(writer, NULL);
    (void)close(fds[0]); /* nothing is left in them */
    (void)close(fds[1]);
    return rate;
}

/* The same through two, with a thread between them. */
static double relayed_socket(size_t total)
{
    int first[2], second[2];
    pthread_t writer, between;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, first) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, second) < 0)
        return 0;
    struct relay relay = { .from = first[1], .to = second[0] };
    if (pthread_create(&writer, NULL, raw_writer, &first[0]) != 0 ||
        pthread_create(&between, NULL, raw_relay, &relay) != 0)
        return 0;
    double rate = raw_reader(second[1], total);
    (void)pthread_join(between, NULL);
    (void)pthread_join(writer, NULL);
    (void)close(first[0]); /* nothing is left in them */
    (void)close(first[1]);
    (void)close(second[0]);
    (void)close(second[1]);
    return rate;
}

struct writer {
    struct native_stream *stream;
    size_t total;
};

/* The other client of the channel, in a thread with a loop of its own. */
static void *channel_writer(void *ctx)
{
    struct writer *writer = ctx;
    static uint8_t chunk[CHUNK_BYTES];
    for (size_t sent = 0; sent < writer->total; sent += sizeof(chunk)) {
        if (native_stream_write(writer->stream, chunk, sizeof(chunk), WAIT_MS) < 0)
            return NULL;
    }
    (void)native_stream_close(writer->stream); /* the reader counts bytes */
    return NULL;
}

static int open_ends(struct native_client *reader, struct native_client *writer,
                     struct native_stream **ret_reader, struct native_stream **ret_writer)
{
    _cleanup_(buf_done)
    struct buf body = { 0 };
    if (bench_call(reader, "engine::channels::create", "{}", NULL, &body) < 0)
        return -1;
    json_t *refs = json_loadb((const char *)body.data, body.size, 0, NULL);
    json_t *ref = json_object_get(refs, "reader");
    const char *id = json_string_value(json_object_get(ref, "channel_id"));
    const char *key = json_string_value(json_object_get(ref, "access_key"));
    int ret = id && key && native_stream_open(reader, id, key, false, ret_reader) == 0 &&
                      native_stream_open(writer, id, key, true, ret_writer) == 0
                  ? 0
                  : -1;
    json_decref(refs);
    return ret;
}

/* MiB/s through the router, from one client to another. */
static double router_stream(const struct subject *subject, size_t total)
{
    _cleanup_(native_client_freep)
    struct native_client *reader = NULL;
    _cleanup_(native_client_freep)
    struct native_client *writer_client = NULL;
    struct native_stream *from = NULL;
    struct writer writer = { .total = total };
    static uint8_t chunk[CHUNK_BYTES];
    pthread_t thread;
    if (native_client_new(subject_url(subject), WAIT_MS, &reader) < 0 ||
        native_client_new(subject_url(subject), WAIT_MS, &writer_client) < 0 ||
        open_ends(reader, writer_client, &from, &writer.stream) < 0 ||
        pthread_create(&thread, NULL, channel_writer, &writer) != 0)
        return 0;
    double start = bench_now_ms();
    size_t got = 0;
    ssize_t count;
    while ((count = native_stream_read(from, chunk, sizeof(chunk), WAIT_MS)) > 0)
        got += (size_t)count;
    double ms = bench_now_ms() - start;
    (void)pthread_join(thread, NULL);
    if (count < 0)
        fprintf(stderr, "sandbox-bench: the stream broke after %zu bytes: %s %s\n", got,
                strerror((int)-count), native_stream_reason(from));
    return got == total ? (double)got / 1048576 / ms * 1000 : 0;
}

int bench_stream_rows(struct bench *bench, const struct subject *subject)
{
    struct samples raw = { 0 }, relayed = { 0 }, stream = { 0 };
    size_t total = (bench->quick ? 16u : 256u) * 1024 * 1024;
    for (int round = 0; round < (bench->quick ? 1 : 5); round++) {
        (void)samples_add(&raw, raw_socket(total));                /* fewer at worst */
        (void)samples_add(&relayed, relayed_socket(total));        /* the same */
        (void)samples_add(&stream, router_stream(subject, total)); /* the same */
    }
    report_add(&bench->report, "router.raw_socket", &raw, "MiB/s", NULL);
    report_add(&bench->report, "router.raw_relay", &relayed, "MiB/s", "router.raw_socket");
    report_add(&bench->report, "router.stream", &stream, "MiB/s", "router.raw_socket");
    int ret = samples_percentile(&stream, 1) > 0 ? 0 : -1;
    samples_done(&raw);
    samples_done(&relayed);
    samples_done(&stream);
    return ret;
}

int bench_stream(struct bench *bench)
{
    _cleanup_(subject_stopp)
    struct subject *subject = NULL;
    int ret = bench_subject(bench, bench->mock, NULL, &subject);
    return ret < 0 ? ret : bench_stream_rows(bench, subject);
}
