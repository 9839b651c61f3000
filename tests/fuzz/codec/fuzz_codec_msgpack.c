/* The first byte chooses a type of the guest link, the rest is its map. What is decoded is
 * written as a map that decodes to the same. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct type *const extra_types[] = { &type_guest_hello, &type_guest_configure,
                                                  &type_guest_error, &type_guest_fs_read_head };

static void need(bool condition)
{
    if (!condition)
        abort();
}

static const struct type *choose(uint8_t byte)
{
    unsigned choice = byte % (2 * GUEST_MAX + ARRAY_SIZE(extra_types));

    if (choice < GUEST_MAX)
        return guest_operations[choice].request;
    if (choice < 2 * GUEST_MAX)
        return guest_operations[choice - GUEST_MAX].reply;
    return extra_types[choice - 2 * GUEST_MAX];
}

static void check_again(const struct type *type, const void *value)
{
    struct buf first = { 0 }, second = { 0 };
    void *again = malloc(type->size);

    need(again != NULL);
    need(codec_encode_msgpack(type, value, &first) == 0);
    need(codec_decode_msgpack(type, first.data, first.size, again) == 0);
    need(codec_encode_msgpack(type, again, &second) == 0);
    need(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    codec_free(type, again);
    free(again);
    buf_done(&first);
    buf_done(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct type *type;
    void *value;
    int result;

    if (size == 0)
        return 0;
    type = choose(data[0]);
    value = malloc(type->size);
    need(value != NULL);
    result = codec_decode_msgpack(type, data + 1, size - 1, value);
    need(result == 0 || result == -EPROTO);
    if (result == 0) {
        check_again(type, value);
        codec_free(type, value);
    }
    free(value);
    return 0;
}
