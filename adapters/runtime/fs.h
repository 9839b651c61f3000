/* fs.h - what the operations of fs::* share: the way to their sandbox, and the errors of a lost
 * guest (contract 4.4, 8.1). The simple ones are in fs.c, those with bytes in fs_write.c,
 * fs_write_stream.c and fs_read.c. */
#pragma once

#include "error.h"
#include "request.h"
#include "sandbox.h"

/* From a request whose own checks are done to its sandbox: id S001, S002, S004; then, once the
 * sandbox is ready, the idle clock and BEGIN. Lives in its owner. */
struct fs_visit {
    struct request *request;
    struct sandbox *sandbox; /* one reference, from fs_enter() to fs_leave() */
    const char *path;        /* for messages; borrowed from the request's body */
    struct sandbox_wait boot;
    void (*begin)(void *ctx);
    void (*failed)(void *ctx, struct sandbox_error *err); /* S216: it did not become ready */
    void *ctx;
};

/* S001, S002, S004. Borrowed. */
int fs_find(struct request *request, const char *sandbox_id, struct sandbox **ret_sandbox,
            struct sandbox_error *err);
/* Calls BEGIN or FAILED once, perhaps from inside this call. */
void fs_enter(struct fs_visit *visit, struct sandbox *sandbox);
/* At the end of the operation, also one that waits still; refreshes the idle clock if it had
 * begun. */
void fs_leave(struct fs_visit *visit);

/* S216 with `shell client error: ` and why the guest was lost; ERR was zeroed. */
int fs_set_lost(const struct sandbox *sandbox, const char *path, const char *reason,
                struct sandbox_error *err);
/* What the guest said, as it goes to the caller: its own codes stay, S300 becomes S216. */
void fs_map_error(const char *path, struct sandbox_error *err);

/* Ends a request whose caller has left (contract 2.4: its reply is dropped), while what it
 * asked for may go on. PATH may be of its body. */
void fs_answer_nobody(struct request *request, const char *path);
