/* stream_state.h - what stream.c and stream_send.c share; nobody else includes it.
 *
 * stream.c owns a stream's life, what comes and the end; stream_send.c what goes. */
#pragma once

#include <stdbool.h>

#include "stream.h"
#include "stream_nng.h"

#define STREAM_LAST_WORDS_MS 1000 /* from a failed read or write to the end of reading */

enum stream_state {
    STREAM_NEW,       /* not started: nothing is read; sends are taken */
    STREAM_OPEN,      /* reads and writes; `closed` is still to come */
    STREAM_FINISHING, /* the queue is sent, what comes is dropped; `closed` is still to come */
    STREAM_ENDING,    /* the end is known and `closed` is queued */
    STREAM_CLOSED,    /* `closed` was called or never will be: only stream_free() is left */
};

struct stream {
    struct loop *loop;
    nng_stream *nng;
    const struct stream_events *events;
    void *ctx;
    enum stream_state state;
    int end_error; /* for `closed` */

    struct tls *tls;  /* NULL: what is carried is what the owner sees */
    struct buf plain; /* what came by it */

    nng_aio *attempt_aio; /* without a callback, see stream_attempt() */

    nng_aio *read_aio;
    struct loop_notice read_done; /* notified by nng's thread */
    struct loop_notice read_more; /* deferred: there is more than one turn may take */
    bool reading;                 /* a read is posted, or its notice is queued */
    bool last_read;               /* a read has failed, and the next failure is the end */
    int read_error;               /* of that read; 0: it was the peer's orderly end */
    bool paused;
    size_t unread; /* bytes of `read` not delivered because of a pause */
    uint8_t *read; /* of posted reads, STREAM_WAIT_BYTES */

    nng_aio *write_aio;
    struct loop_notice write_done; /* notified by nng's thread */
    struct loop_notice flush;      /* deferred: starts a write at the end of the turn */
    bool writing;                  /* a write is posted, or its notice is queued */
    int write_error;               /* no more is written, but the peer's last words are read */
    bool above_high_water;
    size_t queue_max_bytes;
    struct buf sending; /* with TLS: sealed */
    size_t sent;        /* of `sending` */
    struct buf next;

    struct loop_notice deliver; /* deferred: what a resume or an end has to tell */
    struct loop_timer *linger;
    unsigned calls; /* callbacks of ours on the stack: freeing waits for them */
    bool freed;     /* stream_free() came from one of them */
};

/* stream.c */
/* OPERATION is nng_stream_recv or nng_stream_send. What it can do at once it does here and now,
 * on the loop's thread: 0 and the bytes moved. NNG_EAGAIN: nothing at once, and then it is to
 * be posted. Else another error of nng. */
int stream_attempt(struct stream *stream, void (*operation)(nng_stream *, nng_aio *),
                   const nng_iov *parts, unsigned count, size_t *ret_size);
/* The first reason counts; bytes held back by a pause are lost with it. */
void stream_end(struct stream *stream, int error);

/* stream_send.c */
void stream_send_init(struct stream *stream);
int stream_send_allocate(struct stream *stream); /* 0 or -errno */
/* Writes what the socket takes, and has nng wait for it to take the rest. */
void stream_write(struct stream *stream);
void stream_shrink(struct buf *buf);          /* empties it; what is big is given back */
void stream_send_stop(struct stream *stream); /* nng knows no write of it any more */
void stream_send_done(struct stream *stream);
