/* agent_link.h - the host's end of the guest agent's channel (docs/agent-protocol.md).
 *
 * Everything that comes is hostile: kinds, ids, sizes and credit are checked; any breach ends
 * the link with a reason. Memory is bounded by one frame and the windows. */
#pragma once

#include "error.h"
#include "loop.h"
#include "tables.h"

struct agent_link;
struct agent_call;

/* States: greeting (HELLO awaited) -> greeted -> configuring -> ready -> closed. */
struct agent_link_events {
    void (*greeted)(void *ctx, const struct guest_hello *hello);
    void (*ready)(void *ctx);
    /* No frame for 15 s although PINGs were sent; then `awake` when one comes again. */
    void (*silent)(void *ctx);
    void (*awake)(void *ctx);
    /* Once, last: all calls have failed before. */
    void (*closed)(void *ctx, const char *reason);
};

int agent_link_new(struct loop *loop, int own_fd, const struct agent_link_events *events,
                   void *ctx, struct agent_link **ret_link);
void agent_link_configure(struct agent_link *link, const struct guest_configure *configure);
void agent_link_free(struct agent_link *link);

/* ended: exactly one of reply (struct of the operation's reply type, borrowed) and err is not
 * NULL. err S216-like transport failures have code S300 and `lost` true: the operation maps
 * them. */
struct agent_call_events {
    void (*head)(void *ctx, const void *head); /* fs::read */
    void (*data)(void *ctx, unsigned stream, const uint8_t *data, size_t size);
    void (*end)(void *ctx, unsigned stream, const char *abort_reason); /* NULL: clean */
    void (*writable)(void *ctx, unsigned stream);                      /* window opened */
    void (*ended)(void *ctx, const void *reply, struct sandbox_error *err, bool lost);
};

int agent_call(struct agent_link *link, enum guest_operation_id operation, const void *request,
               const struct agent_call_events *events, void *ctx, struct agent_call **ret_call,
               struct sandbox_error *err);
size_t agent_call_window(const struct agent_call *call, unsigned stream);
size_t agent_call_write(struct agent_call *call, unsigned stream, const uint8_t *data,
                        size_t size);
void agent_call_end(struct agent_call *call, unsigned stream, const char *abort_reason);
void agent_call_grant(struct agent_call *call, unsigned stream, size_t size);
void agent_call_cancel(struct agent_call *call); /* `ended` still comes */
/* Forgets the call: cancels it in the guest, no callback follows. */
void agent_call_abandon(struct agent_call *call);
