/* fuzz_manifest.c - any text is a manifest within its limits, or S501 that names the file. */
#include <assert.h>
#include <string.h>

#include "manifest.h"

static void check_manifest(const struct manifest *manifest)
{
    assert(manifest->name && manifest->name[0]);
    assert(manifest->cpus >= 1 && manifest->memory_mb >= 128);
    assert(!manifest->start || manifest->start[0]);
    for (size_t i = 0; i < manifest->env.count; i++) {
        const char *entry = manifest->env.items[i];
        const char *equals = strchr(entry, '=');

        assert(equals && equals > entry);
        assert(!manifest_name_reserved(entry, (size_t)(equals - entry)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sandbox_error err = { 0 };
    struct manifest manifest;
    int result = manifest_parse("/m", (const char *)data, size, &manifest, &err);

    if (result == 0)
        check_manifest(&manifest);
    else
        assert(err.code == S501 && strncmp(err.message, "/m: ", 4) == 0 && !manifest.name);
    manifest_done(&manifest);
    sandbox_error_done(&err);
    return 0;
}
