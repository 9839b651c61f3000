/* A text that json_scan() takes can be walked to its last member, and each value found there
 * is a JSON text again. */
#include <stdlib.h>

#include "json_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(struct span container)
{
    struct json_iterator iterator = json_iterate(container);
    struct span key, value, again;
    uint64_t number;

    while (json_next(&iterator, &key, &value)) {
        _cleanup_(buf_done)
        struct buf text = { 0 };

        if (json_scan(value.data, value.size, &again, NULL) < 0 || again.size != value.size)
            abort();
        if (key.data && json_scan(key.data, key.size, &again, NULL) < 0)
            abort();
        (void)json_string_decode(value, &text); /* any result will do */
        (void)json_string_equals(key, "a");
        (void)json_as_u64(value, &number);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span value;
    size_t offset;
    int result = json_scan((const char *)data, size, &value, &offset);

    if (result < 0 && offset > size)
        abort();
    if (result == 0)
        walk(value);
    return 0;
}
