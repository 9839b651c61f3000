/* confine_landlock.c - see confine_landlock.h.
 *
 * The numbers are the kernel's interface; older headers lack the later ones. */
#include "confine_landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "accel.h"
#include "cleanup.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define CREATE_RULESET_VERSION 1u
#define RULE_PATH_BENEATH 1

#define FS_EXECUTE (1ull << 0)
#define FS_WRITE_FILE (1ull << 1)
#define FS_READ_FILE (1ull << 2)
#define FS_READ_DIR (1ull << 3)
#define FS_ALL_1 ((1ull << 13) - 1) /* all of version 1 */
#define FS_REFER (1ull << 13)       /* 2 */
#define FS_TRUNCATE (1ull << 14)    /* 3 */
#define NET_ALL_TCP 3ull            /* 4: bind, connect */
#define SCOPE_ALL 3ull              /* 6: abstract sockets, signals */

struct ruleset_attributes {
    uint64_t handled_access_fs;
    uint64_t handled_access_net; /* from 4 on */
    uint64_t scoped;             /* from 6 on */
};

struct path_beneath {
    uint64_t allowed_access;
    int32_t parent_fd;
} __attribute__((packed));

static const struct {
    const char *path;
    uint64_t access;
} path_rows[] = {
    { "/usr", FS_EXECUTE | FS_READ_FILE | FS_READ_DIR },
    { "/lib", FS_EXECUTE | FS_READ_FILE | FS_READ_DIR },
    { "/lib64", FS_EXECUTE | FS_READ_FILE | FS_READ_DIR },
    { "/etc/ld.so.cache", FS_READ_FILE },
    { "/dev/null", FS_READ_FILE | FS_WRITE_FILE },
    { "/dev/urandom", FS_READ_FILE },
    { ACCEL_KVM_PATH, FS_READ_FILE | FS_WRITE_FILE },
};

int confine_landlock_version(unsigned *ret_version)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);

    if (version < 0)
        return -errno;
    *ret_version = (unsigned)version;
    return 0;
}

static int rules_new(unsigned version, bool network)
{
    struct ruleset_attributes attributes = { .handled_access_fs = FS_ALL_1 };
    size_t size = sizeof(attributes.handled_access_fs);
    long fd;

    if (version >= 2)
        attributes.handled_access_fs |= FS_REFER;
    if (version >= 3)
        attributes.handled_access_fs |= FS_TRUNCATE;
    if (version >= 4) {
        attributes.handled_access_net = network ? 0 : NET_ALL_TCP;
        size = offsetof(struct ruleset_attributes, scoped);
    }
    if (version >= 6) {
        attributes.scoped = SCOPE_ALL;
        size = sizeof(attributes);
    }
    fd = syscall(SYS_landlock_create_ruleset, &attributes, size, 0);
    return fd < 0 ? -errno : (int)fd;
}

static int rules_allow_fd(int rules_fd, int fd, uint64_t access)
{
    const struct path_beneath rule = { .allowed_access = access, .parent_fd = fd };

    return syscall(SYS_landlock_add_rule, rules_fd, RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno
                                                                                     : 0;
}

/* What is not there needs no rule. */
static int rules_allow(int rules_fd, const char *path, uint64_t access)
{
    _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);

    return fd < 0 ? 0 : rules_allow_fd(rules_fd, fd, access);
}

int confine_landlock_rules(const struct landlock_options *options, const int *fds,
                           size_t fd_count)
{
    _cleanup_close_ int rules_fd = rules_new(options->version, options->network);
    int result = rules_fd < 0 ? rules_fd : 0;

    for (size_t i = 0; result == 0 && i < ARRAY_SIZE(path_rows); i++)
        result = rules_allow(rules_fd, path_rows[i].path, path_rows[i].access);
    if (result == 0 && options->folder)
        result = rules_allow(rules_fd, options->folder,
                             FS_EXECUTE | FS_READ_FILE | FS_READ_DIR);
    if (result == 0 && options->network)
        result = rules_allow(rules_fd, "/etc/resolv.conf", FS_READ_FILE);
    for (size_t i = 0; result == 0 && i < fd_count; i++)
        result = rules_allow_fd(rules_fd, fds[i], FS_READ_FILE);
    return result < 0 ? result : take_fd(&rules_fd);
}

int confine_landlock_enter(int rules_fd)
{
    if (syscall(SYS_landlock_restrict_self, rules_fd, 0) < 0)
        return -errno;
    (void)fcntl(rules_fd, F_SETFD, FD_CLOEXEC); /* QEMU gets no handle on its own rules */
    return 0;
}
