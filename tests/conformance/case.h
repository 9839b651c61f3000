/* case.h - the case files of README.md. Steps stay YAML nodes; step.c interprets them. */
#pragma once

#include "yaml.h"

enum case_sandbox { CASE_SANDBOX_NONE, CASE_SANDBOX_SHARED, CASE_SANDBOX_EACH };
enum case_router {
    CASE_ROUTER_BOUND,    /* the adapter under test is bound */
    CASE_ROUTER_NONE,     /* no adapter configured */
    CASE_ROUTER_ABSENT,   /* configured, never connected */
    CASE_ROUTER_MISMATCH, /* a peer that speaks another major */
};

struct rule {
    const char *id;
    const char *text;
    unsigned since;
    const char *needs; /* feature, or NULL */
    const char *lacks; /* feature that the adapter must not have, or NULL */
    const struct yaml_node *steps;
};

struct case_file {
    char *path;
    const char *title;
    const char *contract;
    enum case_sandbox sandbox;
    enum case_router router;
    const struct yaml_node *settings;  /* or NULL */
    const struct yaml_node *section;   /* below `sandbox`, or NULL */
    const struct yaml_node *variables; /* of every rule, or NULL */
    const struct yaml_node *setup;     /* steps in a new sandbox of the file, or NULL */
    size_t rule_count;
    struct rule *rules;
    struct yaml_node *document;
};

struct case_list {
    size_t count;
    struct case_file *items;
    size_t rule_count;
};

/* Loads all *.yaml below DIRECTORY in byte order of their paths; a malformed file is an error
 * with its name and line, as is an id that stands twice. -errno and a text in ERROR. */
int case_list_load(const char *directory, struct case_list *ret_list, char *error,
                   size_t error_size);
/* It needs a router or an adapter of its own. */
bool case_file_is_apart(const struct case_file *file);
void case_list_done(struct case_list *list);
