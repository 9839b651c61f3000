/* fuzz_install_output.c - what an installer may write, whole and in two pieces. */
#include "install_output.h"

#include <assert.h>
#include <string.h>

struct said {
    unsigned lines;
    uint64_t sum;
};

static void on_progress(void *ctx, const char *stage, uint64_t bytes, uint64_t total_bytes)
{
    struct said *said = ctx;

    assert(*stage && strlen(stage) < INSTALL_STAGE_MAX);
    said->lines++;
    said->sum += bytes + total_bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct said whole = { 0 }, pieces = { 0 };
    struct install_output a = { .progress = on_progress, .ctx = &whole };
    struct install_output b = { .progress = on_progress, .ctx = &pieces };
    struct install_errors errors = { 0 };
    size_t half = size / 2;

    install_output_take(&a, (const char *)data, size);
    install_output_take(&b, (const char *)data, half);
    install_output_take(&b, (const char *)data + half, size - half);
    assert(whole.lines == pieces.lines && whole.sum == pieces.sum && a.done == b.done);
    install_errors_take(&errors, (const char *)data, half);
    install_errors_take(&errors, (const char *)data + half, size - half);
    assert(strlen(install_errors_text(&errors)) <= 1024);
    install_output_done(&a);
    install_output_done(&b);
    install_errors_done(&errors);
    return 0;
}
