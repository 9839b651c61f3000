/* process_tree.c - see process_tree.h.
 *
 * Descendants are found by parent ids in /proc. One whose parent has died before is a child of
 * init and not found that way; the session of ROOT is looked at for those. */
#include "process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"

struct process {
    pid_t pid, parent, session;
};

static bool read_process(int proc_fd, const char *name, struct process *ret)
{
    char path[64], text[512];
    const char *behind_name;
    _cleanup_close_ int fd = -1;
    ssize_t size;

    if (snprintf(path, sizeof(path), "%s/stat", name) >= (int)sizeof(path))
        return false;
    fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    size = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (size <= 0)
        return false; /* ended meanwhile */
    text[size] = '\0';
    behind_name = strrchr(text, ')'); /* the name may hold anything */
    ret->pid = (pid_t)atol(name);
    return behind_name &&
           sscanf(behind_name + 1, " %*c %d %*d %d", &ret->parent, &ret->session) == 2;
}

/* Appends the processes that there are now; false without memory or /proc. */
static bool list_processes(struct buf *ret_processes)
{
    DIR *directory = opendir("/proc");
    struct dirent *entry;
    struct process process;
    int ret = 0;

    if (!directory)
        return false;
    while (ret == 0 && (entry = readdir(directory)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            read_process(dirfd(directory), entry->d_name, &process))
            ret = buf_append(ret_processes, &process, sizeof(process));
    (void)closedir(directory); /* only read */
    return ret == 0;
}

static bool contains(const struct buf *pids, pid_t pid)
{
    const pid_t *items = (const void *)pids->data;

    for (size_t i = 0; i < pids->size / sizeof(*items); i++)
        if (items[i] == pid)
            return true;
    return false;
}

/* Stops and adds those that belong to the tree and are not in it yet; true if there were any.
 */
static bool grow_tree(struct buf *tree, pid_t root)
{
    _cleanup_(buf_done)
    struct buf listed = { 0 };
    const struct process *processes;
    bool grown = false;

    if (!list_processes(&listed))
        return false;
    processes = (const void *)listed.data;
    for (size_t i = 0; i < listed.size / sizeof(*processes); i++) {
        const struct process *process = &processes[i];

        if (contains(tree, process->pid) ||
            (process->session != root && !contains(tree, process->parent)))
            continue;
        (void)kill(process->pid, SIGSTOP); /* one that is gone needs no stop */
        if (buf_append(tree, &process->pid, sizeof(process->pid)) < 0)
            return false;
        grown = true;
    }
    return grown;
}

void process_tree_kill(pid_t root)
{
    _cleanup_(buf_done)
    struct buf tree = { 0 };
    const pid_t *pids;

    (void)kill(root, SIGSTOP);
    if (buf_append(&tree, &root, sizeof(root)) == 0) {
        while (grow_tree(&tree, root))
            ;
    }
    pids = (const void *)tree.data;
    for (size_t i = tree.size / sizeof(*pids); i > 0; i--)
        (void)kill(pids[i - 1], SIGKILL); /* stopped, so it is still the same one */
    (void)kill(root, SIGKILL);
}
