/* confine_child.c - see confine.h: the child's side. System calls only; it is also part of the
 * zygote (zygote/preload.c), which knows no log and no settings. */
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine_landlock.h"

#define OOM_SCORE_ADJ "500" /* a machine goes before the adapter that serves all others */

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : write(fd, text, strlen(text));
    int error = errno;

    if (fd >= 0)
        (void)close(fd);
    return size < 0 ? -error : 0;
}

/* "ID ID 1\n": the same id inside as outside. */
static int write_map(const char *path, unsigned id)
{
    char text[40], digits[12];
    size_t count = 0, size = 0;

    do
        digits[count++] = (char)('0' + id % 10);
    while ((id /= 10) > 0);
    for (int twice = 0; twice < 2; twice++) {
        for (size_t i = count; i > 0; i--)
            text[size++] = digits[i - 1];
        text[size++] = ' ';
    }
    text[size++] = '1';
    text[size] = 0;
    return write_text(path, text);
}

static int child_namespaces(const struct confine *confine)
{
    int flags = CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS |
                (confine->keep_network ? 0 : CLONE_NEWNET);
    int result = 0;

    if (!confine->namespaces)
        return 0;
    if (unshare(confine->is_root ? flags : flags | CLONE_NEWUSER) < 0)
        return -errno;
    if (!confine->is_root) {
        result = write_text("/proc/self/setgroups", "deny");
        if (result == 0)
            result = write_map("/proc/self/uid_map", confine->own_uid);
        if (result == 0)
            result = write_map("/proc/self/gid_map", confine->own_gid);
    }
    if (result == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        result = -errno;
    return result;
}

static int child_limits(const struct confine *confine)
{
    const struct rlimit none = { 0, 0 };
    struct rlimit files = { 0 };

    (void)write_text("/proc/self/oom_score_adj", OOM_SCORE_ADJ); /* may be forbidden to raise */
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return -errno;
    if (files.rlim_max > confine->open_files_max) /* lowered only: to raise may be forbidden */
        files.rlim_max = confine->open_files_max;
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
        return -errno;
    return 0;
}

static int child_drop_capabilities(void)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct none[2] = { { 0, 0, 0 }, { 0, 0, 0 } };

    return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

/* The kernel keeps capabilities per thread, and a fresh child has one. The raw calls: libc's
 * would signal the threads of the adapter, whose list this copy still has. */
static int child_user(const struct confine *confine)
{
    const gid_t groups[] = { confine->extra_group };

    for (int capability = 0; capability <= 63; capability++)
        (void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0); /* those that exist, if we may */
    if (!confine->is_root)
        return child_drop_capabilities();
    if (syscall(SYS_setgroups, confine->extra_group ? 1 : 0, groups) < 0 ||
        syscall(SYS_setresgid, confine->gid, confine->gid, confine->gid) < 0 ||
        syscall(SYS_setresuid, confine->uid, confine->uid, confine->uid) < 0)
        return -errno;
    return child_drop_capabilities();
}

int confine_child(void *ctx)
{
    const struct confine_child *child = ctx;
    int result = child_namespaces(child->confine);

    if (child->small_pages)
        (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* it only saves memory */
    if (result == 0)
        result = child_limits(child->confine);
    if (result == 0)
        result = child_user(child->confine);
    if (result == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        result = -errno;
    if (result == 0 && child->rules_fd >= 0)
        result = confine_landlock_enter(child->rules_fd);
    return result;
}
