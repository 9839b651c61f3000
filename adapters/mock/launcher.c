/* launcher.c - see launcher.h. */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "codec.h"
#include "proc.h"

#define AGENT_PROGRAM "sandbox-guest-agent"
#define AGENT_INSIDE "/run/" AGENT_PROGRAM
#define CHANNEL_TARGET 3
#define FIRST_FILE_TARGET 4

/* Files of the new /etc. */
static const struct {
    const char *path;
    const char *text;
} etc_files[] = {
    { "/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"
                     "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
    { "/etc/group", "root:x:0:\nnogroup:x:65534:\n" },
    { "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n" },
};

/* What programs of the host's /usr need besides it. */
static const char *const host_paths[] = {
    "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf",
    "/etc/ld.so.conf.d", "/etc/ssl",         "/etc/ca-certificates",
};

static const char *const root_links[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

/* Those of a container; what reaches beyond it is left out. */
static const char *const capabilities[] = {
    "CAP_CHOWN",   "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH",  "CAP_FOWNER",
    "CAP_FSETID",  "CAP_KILL",         "CAP_SETGID",           "CAP_SETUID",
    "CAP_SETPCAP", "CAP_SETFCAP",      "CAP_NET_BIND_SERVICE", "CAP_NET_RAW",
    "CAP_MKNOD",   "CAP_SYS_CHROOT",   "CAP_SYS_NICE",         "CAP_AUDIT_WRITE",
};

/* The mounts of root's kind of sandbox, made in the child. */
struct root_mounts {
    char base[512];  /* the tmpfs */
    char root[512];  /* becomes / */
    char usr[512];   /* becomes /usr */
    char upper[512]; /* of usr */
    char work[512];
    char python[600]; /* becomes /usr/local/bin/python */
    char size[64];
    char overlay[2048];
    /* Of a worker. */
    const char *data; /* takes the tmpfs's place, and lasts; NULL: none */
    char workspace[600];
    char workspace_upper[600];
    char workspace_work[600];
    char workspace_overlay[8192];
};

/* As the guest agent does where the layer outlives what lies below it (guest-agent/init.c). */
#define LASTING_OPTIONS "redirect_dir=off,index=off,metacopy=off,xino=off"

static void root_mounts_init_lasting(struct root_mounts *mounts,
                                     const struct machine_lasting *lasting)
{
    mounts->data = lasting->data;
    (void)snprintf(mounts->workspace, sizeof(mounts->workspace), "%s/workspace", mounts->root);
    (void)snprintf(mounts->workspace_upper, sizeof(mounts->workspace_upper),
                   "%s/workspace-upper", mounts->base);
    (void)snprintf(mounts->workspace_work, sizeof(mounts->workspace_work), "%s/workspace-work",
                   mounts->base);
    (void)snprintf(mounts->workspace_overlay, sizeof(mounts->workspace_overlay),
                   "lowerdir=%.4096s,upperdir=%s,workdir=%s," LASTING_OPTIONS,
                   lasting->workspace, mounts->workspace_upper, mounts->workspace_work);
}

static void root_mounts_init(struct root_mounts *mounts, const char *base,
                             const struct machine_spec *spec)
{
    (void)snprintf(mounts->base, sizeof(mounts->base), "%.400s", base);
    (void)snprintf(mounts->root, sizeof(mounts->root), "%.400s/root", base);
    (void)snprintf(mounts->usr, sizeof(mounts->usr), "%.400s/usr", base);
    (void)snprintf(mounts->upper, sizeof(mounts->upper), "%.400s/upper", base);
    (void)snprintf(mounts->work, sizeof(mounts->work), "%.400s/work", base);
    (void)snprintf(mounts->python, sizeof(mounts->python), "%s/local/bin/python", mounts->usr);
    (void)snprintf(mounts->size, sizeof(mounts->size), "size=%um,mode=0755", spec->disk_mb);
    (void)snprintf(mounts->overlay, sizeof(mounts->overlay),
                   "lowerdir=/usr,upperdir=%s,workdir=%s,%s", mounts->upper, mounts->work,
                   spec->lasting ? LASTING_OPTIONS : "redirect_dir=on");
    if (spec->lasting)
        root_mounts_init_lasting(mounts, spec->lasting);
}

/* An overlay cannot always be had (a container without the right to it): then read-only. */
static int mount_usr(const struct root_mounts *mounts)
{
    if (mount("overlay", mounts->usr, "overlay", 0, mounts->overlay) == 0)
        return 0;
    if (mount("/usr", mounts->usr, NULL, MS_BIND, NULL) < 0 ||
        mount(NULL, mounts->usr, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) < 0)
        return -errno;
    return 0;
}

/* What the machine writes: a worker's lasts, all else is thrown away. */
static int mount_base(const struct root_mounts *mounts)
{
    if (mounts->data)
        return mount(mounts->data, mounts->base, NULL, MS_BIND, NULL);
    return mount("sandbox", mounts->base, "tmpfs", 0, mounts->size);
}

/* A worker's may be there from an earlier run. */
static int make_folders(const char *const *paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (mkdir(paths[i], 0755) < 0 && errno != EEXIST)
            return -errno;
    }
    return 0;
}

/* A worker's source under what the worker changed in it. */
static int mount_workspace(const struct root_mounts *mounts)
{
    const char *const folders[] = { mounts->workspace, mounts->workspace_upper,
                                    mounts->workspace_work };
    int result = make_folders(folders, ARRAY_SIZE(folders));

    if (result == 0 &&
        mount("overlay", mounts->workspace, "overlay", 0, mounts->workspace_overlay) < 0)
        result = -errno;
    return result;
}

/* Runs in the child, in a copy of our memory. */
static int make_root_mounts(void *ctx)
{
    const struct root_mounts *mounts = ctx;
    int result;

    const char *const folders[] = { mounts->root, mounts->usr, mounts->upper, mounts->work };

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount_base(mounts) < 0)
        return -errno;
    result = make_folders(folders, ARRAY_SIZE(folders));
    if (result == 0)
        result = mount_usr(mounts);
    if (result == 0 && mounts->data)
        result = mount_workspace(mounts);
    /* The images have a program of this name, Debian's own python3 has not. Best effort: there
     * may be one, or /usr is read-only. */
    (void)!symlink("/usr/bin/python3", mounts->python);
    return result;
}

/* The command line. */

/* Appends words up to the NULL. 0 or -ENOMEM. */
static int words(struct text_list *list, ...) __attribute__((sentinel));
static int words(struct text_list *list, ...)
{
    const char *word;
    va_list arguments;
    int result = 0;

    va_start(arguments, list);
    while (result == 0 && (word = va_arg(arguments, const char *)))
        result = text_list_append(list, word);
    va_end(arguments);
    return result;
}

static int add_namespaces(struct text_list *list, const struct machine_spec *spec, bool as_root)
{
    char hostname[32];
    int result = words(list, "--unshare-pid", "--unshare-ipc", "--unshare-uts",
                       "--unshare-cgroup-try", "--die-with-parent", "--as-pid-1", "--clearenv",
                       "--chdir", "/", "--hostname", NULL);

    (void)snprintf(hostname, sizeof(hostname), "sandbox-%.8s", spec->id);
    if (result == 0)
        result = words(list, hostname, NULL);
    if (result == 0 && !spec->network)
        result = words(list, "--unshare-net", NULL);
    if (result < 0 || !as_root)
        return result < 0 ? result
                          : words(list, "--unshare-user", "--uid", "0", "--gid", "0", NULL);
    result = words(list, "--cap-drop", "ALL", NULL);
    for (size_t i = 0; result == 0 && i < ARRAY_SIZE(capabilities); i++)
        result = words(list, "--cap-add", capabilities[i], NULL);
    return result;
}

/* Whether a worker's root has the link from an earlier run. */
static bool link_is_there(const struct machine_spec *spec, const char *name)
{
    char path[4096];
    struct stat status;

    if (!spec->lasting)
        return false;
    (void)snprintf(path, sizeof(path), "%s/root/%s", spec->lasting->data, name);
    return lstat(path, &status) == 0;
}

/* /bin and the like are links on most hosts, folders on some, missing here and there. */
static int add_root_links(struct text_list *list, const struct machine_spec *spec)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < ARRAY_SIZE(root_links); i++) {
        char path[32], target[256];
        ssize_t size;

        if (link_is_there(spec, root_links[i]))
            continue;
        (void)snprintf(path, sizeof(path), "/%s", root_links[i]);
        size = readlink(path, target, sizeof(target) - 1);
        if (size < 0) {
            result = words(list, "--ro-bind-try", path, path, NULL);
            continue;
        }
        target[size] = 0;
        result = words(list, "--symlink", target, path, NULL);
    }
    return result;
}

static int add_etc(struct text_list *list)
{
    int result = words(list, "--dir", "/etc", NULL);

    for (size_t i = 0; result == 0 && i < ARRAY_SIZE(etc_files); i++) {
        char fd[16];

        (void)snprintf(fd, sizeof(fd), "%zu", FIRST_FILE_TARGET + i);
        result = words(list, "--perms", "0644", "--file", fd, etc_files[i].path, NULL);
    }
    for (size_t i = 0; result == 0 && i < ARRAY_SIZE(host_paths); i++)
        result = words(list, "--ro-bind-try", host_paths[i], host_paths[i], NULL);
    return result;
}

static int add_root(struct text_list *list, const struct root_mounts *mounts,
                    const struct machine_spec *spec)
{
    int result = mounts ? words(list, "--bind", mounts->root, "/", "--bind", mounts->usr,
                                "/usr", NULL)
                        : words(list, "--ro-bind", "/usr", "/usr", NULL);

    if (result == 0)
        result = add_root_links(list, spec);
    if (result == 0)
        result = words(list, "--proc", "/proc", "--dev", "/dev", "--dir", "/run", "--dir",
                       "/var", "--perms", "1777", "--dir", "/tmp", "--perms", "1777", "--dir",
                       "/var/tmp", "--perms", "0700", "--dir", "/root", NULL);
    if (result == 0)
        result = add_etc(list);
    if (result == 0 && spec->network)
        result = words(list, "--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf", NULL);
    if (result == 0 && spec->image->workdir && strcmp(spec->image->workdir, "/") != 0)
        result = words(list, "--dir", spec->image->workdir, NULL);
    return result;
}

static int command_fill(const struct launcher *launcher, const struct machine_spec *spec,
                        const struct root_mounts *mounts, struct text_list *list)
{
    char channel[16];
    int result = words(list, launcher->bwrap, NULL);

    (void)snprintf(channel, sizeof(channel), "%d", CHANNEL_TARGET);
    if (result == 0)
        result = add_namespaces(list, spec, mounts != NULL);
    if (result == 0)
        result = add_root(list, mounts, spec);
    if (result == 0)
        result = words(list, "--ro-bind", launcher->agent, AGENT_INSIDE, AGENT_INSIDE, "--fd",
                       channel, NULL);
    return result;
}

/* Files as descriptors that bubblewrap reads to their end. */

struct file_fds {
    int fds[ARRAY_SIZE(etc_files)];
};

static void file_fds_done(struct file_fds *files)
{
    for (size_t i = 0; i < ARRAY_SIZE(files->fds); i++)
        closep(&files->fds[i]);
}

static int file_fds_open(struct file_fds *files)
{
    for (size_t i = 0; i < ARRAY_SIZE(files->fds); i++) {
        const size_t size = strlen(etc_files[i].text);

        files->fds[i] = memfd_create(etc_files[i].path, MFD_CLOEXEC);
        if (files->fds[i] < 0 ||
            write(files->fds[i], etc_files[i].text, size) != (ssize_t)size ||
            lseek(files->fds[i], 0, SEEK_SET) < 0)
            return -errno;
    }
    return 0;
}

/* Descriptors of the new process, all borrowed. */
struct ends {
    int channel_fd;
    int console_fd;
    int lock_fd; /* of a worker: it becomes the standard input, which nothing closes; -1: none
                  */
};

/* bwrap sees to it itself that it dies with us (--die-with-parent), in its last step before its
 * child goes on. Were it killed earlier, that child would wait for its word for ever, and hold
 * the lock; so it is not, and without us the agent ends as it finds its channel closed. */
static int spawn(const struct text_list *command, struct root_mounts *mounts,
                 const struct file_fds *files, const struct ends *ends, pid_t *ret_pid,
                 int *ret_pidfd)
{
    struct proc_fd fds[3 + ARRAY_SIZE(etc_files)] = {
        { .fd = ends->channel_fd, .target = CHANNEL_TARGET },
        { .fd = ends->console_fd, .target = 2 },
    };
    size_t fd_count = 2;
    struct proc_spec process = {
        .program = command->items[0],
        .argv = (const char *const *)command->items,
        .fds = fds,
        .new_session = true,
        .before_exec = mounts ? make_root_mounts : NULL,
        .before_exec_ctx = mounts,
    };

    for (size_t i = 0; i < ARRAY_SIZE(files->fds); i++)
        fds[fd_count++] = (struct proc_fd){ .fd = files->fds[i],
                                            .target = FIRST_FILE_TARGET + (int)i };
    if (ends->lock_fd >= 0)
        fds[fd_count++] = (struct proc_fd){ .fd = ends->lock_fd, .target = 0 };
    process.fd_count = fd_count;
    return proc_spawn(&process, ret_pid, ret_pidfd);
}

int launcher_start(const struct launcher *launcher, const struct machine_spec *spec,
                   int channel_fd, int console_fd, pid_t *ret_pid, int *ret_pidfd)
{
    _cleanup_(file_fds_done)
    struct file_fds files = { .fds = { -1, -1, -1 } };
    _cleanup_(text_list_done)
    struct text_list command = { 0 };
    const struct ends ends = {
        .channel_fd = channel_fd,
        .console_fd = console_fd,
        .lock_fd = spec->lasting ? spec->lasting->lock_fd : -1,
    };
    struct root_mounts mounts = { 0 };
    struct root_mounts *used = launcher->mount_path ? &mounts : NULL;
    int result;

    if (used)
        root_mounts_init(used, launcher->mount_path, spec);
    result = command_fill(launcher, spec, used, &command);
    if (result == 0)
        result = text_list_append(&command, ""); /* room for the NULL */
    if (result == 0)
        result = file_fds_open(&files);
    if (result < 0)
        return result;
    free(command.items[--command.count]);
    command.items[command.count] = NULL;
    return spawn(&command, used, &files, &ends, ret_pid, ret_pidfd);
}

/* Once a process. */

/* FOLDER/NAME if it can be run. NULL: no. */
static char *program_in(const char *folder, const char *name)
{
    char *path;

    if (!folder || asprintf(&path, "%s/%s", folder, name) < 0)
        return NULL;
    if (access(path, X_OK) == 0)
        return path;
    free(path);
    return NULL;
}

static char *agent_find(void)
{
    const char *folder = proc_self_directory();
    char *found = program_in(folder, AGENT_PROGRAM);

    if (!found)
        found = program_in(folder, "../libexec/iii-sandbox/" AGENT_PROGRAM);
    return found;
}

int launcher_init(struct launcher *launcher, const char *bwrap, const char *agent,
                  const char *runtime_dir, struct sandbox_error *err)
{
    launcher->bwrap = strdup(bwrap ? bwrap : "bwrap");
    launcher->agent = agent ? strdup(agent) : agent_find();
    if (!launcher->agent || access(launcher->agent, X_OK) < 0)
        return sandbox_error_set(err, S300, "%s cannot be run: %s",
                                 launcher->agent ? launcher->agent : AGENT_PROGRAM,
                                 launcher->agent ? strerror(errno) : "not found");
    if (geteuid() != 0)
        return 0;
    if (mkdir(runtime_dir, 0700) < 0 && errno != EEXIST)
        return sandbox_error_set(err, S300, "%s cannot be made: %s", runtime_dir,
                                 strerror(errno));
    if (asprintf(&launcher->mount_path, "%s/mock-root", runtime_dir) < 0) {
        launcher->mount_path = NULL;
        return sandbox_error_set(err, S300, "no memory");
    }
    if (mkdir(launcher->mount_path, 0700) < 0 && errno != EEXIST)
        return sandbox_error_set(err, S300, "%s cannot be made: %s", launcher->mount_path,
                                 strerror(errno));
    return 0;
}

void launcher_done(struct launcher *launcher)
{
    if (launcher->mount_path)
        (void)rmdir(launcher->mount_path);
    free(launcher->bwrap);
    free(launcher->agent);
    free(launcher->mount_path);
    *launcher = (struct launcher){ 0 };
}
