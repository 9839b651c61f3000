/* template_file.c - see template_file.h.
 *
 *   magic, key, four sections (hello, state, disk, memory), SHA-256 of all of it
 *   section: size, extents, an extent of no bytes
 *   extent:  offset, size, bytes
 *
 * Numbers are 64 bits, little-endian. */
#include "template_file.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "scratch.h"

#define MAGIC "iii template 1\n"
#define CHUNK_BYTES (256u * 1024)
#define STATE_BYTES_MAX (64u * 1024 * 1024)
#define KEY_BYTES (HASH_SHA256_HEX_BYTES - 1)

enum section { SECTION_HELLO, SECTION_STATE, SECTION_DISK, SECTION_MEMORY, SECTION_MAX };

struct extent {
    uint64_t offset;
    uint64_t size;
};

/* One pass over the file, in either direction. */
struct pass {
    int fd;
    struct hash_sha256 hash;
    const atomic_bool *cancel;
    const char *reason;
    uint8_t *chunk; /* CHUNK_BYTES */
};

void template_parts_done(struct template_parts *parts)
{
    closep(&parts->memory_fd);
    closep(&parts->state_fd);
    closep(&parts->disk_fd);
    buf_done(&parts->hello);
}

int template_memory_new(const char *name, size_t size)
{
    _cleanup_close_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || (size > 0 && ftruncate(fd, (off_t)size) < 0))
        return -errno;
    return take_fd(&fd);
}

static int pass_begin(struct pass *pass, int fd, const atomic_bool *cancel)
{
    *pass = (struct pass){ .fd = fd, .cancel = cancel, .reason = "it cannot be read" };
    hash_sha256_init(&pass->hash);
    pass->chunk = malloc(CHUNK_BYTES);
    return pass->chunk ? 0 : -ENOMEM;
}

static int pass_refuse(struct pass *pass, const char *reason)
{
    pass->reason = reason;
    return -EBADMSG;
}

/* Writing. */

static int put(struct pass *pass, const void *data, size_t size)
{
    const uint8_t *at = data;

    hash_sha256_update(&pass->hash, data, size);
    while (size > 0) {
        ssize_t done = write(pass->fd, at, size);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -errno;
        at += done;
        size -= (size_t)done;
    }
    return 0;
}

static int put_extent(struct pass *pass, uint64_t offset, uint64_t size)
{
    const struct extent extent = { htole64(offset), htole64(size) };

    return put(pass, &extent, sizeof(extent));
}

static int put_data(struct pass *pass, int from, uint64_t offset, uint64_t size)
{
    int result = put_extent(pass, offset, size);

    while (result == 0 && size > 0) {
        ssize_t got = pread(from, pass->chunk, size < CHUNK_BYTES ? size : CHUNK_BYTES,
                            (off_t)offset);

        if (got <= 0)
            return got < 0 ? -errno : -EIO;
        if (atomic_load(pass->cancel))
            return -ECANCELED;
        result = put(pass, pass->chunk, (size_t)got);
        offset += (uint64_t)got;
        size -= (uint64_t)got;
    }
    return result;
}

static int put_file(struct pass *pass, int from)
{
    struct stat status;
    uint64_t size;
    off_t at = 0;
    int result;

    if (fstat(from, &status) < 0)
        return -errno;
    size = htole64((uint64_t)status.st_size);
    result = put(pass, &size, sizeof(size));
    while (result == 0 && at < status.st_size) {
        off_t data = lseek(from, at, SEEK_DATA);
        off_t hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);

        if (data < 0 && errno == ENXIO) /* nothing but a hole is left */
            break;
        if (data < 0 || hole < 0)
            return -errno;
        result = put_data(pass, from, (uint64_t)data, (uint64_t)(hole - data));
        at = hole;
    }
    return result < 0 ? result : put_extent(pass, 0, 0);
}

static int put_bytes(struct pass *pass, const struct buf *bytes)
{
    const uint64_t size = htole64(bytes->size);
    int result = put(pass, &size, sizeof(size));

    if (result == 0)
        result = put_extent(pass, 0, bytes->size);
    if (result == 0)
        result = put(pass, bytes->data, bytes->size);
    return result < 0 ? result : put_extent(pass, 0, 0);
}

static int put_all(struct pass *pass, const char *key, const struct template_parts *parts)
{
    const int files[] = { parts->state_fd, parts->disk_fd, parts->memory_fd };
    uint8_t digest[HASH_SHA256_BYTES];
    int result = put(pass, MAGIC, sizeof(MAGIC) - 1);

    static_assert(ARRAY_SIZE(files) == SECTION_MAX - 1,
                  "a file for each section but the first");
    assert(strlen(key) == KEY_BYTES);
    if (result == 0)
        result = put(pass, key, KEY_BYTES);
    if (result == 0)
        result = put_bytes(pass, &parts->hello);
    for (size_t i = 0; result == 0 && i < ARRAY_SIZE(files); i++)
        result = put_file(pass, files[i]);
    if (result < 0)
        return result;
    hash_sha256_final(&pass->hash, digest);
    return put(pass, digest, sizeof(digest));
}

int template_file_write(const char *folder, const char *key, const struct template_parts *parts,
                        const atomic_bool *cancel)
{
    char path[4096], temporary[4096];
    _cleanup_close_ int fd = -1;
    struct pass pass;
    int result;

    if (snprintf(path, sizeof(path), "%s/%s", folder, key) >= (int)sizeof(path) ||
        snprintf(temporary, sizeof(temporary), "%s/%s" TEMPLATE_TEMPORARY, folder, key) >=
            (int)sizeof(temporary))
        return -ENAMETOOLONG;
    fd = mkostemp(temporary, O_CLOEXEC); /* 0600 */
    if (fd < 0)
        return -errno;
    result = pass_begin(&pass, fd, cancel);
    if (result == 0)
        result = put_all(&pass, key, parts);
    free(pass.chunk);
    if (result == 0 && rename(temporary, path) < 0)
        result = -errno;
    if (result < 0)
        (void)unlink(temporary); /* template_cache.c removes what stays */
    return result;
}

/* Reading. */

static int get(struct pass *pass, void *data, size_t size)
{
    uint8_t *at = data;
    size_t left = size;

    while (left > 0) {
        ssize_t done = read(pass->fd, at, left);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -errno;
        if (done == 0)
            return pass_refuse(pass, "it is cut short");
        at += done;
        left -= (size_t)done;
    }
    hash_sha256_update(&pass->hash, data, size);
    return 0;
}

static int get_extent(struct pass *pass, struct extent *ret_extent)
{
    int result = get(pass, ret_extent, sizeof(*ret_extent));

    ret_extent->offset = le64toh(ret_extent->offset);
    ret_extent->size = le64toh(ret_extent->size);
    return result;
}

static int get_data(struct pass *pass, struct extent extent, int to)
{
    int result = 0;

    while (result == 0 && extent.size > 0) {
        size_t part = extent.size < CHUNK_BYTES ? (size_t)extent.size : CHUNK_BYTES;

        result = get(pass, pass->chunk, part);
        if (result == 0 && pwrite(to, pass->chunk, part, (off_t)extent.offset) != (ssize_t)part)
            result = -errno;
        if (atomic_load(pass->cancel))
            return -ECANCELED;
        extent.offset += part;
        extent.size -= part;
    }
    return result;
}

/* Extents in order, none over another, all inside of SIZE. */
static int get_extents(struct pass *pass, uint64_t size, int to)
{
    uint64_t end = 0;

    for (;;) {
        struct extent extent;
        int result = get_extent(pass, &extent);

        if (result < 0 || extent.size == 0)
            return result;
        if (extent.offset < end || extent.offset > size || extent.size > size - extent.offset)
            return pass_refuse(pass, "its extents are out of order");
        end = extent.offset + extent.size;
        result = get_data(pass, extent, to);
        if (result < 0)
            return result;
    }
}

/* The size of a section, between MIN and MAX. */
static int get_size(struct pass *pass, uint64_t min, uint64_t max, uint64_t *ret_size)
{
    int result = get(pass, ret_size, sizeof(*ret_size));

    *ret_size = le64toh(*ret_size);
    if (result == 0 && (*ret_size < min || *ret_size > max))
        return pass_refuse(pass, "a part has another size");
    return result;
}

static int get_file(struct pass *pass, uint64_t min, uint64_t max, int to)
{
    uint64_t size;
    int result = get_size(pass, min, max, &size);

    if (result == 0 && ftruncate(to, (off_t)size) < 0)
        return -errno;
    return result < 0 ? result : get_extents(pass, size, to);
}

static int get_hello(struct pass *pass, struct buf *hello)
{
    struct extent extent = { 0, 0 };
    uint64_t size;
    int result = get_size(pass, 1, TEMPLATE_HELLO_MAX_BYTES, &size);

    if (result == 0)
        result = get_extent(pass, &extent);
    if (result == 0 && (extent.offset != 0 || extent.size != size))
        return pass_refuse(pass, "a part has another size");
    if (result == 0)
        result = get(pass, pass->chunk, (size_t)size);
    if (result == 0)
        result = buf_append(hello, pass->chunk, (size_t)size);
    if (result == 0)
        result = get_extent(pass, &extent);
    if (result == 0 && extent.size != 0)
        return pass_refuse(pass, "its extents are out of order");
    return result;
}

static int get_head(struct pass *pass, const char *key)
{
    char head[sizeof(MAGIC) - 1 + KEY_BYTES];
    int result = get(pass, head, sizeof(head));

    if (result < 0)
        return result;
    if (memcmp(head, MAGIC, sizeof(MAGIC) - 1) != 0)
        return pass_refuse(pass, "it is no template");
    if (memcmp(head + sizeof(MAGIC) - 1, key, KEY_BYTES) != 0)
        return pass_refuse(pass, "it is of something else");
    return 0;
}

static int get_end(struct pass *pass)
{
    uint8_t computed[HASH_SHA256_BYTES], stored[HASH_SHA256_BYTES], byte;
    int result;

    hash_sha256_final(&pass->hash, computed);
    result = get(pass, stored, sizeof(stored));
    if (result < 0)
        return result;
    if (memcmp(computed, stored, sizeof(stored)) != 0)
        return pass_refuse(pass, "its digest is another");
    return read(pass->fd, &byte, 1) == 0 ? 0 : pass_refuse(pass, "something follows its end");
}

static int check_owner(struct pass *pass)
{
    struct stat status;

    if (fstat(pass->fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022) != 0)
        return pass_refuse(pass, "others could have written it");
    return 0;
}

static int get_all(struct pass *pass, const char *key, uint64_t memory_bytes,
                   uint64_t disk_bytes_max, struct template_parts *parts)
{
    int result = check_owner(pass);

    if (result == 0)
        result = get_head(pass, key);
    if (result == 0)
        result = get_hello(pass, &parts->hello);
    if (result == 0)
        result = get_file(pass, 1, STATE_BYTES_MAX, parts->state_fd);
    if (result == 0)
        result = get_file(pass, 1, disk_bytes_max, parts->disk_fd);
    if (result == 0)
        result = get_file(pass, memory_bytes, memory_bytes, parts->memory_fd);
    return result < 0 ? result : get_end(pass);
}

static int parts_new(const char *scratch, struct template_parts *ret_parts)
{
    ret_parts->memory_fd = template_memory_new("sandbox-memory", 0);
    ret_parts->state_fd = template_memory_new("sandbox-state", 0);
    ret_parts->disk_fd = scratch_new(scratch);
    if (ret_parts->memory_fd < 0)
        return ret_parts->memory_fd;
    return ret_parts->state_fd < 0  ? ret_parts->state_fd
           : ret_parts->disk_fd < 0 ? ret_parts->disk_fd
                                    : 0;
}

int template_file_read(const char *folder, const char *key, uint64_t memory_bytes,
                       uint64_t disk_bytes_max, const char *scratch, const atomic_bool *cancel,
                       struct template_parts *ret_parts, const char **ret_reason)
{
    _cleanup_close_ int fd = -1;
    _cleanup_(template_parts_done)
    struct template_parts parts = TEMPLATE_NO_PARTS;
    char path[4096];
    struct pass pass;
    int result;

    *ret_reason = "it cannot be read";
    if (snprintf(path, sizeof(path), "%s/%s", folder, key) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    result = parts_new(scratch, &parts);
    if (result == 0)
        result = pass_begin(&pass, fd, cancel);
    if (result < 0)
        return result;
    result = get_all(&pass, key, memory_bytes, disk_bytes_max, &parts);
    *ret_reason = pass.reason;
    free(pass.chunk);
    if (result < 0)
        return result;
    (void)futimens(fd, NULL); /* which was used last; without it another one goes first */
    *ret_parts = parts;
    parts = TEMPLATE_NO_PARTS;
    return 0;
}
