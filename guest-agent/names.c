/* names.c - see names.h. */
#include "names.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#define READ_BYTES (32u * 1024)

/* As the kernel writes it. */
struct kernel_entry {
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[];
};

static int names_add(struct names *names, const char *name, size_t limit_bytes)
{
    const size_t size = strlen(name) + 1;

    names->entries++;
    if (names->text.size + size > limit_bytes)
        return 0;
    if (names->count == names->capacity) {
        const size_t capacity = names->capacity ? names->capacity * 2 : 64;
        size_t *offsets = reallocarray(names->offsets, capacity, sizeof(*offsets));

        if (!offsets)
            return -ENOMEM;
        names->offsets = offsets;
        names->capacity = capacity;
    }
    names->offsets[names->count] = names->text.size;
    if (buf_append(&names->text, name, size) < 0)
        return -ENOMEM;
    names->count++;
    return 0;
}

static int names_take(struct names *names, const uint8_t *data, size_t size, size_t limit_bytes)
{
    for (size_t at = 0; at < size;) {
        const struct kernel_entry *entry = (const void *)(data + at);
        int result;

        at += entry->size;
        if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
            continue;
        result = names_add(names, entry->name, limit_bytes);
        if (result < 0)
            return result;
    }
    return 0;
}

static int compare(const void *a, const void *b, void *text)
{
    return strcmp((const char *)text + *(const size_t *)a,
                  (const char *)text + *(const size_t *)b);
}

int names_read(struct names *names, int fd, size_t limit_bytes)
{
    _cleanup_free_ uint8_t *data = malloc(READ_BYTES);
    long size;

    if (!data)
        return -ENOMEM;
    while ((size = syscall(SYS_getdents64, fd, data, READ_BYTES)) > 0) {
        int result = names_take(names, data, (size_t)size, limit_bytes);

        if (result < 0)
            return result;
    }
    if (size < 0)
        return -errno;
    if (names->count > 1)
        qsort_r(names->offsets, names->count, sizeof(*names->offsets), compare,
                names->text.data);
    return 0;
}

const char *names_get(const struct names *names, size_t index)
{
    return (const char *)names->text.data + names->offsets[index];
}

void names_done(struct names *names)
{
    buf_done(&names->text);
    free(names->offsets);
    *names = (struct names){ 0 };
}
