/* workers.h - the operations worker::* of an adapter, over the machines of its back end
 * (contract 12, docs/workers.md).
 *
 * A back end makes one when the first operation comes and hands all of them to it. */
#pragma once

#include <stdbool.h>

struct adapter;
struct request;
struct workers;

/* What a back end's machines take as struct machine_lasting. */
#define WORKERS_DISK "disk"     /* an ext4 image, and an erofs image at /workspace */
#define WORKERS_FOLDER "folder" /* folders */

/* Serves OPERATION ("worker::start") and answers REQUEST; false: it is none of them. *WORKERS
 * is made when it is NULL. */
bool workers_serve(struct workers **workers, const char *form, const char *operation,
                   struct request *request);
/* Ends all of them, as worker::stop does but sooner; DONE once, from inside the call only when
 * WORKERS is NULL. */
#define WORKERS_STOP_MS 5000u
void workers_stop_all(struct workers *workers, void (*done)(void *ctx), void *ctx);
/* NULL is fine. */
void workers_free(struct workers *workers);
