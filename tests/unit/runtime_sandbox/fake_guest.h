/* fake_guest.h - a guest agent in the test: well-behaved as far as the test lets it, hostile
 * where the test says so. Runs on the test's own loop. */
#pragma once

#include "agent_frame.h"
#include "list.h"
#include "tables.h"
#include "turn.h"

/* A call of the host. */
struct guest_call {
    struct list node;
    uint64_t id;
    enum guest_operation_id operation;
    void *request;    /* decoded */
    struct buf input; /* of stream 0 */
    bool input_ended;
    char *input_abort; /* NULL: ended cleanly, or not at all */
    bool cancelled;
    uint64_t credit[AGENT_STREAMS];
};

struct fake_guest {
    struct loop *loop;
    int fd; /* -1: closed by either side */
    struct loop_io *io;
    struct buf in;
    struct buf out;
    bool silent;           /* PINGs get no answer */
    bool keeps_configured; /* no READY by itself */
    bool ignores_poweroff;
    bool gives_no_credit; /* of stream 0 */
    bool configured;
    struct guest_configure configure;
    int mailbox_fd;    /* borrowed: the memory of its disk for bulk; -1: it has none */
    bool keeps_slots;  /* of the host, without a RETURN */
    unsigned slots;    /* of the host that came */
    uint32_t returned; /* its own slots that came back, by bit, since the test looked */
    unsigned idles;    /* RETURNs that said so */
    struct list calls; /* struct guest_call, in the order of their coming */
    unsigned pings;
    unsigned pongs;
};

/* *ret_host_fd is the host's end. */
struct fake_guest *fake_guest_new(struct loop *loop, int *ret_host_fd);
void fake_guest_free(struct fake_guest *guest);
void fake_guest_close(struct fake_guest *guest);

void fake_guest_raw(struct fake_guest *guest, const void *data, size_t size);
void fake_guest_frame(struct fake_guest *guest, const struct agent_frame *frame);
void fake_guest_map(struct fake_guest *guest, enum agent_frame_kind kind, uint64_t id,
                    const struct type *type, const void *value);
void fake_guest_hello(struct fake_guest *guest, uint32_t major);
void fake_guest_hello_minor(struct fake_guest *guest, uint32_t major, uint32_t minor);
/* Of an agent with a mailbox of that shape. */
void fake_guest_hello_mailbox(struct fake_guest *guest, uint32_t slots, uint32_t slot_bytes);
void fake_guest_ready(struct fake_guest *guest);

/* The oldest call of OPERATION that was not answered; turns until there is one. */
struct guest_call *fake_guest_call(struct fake_guest *guest, enum guest_operation_id operation);
/* Now, without waiting; NULL: none. */
struct guest_call *fake_guest_has_call(struct fake_guest *guest,
                                       enum guest_operation_id operation);

/* On a call; the last two end it, the call is gone then. */
void guest_call_data(struct fake_guest *guest, struct guest_call *call, unsigned stream,
                     const void *data, size_t size);
/* The same through SLOT of the mailbox. */
void guest_call_slot(struct fake_guest *guest, struct guest_call *call, unsigned stream,
                     unsigned slot, const void *data, size_t size);
void guest_call_end(struct fake_guest *guest, struct guest_call *call, unsigned stream,
                    const char *abort_reason);
void guest_call_reply(struct fake_guest *guest, struct guest_call *call, const void *reply);
void guest_call_error(struct fake_guest *guest, struct guest_call *call, const char *code,
                      const char *message, bool fix_parents);
/* An exec's whole end. */
void guest_call_exit(struct fake_guest *guest, struct guest_call *call, int32_t exit_code);
