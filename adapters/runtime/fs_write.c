/* fs_write.c - the operation fs::write (contract 8.10): the forms of its body, and bodies that
 * came with the request. Bodies from a channel are fs_write_stream.c's. */
#include "fs_write_stream.h"

#include <errno.h>
#include <string.h>

#include "base64.h"
#include "fs.h"
#include "handlers.h"
#include "upload.h"

struct write_call {
    struct request *request;
    struct fs_visit visit;
    struct upload *upload; /* NULL: not begun, or over */
    struct buf decoded;    /* of content_b64 */
    struct span content;   /* what is written */
};

static void call_free(struct write_call *call)
{
    fs_leave(&call->visit);
    buf_done(&call->decoded);
    free(call);
}

static void on_failed(void *ctx, struct sandbox_error *err)
{
    struct write_call *call = ctx;

    request_fail(call->request, err);
    call_free(call);
}

static void on_uploaded(void *ctx, uint64_t bytes_written, struct sandbox_error *err)
{
    struct write_call *call = ctx;
    const struct fs_write_request *body = request_body(call->request);
    struct fs_write_reply reply = { .bytes_written = bytes_written, .path = body->path };

    call->upload = NULL;
    request_on_cancel(call->request, NULL, NULL);
    if (err) {
        on_failed(call, err);
        return;
    }
    request_reply(call->request, &reply);
    call_free(call);
}

static void on_begin(void *ctx)
{
    struct write_call *call = ctx;
    const struct fs_write_request *body = request_body(call->request);
    const struct upload_spec spec = {
        .path = body->path,
        .mode = body->mode,
        .parents = body->parents,
        .data = (const uint8_t *)call->content.data,
        .size = call->content.size,
    };

    bool cancelled = request_cancelled(call->request);
    struct upload *upload = upload_start(call->visit.sandbox, &spec, on_uploaded, call);

    if (!upload)
        return; /* and the call is over */
    call->upload = upload;
    if (cancelled)
        upload_let_go(upload);
}

/* It is carried out all the same (contract 2.4), but holds nothing that the guest does not
 * need: that may never answer. */
static void on_cancel(void *ctx)
{
    struct write_call *call = ctx;

    if (call->upload)
        upload_let_go(call->upload);
}

/* The body form, which is looked at before anything else (contract 4.4). */

static int decode_base64(struct write_call *call, const char *text, struct sandbox_error *err)
{
    int result = base64_decode(&call->decoded, text, strlen(text));

    call->content = (struct span){ .data = (const char *)call->decoded.data,
                                   .size = call->decoded.size };
    if (result == -EINVAL)
        return sandbox_error_set(
            err, S001,
            "content_b64: expected base64 (standard alphabet, padded), got "
            "\"%.60s\"",
            text);
    return result < 0 ? sandbox_error_set(err, S216, "content_b64: no memory") : 0;
}

static int check_form(struct write_call *call, const struct fs_write_request *body,
                      struct sandbox_error *err)
{
    if (body->has_content == body->has_content_b64)
        return sandbox_error_set(err, S001,
                                 "content, content_b64: expected exactly one of them, got %s",
                                 body->has_content ? "both" : "neither");
    if (body->has_content_b64)
        return decode_base64(call, body->content_b64, err);
    if (body->content.is_stream && strcmp(body->content.stream.direction, "read") != 0)
        return sandbox_error_set(err, S001,
                                 "content.direction: expected \"read\", got \"%.60s\"",
                                 body->content.stream.direction);
    call->content = (struct span){ .data = body->content.text.data,
                                   .size = body->content.text.size };
    return 0;
}

void handle_fs_write(struct request *request)
{
    const struct fs_write_request *body = request_body(request);
    struct write_call *call = calloc(1, sizeof(*call));
    struct sandbox_error err = { 0 };
    struct sandbox *sandbox;

    if (!call) {
        (void)sandbox_error_set(&err, S216, "%s: no memory", body->path);
        request_fail(request, &err);
        return;
    }
    call->request = request;
    if (check_form(call, body, &err) < 0 ||
        fs_find(request, body->sandbox_id, &sandbox, &err) < 0) {
        request_fail(request, &err);
        call_free(call);
        return;
    }
    if (body->has_content && body->content.is_stream) {
        call_free(call);
        fs_write_stream(request, sandbox);
        return;
    }
    call->visit = (struct fs_visit){
        .request = request,
        .path = body->path,
        .begin = on_begin,
        .failed = on_failed,
        .ctx = call,
    };
    request_on_cancel(request, on_cancel, call);
    fs_enter(&call->visit, sandbox);
}
