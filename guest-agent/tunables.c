/* tunables.c - see tunables.h. */
#include "tunables.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "log.h"

static const struct {
    const char *path;
    const char *text;
} tunables[] = {
    /* Nobody asks for huge pages that early; twice a second the kernel looks for some. */
    { "/proc/sys/vm/compaction_proactiveness", "0" },
    /* Counters of each processor are folded into the machine's; /proc reads fold by themselves.
     */
    { "/proc/sys/vm/stat_interval", "30" },
    /* The host's kernel orders and throttles what it is given. */
    { "/sys/block/vda/queue/scheduler", "none" },
    { "/sys/block/vdb/queue/scheduler", "none" },
    { "/sys/block/vdb/queue/wbt_lat_usec", "0" },
};

static int tunable_set(const char *path, const char *text)
{
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        return -errno;
    return 0;
}

void tunables_set(void)
{
    for (size_t i = 0; i < sizeof(tunables) / sizeof(tunables[0]); i++) {
        int result = tunable_set(tunables[i].path, tunables[i].text);

        if (result < 0)
            log_event(LOG_DEBUG, "tunable_kept", log_text("path", tunables[i].path),
                      log_text("error", strerror(-result)));
    }
}
