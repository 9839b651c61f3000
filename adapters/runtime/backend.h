/* backend.h - what an adapter adds to the runtime: a way to make machines.
 *
 * The runtime owns the contract's behaviour (dispatch, sandboxes, slots, idle clock, execs,
 * files, streams, images, errors); a back end owns machines and knows nothing of sandboxes. All
 * calls and callbacks run on the loop's thread; a callback never runs from inside the call it
 * answers. */
#pragma once

#include "error.h"
#include "image.h"
#include "loop.h"
#include "settings.h"

struct fault;   /* fault.h */
struct request; /* one call, request.h */
struct backend; /* the back end's own state */
struct machine; /* one machine of it */

/* What a worker's machine keeps beyond its life (docs/workers.md); borrowed for the call of
 * machine_start(). */
struct machine_lasting {
    int lock_fd;      /* every process of the machine holds a copy of it as long as it lives */
    const char *data; /* the writable layer: a disk or a folder, as the back end wants it */
    const char
        *workspace; /* shown at /workspace under a writable layer: an image or a folder */
};

struct machine_spec {
    const char *id; /* the sandbox's UUID; for logs, names, hostname */
    const struct image *image;
    uint32_t cpus;
    uint32_t memory_mb;
    uint32_t disk_mb; /* limit of the writable layer */
    bool network;
    uint32_t boot_timeout_ms;
    const struct machine_lasting *lasting; /* NULL: all of it is thrown away */
};

/* What a machine with networking tells its guest, and the host addresses in env become. */
struct machine_network {
    const char *address, *gateway, *dns; /* IPv4; NULL: none */
    const char *address6, *gateway6, *dns6;
    bool own_interface; /* its address is changed for one that no other machine has */
};

/* States: starting (after machine_start) -> up (AGENT came) -> gone. GONE comes exactly once,
 * last, after machine_start succeeded, however the machine ended; then the owner frees it. */
struct machine_events {
    /* The agent's socket is there (its HELLO may still be under way): the host end of a stream
     * socket, consumed. OWN_MAILBOX_FD, consumed, is the memory of its disk for bulk; -1: it
     * has none. NETWORK is NULL when the machine has none. */
    void (*agent)(void *ctx, int own_fd, int own_mailbox_fd,
                  const struct machine_network *network);
    /* After machine_ready(): nobody waits for another machine now, so the guest may do what it
     * has put off; machine_settled() follows. Not where the back end has no machine_ready(). */
    void (*settle)(void *ctx);
    /* The machine is gone: process reaped, scratch files still to be deleted by machine_free().
     * REASON says why in words; CONSOLE is the console's tail (at most 32 lines, 4,096 bytes;
     * may be ""). Both borrowed for the call. */
    void (*gone)(void *ctx, const char *reason, const char *console);
};

struct backend_info {
    const char *name;         /* "sandbox-qemu" */
    const char *version;      /* of the program */
    const char *acceleration; /* NULL: key absent */
    const char *isolation;    /* NULL: key absent */
};

struct backend_ops {
    /* Reads its own section of the settings, removes what a killed process of this adapter left
     * behind (contract 2.4), checks that machines can be made. */
    int (*open)(struct loop *loop, const struct settings *settings,
                struct backend **ret_backend, struct sandbox_error *err);
    /* New settings after a reload; what exists keeps its own. */
    void (*reload)(struct backend *backend, const struct settings *settings);
    /* All machines are gone by then. */
    void (*close)(struct backend *backend);

    void (*info)(const struct backend *backend, struct backend_info *ret_info);

    /* Both are asked once, after open, and stay as they are. The program that installs an image
     * (image_install.h): path. It gets SOURCE, an empty folder to fill, and options; see
     * docs/images.md. */
    const char *(*installer)(const struct backend *backend);
    /* Text that belongs into the image digest besides source and recipe (format, layout). */
    const char *(*image_flavor)(const struct backend *backend);

    /* Begins a machine; S300 when it cannot even be begun. SPEC is borrowed for the call but
     * for the image; EVENTS for the machine's life. */
    int (*machine_start)(struct backend *backend, const struct machine_spec *spec,
                         const struct machine_events *events, void *ctx,
                         struct machine **ret_machine, struct sandbox_error *err);
    /* Kills it now; `gone` follows. The runtime has asked the guest to end before that. Returns
     * S300 when it cannot be killed. */
    int (*machine_kill)(struct machine *machine, struct sandbox_error *err);
    /* The guest has acknowledged its configuration; then, that it has done what it had put off.
     * Either may never come. NULL, both: they are of no interest. */
    void (*machine_ready)(struct machine *machine);
    void (*machine_settled)(struct machine *machine);
    /* Something is about to be said to the guest, but for what `settle` asks for. NULL: that is
     * of no interest. */
    void (*machine_wanted)(struct machine *machine);
    /* Whole seconds on the loop's clock (loop_now_ms / 1000) of the last network payload; -1
     * none. */
    int64_t (*machine_last_payload)(const struct machine *machine);
    /* The folder in whose file system the writable layers grow, and what that of MACHINE takes
     * there. Both NULL: they take no room of a disk. */
    const char *(*scratch_directory)(const struct backend *backend);
    uint64_t (*machine_disk_bytes)(const struct machine *machine);
    /* Deletes scratch files; only after `gone`. */
    void (*machine_free)(struct machine *machine);

    /* Operations that are not the runtime's, or NULL: those of the adapter's own (fault of the
     * mock; the body is request_json()), and the optional ones of the contract whose group is
     * in `features` (worker::*; the body is request_body()). True: it took the call and answers
     * through request_*() of request.h. */
    bool (*own_operation)(struct backend *backend, const char *operation,
                          struct request *request);
    /* The adapter ends: ends what its own operations began. DONE once, perhaps from inside the
     * call. NULL: there is nothing. */
    void (*stop)(struct backend *backend, void (*done)(void *ctx), void *ctx);
    const char *const *features; /* NULL-terminated, besides those of the runtime */

    /* Test hooks (fault.h), or NULL: none. Borrowed until close. */
    const struct fault *(*fault)(struct backend *backend);
};

/* The whole of an adapter's main(): options --config, --router, --help, --version,
 * --log-format; start-up, serving, shutdown. Returns the exit code. */
int adapter_main(int argc, char **argv, const struct backend_ops *ops);
