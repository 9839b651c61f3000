/* qmp.h - a client of QEMU's machine protocol over one socket.
 *
 * States: greeting (QEMU's first line awaited) -> ready (our capabilities are sent; commands go
 * out at once, also those queued before) -> closed. Every command completes exactly once: with
 * its answer, its error, or the reason why the connection ended. An answer that does not come
 * in time ends the connection. What comes is checked: QEMU may be in the guest's hands. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "loop.h"

struct qmp;

/* Exactly one of VALUE (borrowed) and ERROR (words) is not NULL. */
typedef void (*qmp_done_fn)(void *ctx, const json_t *value, const char *error);

struct qmp_events {
    /* DATA may be NULL. Both borrowed for the call. */
    void (*event)(void *ctx, const char *name, const json_t *data);
    /* Once, last; all commands have completed. */
    void (*closed)(void *ctx, const char *reason);
};

/* A callback may free the client. 0 or -errno; FD is consumed in any case. */
int qmp_new(struct loop *loop, int own_fd, const struct qmp_events *events, void *ctx,
            struct qmp **ret_qmp);

/* ARGUMENTS may be NULL: none. DONE may be NULL; it is never called from inside this call.
 * 0, -ENOMEM, or -EPIPE after the end: then DONE is not called. */
int qmp_execute(struct qmp *qmp, const char *command, json_t *own_arguments,
                uint32_t timeout_ms, qmp_done_fn done, void *ctx);

/* The same with a descriptor (borrowed) that goes along, for getfd. In state ready alone, and
 * one at a time: else -EAGAIN. */
int qmp_execute_with_fd(struct qmp *qmp, const char *command, json_t *own_arguments, int fd,
                        uint32_t timeout_ms, qmp_done_fn done, void *ctx);

/* No callback follows. */
void qmp_free(struct qmp *qmp);
DEFINE_CLEANUP(struct qmp *, qmp_free)
