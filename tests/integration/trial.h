/* trial.h - what the tests of the running router share: one loop, the router's process, one
 * caller.
 *
 * Answers are looked at as text: bodies are what the adapter wrote. */
#pragma once

#include <check.h>

#include "played_adapter.h"
#include "router_process.h"
#include "turn.h"

#define TRIAL_WAIT_MS 20000

/* Sanitizers make memory and speed say nothing: such a build moves less and measures no RSS. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRIAL_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TRIAL_SANITIZED 1
#endif
#endif
#ifndef TRIAL_SANITIZED
#define TRIAL_SANITIZED 0
#endif

struct trial {
    struct loop *loop;
    struct router_process *router;
    struct native_client *caller;
};

/* SANDBOX: as router_process_start(). */
void trial_open(struct trial *trial, const char *sandbox);
/* The router must still answer, and end with 0. */
void trial_close(struct trial *trial);

/* `adapter: NAME` with the played program as its command, a reload's worth of YAML; static. */
const char *trial_managed(const char *name);
/* The same for one that the test connects itself. */
const char *trial_unmanaged(const char *name);
/* Fits, and echoes unless CALL is given. */
struct played_adapter *trial_adapter(struct trial *trial, const char *name,
                                     void (*call)(void *, struct played_adapter *,
                                                  const struct envelope *),
                                     void *ctx);

struct native_call *trial_start(struct trial *trial, const char *function, const char *body);
/* The answer's text, owned by CALL. */
const char *trial_reply(struct native_call *call);
const char *trial_error(struct native_call *call);
/* One call from start to answer; *ret_ok tells REPLY from ERROR. The text is the caller's to
 * free. */
char *trial_call(struct trial *trial, const char *function, const char *body, bool *ret_ok);
void trial_expect_reply(struct trial *trial, const char *function, const char *body,
                        const char *wanted);
/* The error's text holds each of the texts (NULL ends them). */
void trial_expect_error(struct trial *trial, const char *function, ...);
/* A number that stands behind KEY in the reply. */
long trial_number(const char *text, const char *key);
/* The value of a line of /metrics that begins with NAME; -1: no such line. */
long trial_metric(struct trial *trial, const char *name);
uint64_t trial_now_ms(void);
