/* handlers.h - who serves which operation: one function a row of operations.def.
 *
 * dispatch.c calls it with a decoded body; it answers the request once, now or later
 * (request.h). Where each one lives:
 *
 *   handle_create                   create.c
 *   handle_exec                     exec.c
 *   handle_list                     list.c
 *   handle_stop                     stop.c
 *   handle_run                      run.c
 *   handle_fs_read, handle_fs_write fs_read.c, fs_write.c; all other fs::* in fs.c
 *   handle_catalog_list             catalog.c
 *   handle_worker_*                 worker.c, which hands them to the back end
 *   handle_adapter_info             info.c */
#pragma once

#include "request.h"

#define OPERATION(id, ...) void handle_##id(struct request *request);
#include "operations.def"

struct sandboxes;

/* What adapter.c needs of sandboxes.c, the idle clock's tick included. */
int sandboxes_new(struct adapter *adapter, struct sandboxes **ret_sandboxes); /* 0 or -errno */
/* Stops every sandbox and makes no more; DONE once, when all machines are gone and freed, never
 * from inside the call. */
void sandboxes_stop_all(struct sandboxes *sandboxes, void (*done)(void *ctx), void *ctx);
/* Ends the sandbox ID, if it is not ended already; WHY as in sandbox_stop(). */
void sandboxes_end(struct sandboxes *sandboxes, const char *id, const char *why);
void sandboxes_free(struct sandboxes *sandboxes);
