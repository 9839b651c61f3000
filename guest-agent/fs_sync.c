/* fs_sync.c - what was written to the root reaches its disk, that of a worker for example
 * before its machine is powered off. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fs.h"

int fs_sync(struct job *job, const struct guest_empty *request, struct guest_empty *reply,
            struct sandbox_error *err)
{
    _cleanup_close_ int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || syncfs(fd) < 0)
        return sandbox_error_set(err, S216, "/: %s", strerror(errno));
    return 0;
}
