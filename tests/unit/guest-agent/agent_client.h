/* agent_client.h - the host's end of the guest agent, for tests: the agent's program as a plain
 * process, its channel a socket pair, blocking calls.
 *
 * Everything here asserts: what must not happen fails the test. */
#pragma once

#include <sys/types.h>

#include "agent_frame.h"
#include "buf.h"
#include "tables.h"

struct agent_client {
    pid_t pid;
    int fd;
    struct buf in;
    size_t handed_out; /* size of the frame that is still at the front of `in` */
    uint64_t next_id;
    int mailbox_fd;    /* -1: none; a file in the place of the disk */
    unsigned slots;    /* of the agent that came */
    uint32_t returned; /* of ours that came back, by bit */
};

/* What came of one call. */
struct agent_answer {
    enum agent_frame_kind kind; /* REPLY or ERROR */
    struct buf body;            /* its map */
    struct buf streams[AGENT_STREAMS];
    bool ended[AGENT_STREAMS];
    struct buf head; /* map of HEAD */
    char code[16];   /* of ERROR */
    char message[1024];
    bool fix_parents;
};

/* Starts the agent of $SANDBOX_BIN and reads its HELLO. CGROUP_FD: -1, or a folder for the
 * execs' cgroups. */
void agent_client_start(struct agent_client *client, int cgroup_fd);
/* On a channel that somebody else made: HELLO, CONFIGURE, READY. */
void agent_client_greet(struct agent_client *client);
/* CONFIGURE, with VARIABLE (NAME=VALUE or NULL) in the environment, and READY. */
void agent_client_configure(struct agent_client *client, const char *variable, bool rehearsal);
/* Starts the agent, up to READY. */
void agent_client_start_ready(struct agent_client *client, int cgroup_fd);
/* The same with a mailbox, which is allowed, or known only. */
void agent_client_start_mailbox(struct agent_client *client, bool allowed);
void agent_client_stop(struct agent_client *client);

void agent_client_send(struct agent_client *client, const struct agent_frame *frame);
void agent_client_send_raw(struct agent_client *client, const void *data, size_t size);
void agent_client_data(struct agent_client *client, uint64_t id, unsigned stream,
                       const void *data, size_t size);
/* The same in SLOT of the mailbox. */
void agent_client_slot(struct agent_client *client, uint64_t id, unsigned stream, unsigned slot,
                       const void *data, size_t size);
void agent_client_end(struct agent_client *client, uint64_t id, unsigned stream,
                      const char *reason);
void agent_client_cancel(struct agent_client *client, uint64_t id);

/* Begins a call and returns its id. */
uint64_t agent_client_call(struct agent_client *client, const char *operation,
                           const struct type *type, const void *request);
/* The next frame; its spans live until the next one. False: the channel ended. */
bool agent_client_receive(struct agent_client *client, struct agent_frame *ret_frame,
                          int timeout_ms);
/* Whether nothing comes for so long. */
bool agent_client_silent(struct agent_client *client, int wait_ms);
/* Collects the frames of call ID to its end, granting credit; others must not come. */
void agent_client_finish(struct agent_client *client, uint64_t id,
                         struct agent_answer *ret_answer);
void agent_answer_done(struct agent_answer *answer);

/* A whole exec: /bin/sh -c SCRIPT. */
void agent_client_shell(struct agent_client *client, const char *script, const char *input,
                        uint64_t timeout_ms, struct agent_answer *ret_answer,
                        struct guest_exec_reply *ret_reply);
