/* fuzz_log_relay.c - whatever an adapter says, what is told of it is one line that can be told
 * again, in both formats. Standard error is a pipe of this file's. */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "log_relay.h"

#define LINE_MAX_BYTES 8192u

/* What is told of LINE; -1: nothing. */
static ssize_t told(int pipe_fd, const char *line, size_t size, char ret_line[LINE_MAX_BYTES])
{
    (void)log_relay("fuzz", line, size);
    return read(pipe_fd, ret_line, LINE_MAX_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char first[LINE_MAX_BYTES], second[LINE_MAX_BYTES];
    ssize_t count, again = -1;
    int ends[2], saved;

    if (size == 0 || size > LINE_MAX_BYTES || pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return 0;
    saved = dup(STDERR_FILENO);
    (void)dup2(ends[1], STDERR_FILENO);
    log_init("unused", data[0] & 1 ? LOG_FORMAT_JSON : LOG_FORMAT_KEY_VALUE, LOG_DEBUG);
    count = told(ends[0], (const char *)data + 1, size - 1, first);
    if (count > 0)
        again = told(ends[0], first, (size_t)count - 1, second);
    (void)dup2(saved, STDERR_FILENO);
    (void)close(saved);
    (void)close(ends[0]);
    (void)close(ends[1]);
    if (count > 0) {
        assert(memchr(first, '\n', (size_t)count) == first + count - 1);
        assert(again == count && memcmp(first, second, (size_t)count) == 0);
    }
    return 0;
}
