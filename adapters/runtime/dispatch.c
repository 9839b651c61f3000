/* dispatch.c - see dispatch.h. */
#include "dispatch.h"

#include <assert.h>
#include <string.h>

#include "codec.h"
#include "handlers.h"
#include "image_operations.h"
#include "info.h"
#include "request_limits.h"

static void (*const handlers[OP_MAX])(struct request *request) = {
#define OPERATION(id, ...) [OP_##id] = handle_##id,
#include "operations.def"
};

static void refuse(struct request *request)
{
    struct sandbox_error err = { 0 };

    sandbox_error_set(&err, S304, "adapter %s does not implement %s",
                      adapter_name(request_adapter(request)), request_operation_name(request));
    request_fail(request, &err);
}

/* In no table of the contract: of every adapter of this runtime, or of this one alone. */
static void dispatch_own(struct request *request)
{
    struct adapter *adapter = request_adapter(request);
    const struct backend_ops *ops = adapter_ops(adapter);

    if (image_operations_serve(request))
        return;
    if (!ops->own_operation ||
        !ops->own_operation(adapter_backend(adapter), request_operation_name(request), request))
        refuse(request);
}

/* An optional group is implemented when the feature of its name is announced. */
static bool implemented(const struct adapter *adapter, const struct operation *operation)
{
    return !(operation->flags & OPTIONAL_OP) ||
           (adapter_ops(adapter)->own_operation && info_has_feature(adapter, operation->group));
}

/* The body as the table says, within the limits over a whole request. NULL: ERR says why. */
static void *decode_body(const struct operation *operation, const char *body, size_t size,
                         struct sandbox_error *err)
{
    void *value = calloc(1, operation->request->size);

    if (!value) {
        sandbox_error_set(err, S300, "no memory for the request");
        return NULL;
    }
    if (codec_decode_json(operation->request, body, size, value, err) == 0 &&
        request_limits_check(operation->id, value, err) == 0)
        return value;
    codec_free(operation->request, value);
    free(value);
    return NULL;
}

void dispatch(struct request *request, const char *body, size_t size)
{
    const char *name = request_operation_name(request);
    const struct operation *operation = operation_find(name, strlen(name));
    struct sandbox_error err = { 0 };
    void *value;

    if (!operation) {
        dispatch_own(request);
        return;
    }
    if (!implemented(request_adapter(request), operation)) {
        refuse(request);
        return;
    }
    value = decode_body(operation, body, size, &err);
    if (!value) {
        request_fail(request, &err);
        return;
    }
    request_set_body(request, operation, value);
    handlers[operation->id](request);
}
