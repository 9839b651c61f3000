/* scene.h - an adapter with an image that can be booted, and short ways to what most tests
 * need: a sandbox that is ready, a call, its answer as text. */
#pragma once

#include "fake_clock.h"
#include "fake_machines.h"
#include "fixture.h"

/* EXTRA: further lines of sandbox.settings. */
void scene_open(const char *extra);
/* Ends every machine and checks that nothing is left. */
void scene_close(void);
/* The adapter has taken all that was sent to it. */
void scene_heard(void);
/* MS pass, the router staying alive. */
void scene_pass(uint64_t ms);

/* A sandbox that is ready; the test may say more about it in MEMBERS, like `,"name":"x"`. Its
 * machine is the latest one. *ret_id has room for 37 bytes. */
struct machine *scene_create(const char *members, char *ret_id);

/* A call whose body is made by FORMAT; returns its id. */
uint64_t scene_call(const char *operation, const char *format, ...) _printf_(2, 3);
uint64_t scene_last_call(void); /* the id of the latest one */
/* Waits for the answer. The body is CODE's error, or with CODE NULL a reply, and holds TEXT. */
void scene_expect(uint64_t call, const char *code, const char *text);
/* The whole answer; the caller frees. */
char *scene_answer(uint64_t call);
/* No answer has come yet. */
bool scene_unanswered(uint64_t call);
/* What list says, as text; the caller frees. */
char *scene_list(void);
/* Turns until list shows the sandbox in this status. */
void scene_await_status(const char *id, const char *status);
/* The call's caller leaves. */
void scene_cancel(uint64_t call);
