/* upload.c - see upload.h. */
#include "upload.h"

#include "fs.h"

struct upload {
    struct sandbox *sandbox; /* one reference */
    struct upload_spec spec;
    upload_done_fn done; /* NULL: was called, SPEC is gone */
    void *ctx;
    struct agent_call *call;
    size_t sent;
    bool unwanted; /* it was let go */
};

static void upload_finish(struct upload *upload, uint64_t bytes_written,
                          struct sandbox_error *err)
{
    sandbox_touch(upload->sandbox);
    if (upload->done)
        upload->done(upload->ctx, bytes_written, err);
    sandbox_unref(upload->sandbox);
    free(upload);
}

static void upload_lost(struct upload *upload, const char *reason)
{
    struct sandbox_error err = { 0 };

    (void)fs_set_lost(upload->sandbox, upload->spec.path, reason, &err);
    upload_finish(upload, 0, &err);
    sandbox_error_done(&err);
}

static void on_ended(void *ctx, const void *reply, struct sandbox_error *err, bool lost)
{
    struct upload *upload = ctx;
    const struct guest_fs_write_reply *written = reply;

    if (!upload->done)
        upload_finish(upload, 0, NULL);
    else if (written && upload->sent == upload->spec.size)
        upload_finish(upload, written->bytes_written, NULL);
    else if (written)
        upload_lost(upload, "the guest agent ended the write before its last byte");
    else if (lost)
        upload_lost(upload, err->message);
    else {
        fs_map_error(upload->spec.path, err);
        upload_finish(upload, 0, err);
    }
}

static void upload_tell_gone(struct upload *upload)
{
    upload_done_fn done = take_ptr(upload->done);
    struct sandbox_error err = { 0 };

    (void)sandbox_error_set(&err, S216, "%s: its caller is gone", upload->spec.path);
    upload->spec = (struct upload_spec){ 0 };
    done(upload->ctx, 0, &err);
    sandbox_error_done(&err);
}

static void upload_feed(struct upload *upload)
{
    size_t left = upload->spec.size - upload->sent;

    if (left > 0)
        upload->sent += agent_call_write(upload->call, 0, upload->spec.data + upload->sent,
                                         left);
    if (upload->sent < upload->spec.size)
        return;
    agent_call_end(upload->call, 0, NULL);
    if (upload->unwanted)
        upload_tell_gone(upload);
}

static void on_writable(void *ctx, unsigned stream)
{
    struct upload *upload = ctx;

    sandbox_touch(upload->sandbox);
    upload_feed(upload);
}

static const struct agent_call_events call_events = {
    .writable = on_writable,
    .ended = on_ended,
};

static int ask_guest(struct upload *upload, struct sandbox_error *err)
{
    const struct fs_write_request request = {
        .sandbox_id = (char *)sandbox_id(upload->sandbox),
        .path = (char *)upload->spec.path,
        .mode = (char *)upload->spec.mode,
        .parents = upload->spec.parents,
    };

    return sandbox_call(upload->sandbox, GUEST_fs_write, &request, &call_events, upload,
                        &upload->call, err);
}

struct upload *upload_start(struct sandbox *sandbox, const struct upload_spec *spec,
                            upload_done_fn done, void *ctx)
{
    struct upload *upload = calloc(1, sizeof(*upload));
    struct sandbox_error err = { 0 };

    if (!upload) {
        (void)fs_set_lost(sandbox, spec->path, "no memory", &err);
        done(ctx, 0, &err);
        sandbox_error_done(&err);
        return NULL;
    }
    upload->sandbox = sandbox_ref(sandbox);
    upload->spec = *spec;
    upload->done = done;
    upload->ctx = ctx;
    if (ask_guest(upload, &err) < 0)
        upload_lost(take_ptr(upload), err.message);
    else
        upload_feed(upload);
    sandbox_error_done(&err);
    return upload;
}

void upload_let_go(struct upload *upload)
{
    upload->unwanted = true;
    if (upload->sent == upload->spec.size)
        upload_tell_gone(upload);
}
