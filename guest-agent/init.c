/* init.c - see init.h. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "agent_frame.h"
#include "cleanup.h"
#include "devices.h"
#include "log.h"
#include "network.h"
#include "programs.h"
#include "tunables.h"

#define DEVICE_TIMEOUT_MS 20000
#define PORT_NAME "agent"

/* Where things stand in the initramfs, before the root is moved. */
#define LOWER "/lower"
#define DISK "/disk"
#define ROOT "/root"
#define WORKSPACE_LOWER "/workspace"
#define WORKSPACE ROOT "/workspace"

/* Kernel command line: the disk whose tree is shown at /workspace, writable like the root. */
#define WORKSPACE_OPTION "sandbox.workspace="
#define DEVICE_BYTES 32

struct mount_row {
    const char *source;
    const char *target;
    const char *type;
    unsigned long flags;
    const char *options;
};

static const struct mount_row early_mounts[] = {
    { "devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "mode=0755" },
    { "proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL },
    { "sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL },
    { "cgroup2", "/sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL },
    { "devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "mode=0620,gid=5,ptmxmode=0666" },
    { "tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777" },
};

/* What every program may expect of /dev and devtmpfs does not have. */
static const struct {
    const char *target;
    const char *name;
} device_links[] = {
    { "/proc/self/fd", "/dev/fd" },
    { "/proc/self/fd/0", "/dev/stdin" },
    { "/proc/self/fd/1", "/dev/stdout" },
    { "/proc/self/fd/2", "/dev/stderr" },
};

static int mount_one(const struct mount_row *row)
{
    (void)mkdir(row->target, 0755); /* shows in the mount if it fails */
    if (mount(row->source, row->target, row->type, row->flags, row->options) == 0)
        return 0;
    log_event(LOG_ERROR, "mount_failed", log_text("target", row->target),
              log_text("type", row->type), log_text("error", strerror(errno)));
    return -errno;
}

static int mount_early(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(early_mounts); i++) {
        int result = mount_one(&early_mounts[i]);

        if (result == -EBUSY) /* the kernel mounted it itself */
            continue;
        if (result < 0)
            return result;
    }
    for (size_t i = 0; i < ARRAY_SIZE(device_links); i++)
        (void)!symlink(device_links[i].target, device_links[i].name);
    return 0;
}

/* The log goes to the console; without one, to the kernel's log. */
static void open_console(void)
{
    _cleanup_close_ int fd = open("/dev/console", O_RDWR | O_NOCTTY | O_CLOEXEC);
    _cleanup_close_ int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (fd < 0)
        fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
    if (null_fd >= 0) {
        (void)dup2(null_fd, 0);
        (void)dup2(null_fd, 1);
    }
    (void)dup2(fd >= 0 ? fd : null_fd, 2);
    if (fd >= 0 && fd <= 2)
        (void)take_fd(&fd); /* it is one of the three itself */
    if (null_fd >= 0 && null_fd <= 2)
        (void)take_fd(&null_fd);
}

#define ROOT_LAYERS "lowerdir=" LOWER ",upperdir=" DISK "/upper,workdir=" DISK "/work"

/* Without these the kernel defines what an overlay shows after what lies below has changed: the
 * upper layer, and where that has nothing, the lower one as it is now. */
#define LASTING_OPTIONS "redirect_dir=off,index=off,metacopy=off,xino=off"

/* A thread of the kernel would look through the whole disk ahead of its use. */
#define DISK_OPTIONS "noinit_itable,no_prefetch_block_bitmaps"

/* The image, whichever of the two formats it has. */
static int mount_image(void)
{
    static const struct mount_row rows[] = {
        { "/dev/vda", LOWER, "erofs", MS_RDONLY | MS_NOATIME, NULL },
        { "/dev/vda", LOWER, "squashfs", MS_RDONLY | MS_NOATIME, NULL },
    };

    (void)mkdir(LOWER, 0755);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (mount(rows[i].source, rows[i].target, rows[i].type, rows[i].flags, NULL) == 0)
            return 0;
    }
    return mount_one(&rows[0]);
}

/* The writable layer's disk. A kernel of one's own may know less. */
static int mount_disk(void)
{
    static const struct mount_row plain = { "/dev/vdb", DISK, "ext4", MS_NOATIME, NULL };

    (void)mkdir(DISK, 0755);
    if (mount(plain.source, plain.target, plain.type, plain.flags, DISK_OPTIONS) == 0)
        return 0;
    return mount_one(&plain);
}

/* The image under the writable layer. Directories of the image can be renamed only with
 * redirect_dir. A layer that LASTS may be mounted over another image the next time. */
static int mount_root(bool lasts)
{
    const struct mount_row overlay = {
        "overlay",
        ROOT,
        "overlay",
        MS_NOATIME,
        lasts ? ROOT_LAYERS "," LASTING_OPTIONS : ROOT_LAYERS ",redirect_dir=on",
    };
    int result = mount_image();

    if (result == 0)
        result = mount_disk();
    if (result < 0)
        return result;
    (void)mkdir(DISK "/upper", 0755);
    (void)mkdir(DISK "/work", 0755);
    return mount_one(&overlay);
}

/* The disk of WORKSPACE_OPTION as a path. False: none is named. */
static bool workspace_device(char ret_path[DEVICE_BYTES])
{
    char text[4096];
    _cleanup_close_ int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    const char *option;

    if (size < 0)
        return false;
    text[size] = 0;
    option = strstr(text, WORKSPACE_OPTION);
    if (!option)
        return false;
    option += strlen(WORKSPACE_OPTION);
    (void)snprintf(ret_path, DEVICE_BYTES, "/dev/%.*s", (int)strcspn(option, " \n"), option);
    return true;
}

/* The third disk; what is written to it lies on the second beside the root's layer. */
static int mount_workspace(const char *device)
{
    static const struct mount_row overlay = {
        "overlay",
        WORKSPACE,
        "overlay",
        MS_NOATIME,
        "lowerdir=" WORKSPACE_LOWER ",upperdir=" DISK "/workspace,workdir=" DISK
        "/workspace-work," LASTING_OPTIONS,
    };
    const struct mount_row image = { device, WORKSPACE_LOWER, "erofs", MS_RDONLY | MS_NOATIME,
                                     NULL };
    int result = mount_one(&image);

    if (result < 0)
        return result;
    (void)mkdir(DISK "/workspace", 0755);
    (void)mkdir(DISK "/workspace-work", 0755);
    return mount_one(&overlay);
}

/* Moves the mounts that programs need into the new root and makes that ours. */
static int switch_root(void)
{
    static const char *const moved[] = { "/dev", "/proc", "/sys" };

    if (chdir(ROOT) < 0)
        return -errno;
    for (size_t i = 0; i < ARRAY_SIZE(moved); i++) {
        const char *target = moved[i] + 1; /* in the working directory */

        (void)mkdir(target, 0755);
        if (mount(moved[i], target, NULL, MS_MOVE, NULL) < 0)
            return -errno;
    }
    if (mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
        return -errno;
    return 0;
}

static int step_failed(const char *step, int result)
{
    log_event(LOG_ERROR, "init_failed", log_text("step", step),
              log_text("error", strerror(-result)));
    return result;
}

/* Modules and disks; WORKSPACE_DISK may be NULL. */
static int prepare_devices(int listen_fd, const char *workspace_disk)
{
    const char *const disks[] = { "/dev/vda", "/dev/vdb", workspace_disk };
    int result = devices_load_modules();

    if (result < 0)
        return step_failed("modules", result);
    for (size_t i = 0; i < ARRAY_SIZE(disks) && disks[i]; i++) {
        result = devices_await(listen_fd, disks[i], DEVICE_TIMEOUT_MS);
        if (result < 0)
            return step_failed(disks[i], result);
    }
    return 0;
}

/* The root and what stands in it. */
static int prepare_root(const char *workspace_disk)
{
    int result = mount_root(workspace_disk != NULL);

    if (result < 0)
        return step_failed("root", result);
    result = workspace_disk ? mount_workspace(workspace_disk) : 0;
    if (result < 0)
        return step_failed("workspace", result);
    result = switch_root();
    if (result < 0)
        return step_failed("switch_root", result);
    result = network_loopback_up();
    return result < 0 ? step_failed("loopback", result) : 0;
}

/* A machine without one is slower, no worse. */
static int open_mailbox(void)
{
    int fd = devices_open_disk(AGENT_MAILBOX_SERIAL);

    if (fd < 0 && fd != -ENOENT)
        log_event(LOG_WARN, "mailbox_not_used", log_text("error", strerror(-fd)));
    return fd < 0 ? -1 : fd;
}

static int prepare(struct init_fds *ret_fds)
{
    _cleanup_close_ int listen_fd = devices_listen();
    char device[DEVICE_BYTES];
    const char *workspace_disk;
    int result = mount_early();

    open_console();
    if (result < 0)
        return step_failed("mounts", result);
    if (listen_fd < 0)
        return step_failed("uevents", listen_fd);
    workspace_disk = workspace_device(device) ? device : NULL;
    result = prepare_devices(listen_fd, workspace_disk);
    if (result < 0)
        return result;
    tunables_set();
    result = prepare_root(workspace_disk);
    if (result < 0)
        return result;
    ret_fds->channel = devices_open_port(listen_fd, PORT_NAME, DEVICE_TIMEOUT_MS);
    if (ret_fds->channel < 0)
        return step_failed("port", ret_fds->channel);
    ret_fds->mailbox = open_mailbox();
    sync(); /* a template copies the disk as it is now */
    return 0;
}

static uint64_t memory_bytes(void)
{
    struct sysinfo info;

    return sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : 0;
}

_Noreturn void init_machine(init_run_fn run)
{
    struct init_fds fds = { -1, -1, -1 };

    if (prepare(&fds) == 0) {
        fds.cgroup = programs_open(open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                   memory_bytes());
        (void)run(&fds, true);
    }
    (void)reboot(RB_POWER_OFF);
    (void)reboot(RB_AUTOBOOT); /* where nothing can cut the power; QEMU runs with -no-reboot */
    for (;;)
        (void)pause();
}
