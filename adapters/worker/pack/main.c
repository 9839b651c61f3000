/* main.c - worker-tree: what worker-files needs and no shell command does.
 *
 *   worker-tree pack TARGET MAX_BYTES    descriptor 3, a folder, into the empty folder TARGET
 *   worker-tree publish NEXT CURRENT
 *
 * Exit status 1: failed; 3: the source is over the limit; 4: its folders are too deep. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "publish.h"
#include "source_pack.h"

#define SOURCE_FD 3
#define TOO_LARGE 3
#define TOO_DEEP 4

static int run_pack(const char *target, const char *max_bytes)
{
    _cleanup_close_ int fd = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char path[SOURCE_PACK_PATH_BYTES] = "";
    int result = fd < 0 ? -errno
                        : source_pack(SOURCE_FD, fd, strtoull(max_bytes, NULL, 10), path);

    if (result == -EFBIG)
        return TOO_LARGE;
    if (result == -ELOOP)
        return TOO_DEEP;
    if (result < 0)
        (void)fprintf(stderr, "%s: %s\n", path, strerror(-result));
    return result < 0;
}

static int run_publish(const char *next, const char *current)
{
    int result = publish(next, current);

    if (result < 0)
        (void)fprintf(stderr, "%s: %s\n", current, strerror(-result));
    return result < 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "pack") == 0)
        return run_pack(argv[2], argv[3]);
    if (argc == 4 && strcmp(argv[1], "publish") == 0)
        return run_publish(argv[2], argv[3]);
    (void)fprintf(stderr, "usage: worker-tree pack TARGET MAX_BYTES | publish NEXT CURRENT\n");
    return 2;
}
