/* link_scene.h - the host's end of a guest channel, with a guest that the test plays: what came
 * of the link and of its calls. */
#pragma once

#include "agent_link_state.h"
#include "fake_guest.h"

extern struct loop *loop;
extern struct fake_guest *guest;
extern struct agent_link *link_;

/* How often each event of the link came. */
struct seen {
    unsigned greeted, ready, settled, silent, awake, closed;
    char reason[256]; /* of the last `closed` */
};
extern struct seen seen;

void open_link(void);
void open_ready(void);                 /* after the greeting */
void open_ready_minor(uint32_t minor); /* of the agent's protocol; else 0 */
/* The guest has a mailbox of that shape, and so has the host (HOST_HAS_IT). */
void open_ready_mailbox(uint32_t slots, uint32_t slot_bytes, bool host_has_it);
void close_link(void);
/* Waits for the end, which has this reason, and closes. */
void expect_closed(const char *reason);

/* A call and what became of it. */
struct call {
    struct agent_call *call;
    unsigned ended, heads, writables;
    bool lost, replied;
    enum sandbox_code code;
    char message[256];
    struct buf data[AGENT_STREAMS];
    unsigned ends[AGENT_STREAMS];
    bool keeps_credit;
    struct agent_link **free_in_data; /* frees the link from inside the callback */
    struct agent_link **free_at_end;
};

extern const struct agent_call_events call_events; /* with a struct call */
/* Begins an exec, read or write. */
void begin(struct call *call, enum guest_operation_id operation);
void call_done(struct call *call);
