/* subject.h - a router and an adapter to test or measure: started here, or running already.
 *
 * Started ones have a folder, a socket and settings of their own and end with us. The router
 * says on its ready descriptor how far it is, so nothing is polled for. */
#pragma once

#include "native_client.h"

enum subject_state {
    SUBJECT_BOUND,    /* the adapter is bound */
    SUBJECT_NONE,     /* no adapter configured */
    SUBJECT_ABSENT,   /* configured, never connected */
    SUBJECT_MISMATCH, /* a peer that speaks another major is connected under the name */
};

struct subject_options {
    const char *router_url;     /* use this one and start nothing; or NULL */
    const char *router_program; /* else */
    const char *adapter;        /* program; SUBJECT_BOUND */
    enum subject_state state;
    const char *section;  /* YAML below `sandbox`, indented by 2; or NULL */
    const char *settings; /* YAML below `sandbox.settings`, indented by 4; or NULL */
    bool verbose;         /* the router's log goes to our stderr */
};

struct subject;

/* Connected on success. -errno and a text in ERROR, the end of the log included. */
int subject_start(const struct subject_options *options, struct subject **ret_subject,
                  char *error, size_t error_size);
void subject_stop(struct subject *subject);
DEFINE_CLEANUP(struct subject *, subject_stop)

/* Writes the file anew, with these settings, as an editor does: what reads it is to notice by
 * itself. What the adapter was started with otherwise stays. 0 or -errno; -ENOTSUP for a router
 * that is not ours. */
int subject_configure(struct subject *subject, const char *settings);
/* SIGKILL for the process that the router has started; returns when an adapter is bound again.
 * 0 or -errno; -ENOTSUP for a router that is not ours. */
int subject_restart_adapter(struct subject *subject);

struct native_client *subject_client(struct subject *subject);
uint16_t subject_web_port(const struct subject *subject);        /* on 127.0.0.1; 0: unknown */
const char *subject_url(const struct subject *subject);          /* of the native front */
const char *subject_adapter_name(const struct subject *subject); /* "" when none was started */
pid_t subject_router_pid(const struct subject *subject);         /* 0 when it is not ours */
