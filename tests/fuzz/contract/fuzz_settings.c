/* Any text is settings or an error that names the file; neither leaves anything behind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct settings *settings = NULL;
    char error[SETTINGS_ERROR_MAX] = "";
    char path[32];
    _cleanup_close_ int fd = memfd_create("settings", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (settings_load(path, &settings, error) < 0) {
        if (settings || strncmp(error, path, strlen(path)) != 0)
            abort();
        return 0;
    }
    if (!settings->router.docs_base || !settings->router.runtime_dir ||
        !settings->adapter.cache_dir || settings->adapter.default_memory_mb < 128)
        abort();
    settings_free(settings);
    return 0;
}
