/* subject.h - what is held to the contract: a router and an adapter, started here or running
 * already. Started ones have a folder, a socket and settings of their own and end with us. */
#pragma once

#include "case.h"
#include "native_client.h"

struct subject_options {
    const char *adapter; /* program; NULL: use router_url */
    const char *router_url;
    const char *router_program;
    const char *image;
    size_t set_count; /* --set: KEY=VALUE lines of sandbox.settings */
    const char *const *sets;
    const char *section; /* YAML text put below `sandbox`, or NULL */
    bool verbose;        /* the router's log goes to our stderr */
};

struct subject;

/* For FILE's settings and router state; connected on success. -errno and a text in ERROR. */
int subject_start(const struct subject_options *options, const struct case_file *file,
                  struct subject **ret_subject, char *error, size_t error_size);
void subject_stop(struct subject *subject);
DEFINE_CLEANUP(struct subject *, subject_stop)

struct native_client *subject_client(struct subject *subject);
const char *subject_adapter_name(const struct subject *subject); /* "" when none */
