/* job.h - one file operation: its call on the loop's side, its work on a thread.
 *
 * The thread shares nothing with the loop but what stands under the job's lock: bytes that
 * came, windows, and whole frames that are to go out. */
#pragma once

#include <sys/types.h>

#include "error.h"
#include "serve.h"

struct job;

/* A file operation: fills REPLY (zeroed, of the operation's reply type; what it holds is freed
 * by codec_free) or ERR. Runs on a thread. */
typedef int (*job_fn)(struct job *job, const void *request, void *reply,
                      struct sandbox_error *err);

/* Loop's side: begins the operation. -EPROTO: the request is malformed. */
int job_begin(struct serve *serve, uint64_t id, const struct guest_operation *operation,
              struct span body);

/* Thread's side. JOB may be NULL in tests of what does not stream. */

/* The host does not want the answer any more. */
bool job_cancelled(struct job *job);

/* fs::write: takes the bytes that came, 128 KiB at least until the end: the sizes are multiples
 * of JOB_ALIGN_BYTES but for the last, and so is the address. They are the caller's until the
 * next call. How many; 0: the clean end; -1: S218, the stream was aborted, or 30 s passed
 * without any. */
#define JOB_SILENCE_MS 30000u
#define JOB_ALIGN_BYTES 4096u
ssize_t job_receive(struct job *job, const uint8_t **ret_data, struct sandbox_error *err);

/* fs::read: the metadata ahead of the stream; then the file's bytes from where FD stands, as
 * the host's window allows; then the end, which job.c makes of the operation's result. -1:
 * S218, cancelled, or *ret_error is not 0: what reading gave, ERR is left to the caller. */
int job_send_head(struct job *job, const struct type *type, const void *value,
                  struct sandbox_error *err);
int job_send_file(struct job *job, int fd, int *ret_error, struct sandbox_error *err);
