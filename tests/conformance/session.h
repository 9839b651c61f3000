/* session.h - what the rules of case files run against: a router, an adapter, a sandbox.
 *
 * Files without settings of their own share one session, the others have one each. A session
 * belongs to one thread: its router ends with the thread that started it. */
#pragma once

#include <jansson.h>

#include "step.h"
#include "suite.h"

struct session {
    const struct suite *suite;
    struct subject *subject;    /* NULL until the first rule that runs */
    struct buf section;         /* YAML below `sandbox`, for the subject's life */
    struct variables variables; /* of the settings */
    json_t *info;               /* of sandbox::adapter::info */
    char sandbox[64];           /* id of the shared sandbox, "" when there is none yet */
    char error[2048];           /* why there is no subject */
    struct coverage coverage;
};

/* Starts or connects at the first rule and gives RESULT its verdict and transcript. */
void session_run(struct session *session, struct result *result);
bool session_has_feature(const struct session *session, const char *feature);
/* The next file shall not see what this one left in the shared sandbox. */
void session_end_file(struct session *session);
void session_end(struct session *session);
