/* programs.c - see programs.h. */
#include "programs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "log.h"

#define FOLDER "programs"

unsigned programs_processes_max(uint64_t memory_bytes)
{
    const uint64_t count = (memory_bytes >> 20) * PROGRAMS_PROCESSES_A_MIB;

    if (count < PROGRAMS_PROCESSES_MIN)
        return PROGRAMS_PROCESSES_MIN;
    return count > PROGRAMS_PROCESSES_MAX ? PROGRAMS_PROCESSES_MAX : (unsigned)count;
}

static void programs_set(int folder_fd, const char *name, const char *value)
{
    _cleanup_close_ int fd = openat(folder_fd, name, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, value, strlen(value)) < 0)
        log_event(LOG_WARN, "programs_unlimited", log_text("file", name),
                  log_text("value", value), log_text("error", strerror(errno)));
}

int programs_open(int own_root_fd, uint64_t memory_bytes)
{
    _cleanup_close_ int root_fd = own_root_fd;
    _cleanup_close_ int fd = -1;
    char limit[16];

    if (root_fd < 0)
        return -1;
    /* One by one: a kernel may have only one of them. The group's weight is as a process's, so
     * the agent gets as much as all of them; exiting ones stay in the group, too. */
    programs_set(root_fd, "cgroup.subtree_control", "+cpu");
    programs_set(root_fd, "cgroup.subtree_control", "+pids");
    if (mkdirat(root_fd, FOLDER, 0755) < 0 && errno != EEXIST)
        return take_fd(&root_fd);
    fd = openat(root_fd, FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return take_fd(&root_fd);
    (void)snprintf(limit, sizeof(limit), "%u", programs_processes_max(memory_bytes));
    programs_set(fd, "pids.max", limit);
    return take_fd(&fd);
}
