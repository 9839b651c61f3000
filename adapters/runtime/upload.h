/* upload.h - bytes in memory to a file of the guest, for `fs::write` and the steps of `run`
 * (contract 8.10). */
#pragma once

#include "error.h"
#include "sandbox.h"

/* All borrowed until the outcome. */
struct upload_spec {
    const char *path;
    const char *mode;
    bool parents;
    const uint8_t *data;
    size_t size;
};

struct upload;

/* Of a sandbox that is ready. DONE comes once, also from inside this call when it cannot even
 * begin: ERR is NULL, or as fs::write has it (borrowed, may be moved). NULL: it has come. */
typedef void (*upload_done_fn)(void *ctx, uint64_t bytes_written, struct sandbox_error *err);
struct upload *upload_start(struct sandbox *sandbox, const struct upload_spec *spec,
                            upload_done_fn done, void *ctx);
/* Nobody wants to know the outcome: DONE comes (S216), perhaps from inside this call, when all
 * bytes are sent, and the guest goes on by itself. Until DONE. */
void upload_let_go(struct upload *upload);
