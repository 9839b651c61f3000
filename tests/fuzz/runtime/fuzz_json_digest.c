/* fuzz_json_digest.c - any JSON text: one digest, and the same one with other white space. */
#include "json_digest.h"

#include <assert.h>
#include <string.h>

#include "buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t first[HASH_SHA256_BYTES], second[HASH_SHA256_BYTES];
    struct span text = { (const char *)data, size };
    struct buf wider = { 0 };
    int ret = json_digest(text, first);

    if (ret == 0) {
        assert(buf_append_text(&wider, " \n") == 0 && buf_append(&wider, data, size) == 0 &&
               buf_append_text(&wider, "\t\r ") == 0);
        assert(json_digest((struct span){ (const char *)wider.data, wider.size }, second) == 0);
        assert(memcmp(first, second, sizeof(first)) == 0);
    }
    buf_done(&wider);
    return 0;
}
