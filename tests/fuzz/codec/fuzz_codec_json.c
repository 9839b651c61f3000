/* The first byte chooses a type, the rest is a body. What is decoded is written as JSON that
 * decodes to the same; what is not is S001 with a message that is UTF-8. */
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "request_limits.h"
#include "utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool condition)
{
    if (!condition)
        abort();
}

static void *value_new(const struct type *type)
{
    void *value = malloc(type->size);

    need(value != NULL);
    return value;
}

static void check_again(const struct type *type, const void *value)
{
    struct sandbox_error err = { 0 };
    struct buf first = { 0 }, second = { 0 };
    void *again = value_new(type);

    need(codec_encode_json(type, value, false, &first) == 0);
    need(codec_decode_json(type, (const char *)first.data, first.size, again, &err) == 0);
    need(codec_encode_json(type, again, false, &second) == 0);
    need(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    codec_free(type, again);
    free(again);
    buf_done(&first);
    buf_done(&second);
}

static void check_error(const struct sandbox_error *err)
{
    struct buf envelope = { 0 };

    need(err->code == S001 && err->message[0]);
    need(sandbox_error_encode(err, ERROR_DOCS_BASE_DEFAULT, &envelope) == 0);
    need(utf8_valid(envelope.data, envelope.size));
    buf_done(&envelope);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sandbox_error err;
    const struct operation *operation;
    void *value;

    if (size == 0)
        return 0;
    operation = &operations[data[0] % OP_MAX];
    value = value_new(operation->request);
    sandbox_error_done(&err);
    if (codec_decode_json(operation->request, (const char *)data + 1, size - 1, value, &err) <
        0) {
        check_error(&err);
    } else {
        (void)request_limits_check(operation->id, value, &err); /* either answer will do */
        check_again(operation->request, value);
        codec_free(operation->request, value);
    }
    free(value);
    return 0;
}
