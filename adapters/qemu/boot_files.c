/* boot_files.c - see boot_files.h. */
#include "boot_files.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "libexec.h"
#include "log.h"
#include "proc.h"
#include "process_tree.h"

#define PROGRAM "boot-install"
#define AGENT "sandbox-guest-agent"
#define OUTPUT_MAX_BYTES 65536u
#define WHY_MAX_BYTES 1024u
#define SETS_MAX 8 /* sizes of disks; more come only by that many reloads */

enum boot_files_state { BOOT_FILES_IDLE, BOOT_FILES_MAKING, BOOT_FILES_STATE_MAX };

struct boot_files {
    struct loop *loop;
    const struct qemu_settings *settings;
    char *directory;
    enum boot_files_state state;
    struct list waits;        /* struct boot_wait */
    struct loop_notice check; /* deferred: somebody came while another size was being made */

    struct {
        uint32_t disk_mb; /* 0: free */
        struct boot_file_set set;
    } made[SETS_MAX];
    unsigned next; /* that a new set replaces */

    bool wanted;      /* by one who does not wait */
    uint32_t disk_mb; /* of the run under way */
    pid_t pid;
    struct loop_child *child;
    int output_fd; /* standard output and error of the program */
    struct loop_io *io;
    struct buf output;
};

static const struct boot_file_set no_files = { -1, -1, -1, "" };

static void set_close(struct boot_file_set *set)
{
    closep(&set->kernel_fd);
    closep(&set->initrd_fd);
    closep(&set->blank_fd);
}

static void boot_files_run_end(struct boot_files *files)
{
    loop_child_free(take_ptr(files->child));
    loop_io_free(take_ptr(files->io));
    closep(&files->output_fd);
    files->state = BOOT_FILES_IDLE;
}

void boot_files_free(struct boot_files *files)
{
    if (!files)
        return;
    if (files->child)
        process_tree_kill(files->pid);
    boot_files_run_end(files);
    loop_notice_cancel(files->loop, &files->check);
    for (size_t i = 0; i < SETS_MAX; i++)
        set_close(&files->made[i].set);
    buf_done(&files->output);
    free(files->directory);
    free(files);
}

/* Waits. */

void boot_wait_init(struct boot_wait *wait, void (*done)(void *ctx, const char *why), void *ctx)
{
    list_init(&wait->node);
    wait->done = done;
    wait->ctx = ctx;
}

void boot_wait_cancel(struct boot_wait *wait)
{
    list_remove(&wait->node);
}

static void tell_waits(struct boot_files *files, const char *why)
{
    struct list telling, *node;

    list_init(&telling);
    list_move_all(&telling, &files->waits);
    while ((node = list_pop(&telling))) {
        struct boot_wait *wait = LIST_ENTRY(node, struct boot_wait, node);

        wait->done(wait->ctx, why);
    }
}

/* The program's answer. */

/* The value behind `KEY ` in a line of its own, NUL-terminated in place; NULL: not there. */
static char *output_value(char *output, const char *key)
{
    size_t size = strlen(key);
    char *line = output;

    while (line && (strncmp(line, key, size) != 0 || line[size] != ' ')) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return line ? line + size + 1 : NULL;
}

static int open_value(char *output, const char *key, int flags)
{
    char path[4096];
    const char *value = output_value(output, key);
    int fd;

    if (!value)
        return -EBADMSG;
    (void)snprintf(path, sizeof(path), "%.*s", (int)strcspn(value, "\n"), value);
    fd = open(path, flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int boot_files_open(struct boot_files *files)
{
    struct boot_file_set set = no_files;
    char *output = (char *)(uintptr_t)buf_text(&files->output);
    const char *version = output ? output_value(output, "version") : NULL;
    int result = version ? 0 : -EBADMSG;

    if (result == 0)
        result = set.kernel_fd = open_value(output, "kernel", O_RDONLY);
    if (result >= 0)
        result = set.initrd_fd = open_value(output, "initrd", O_RDONLY);
    if (result >= 0)
        result = set.blank_fd = open_value(output, "blank", O_RDONLY);
    if (result < 0) {
        set_close(&set);
        return result;
    }
    (void)snprintf(set.version, sizeof(set.version), "%.*s", (int)strcspn(version, "\n"),
                   version);
    set_close(&files->made[files->next].set);
    files->made[files->next].set = set;
    files->made[files->next].disk_mb = files->disk_mb;
    files->next = (files->next + 1) % SETS_MAX;
    log_event(LOG_INFO, "boot_files", log_text("kernel", set.version),
              log_uint("disk_mb", files->disk_mb));
    return 0;
}

static const char *last_line(struct boot_files *files)
{
    const char *text, *newline;

    while (files->output.size > 0 && files->output.data[files->output.size - 1] == '\n')
        files->output.size--;
    text = buf_text(&files->output);
    newline = text ? strrchr(text, '\n') : NULL;
    return newline ? newline + 1 : text ? text : "";
}

static void on_output(void *ctx, uint32_t events)
{
    struct boot_files *files = ctx;
    char data[4096];
    ssize_t size = read(files->output_fd, data, sizeof(data));

    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
        loop_io_free(take_ptr(files->io));
        return;
    }
    if (size < 0)
        return;
    if (files->output.size + (size_t)size > OUTPUT_MAX_BYTES)
        buf_clear(&files->output);                        /* its end is what counts */
    (void)buf_append(&files->output, data, (size_t)size); /* too little is noticed later */
}

static void on_ended(void *ctx, int wait_status)
{
    struct boot_files *files = ctx;
    char why[WHY_MAX_BYTES];
    int result = -ECHILD;

    while (files->io)
        on_output(files, EPOLLIN); /* the program is over, so this ends */
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0)
        result = boot_files_open(files);
    if (result == -ECHILD)
        (void)snprintf(why, sizeof(why), PROGRAM ": %s", last_line(files));
    else if (result < 0)
        (void)snprintf(why, sizeof(why), PROGRAM ": %s", strerror(-result));
    boot_files_run_end(files);
    if (result < 0)
        log_event(LOG_ERROR, "boot_files_failed", log_text("why", why));
    tell_waits(files, result < 0 ? why : NULL);
}

/* Starting the program. */

static int boot_files_spawn(struct boot_files *files, const char *program, const char *agent)
{
    const struct qemu_settings *settings = files->settings;
    _cleanup_close_ int their_fd = -1;
    char disk_mb[16];
    const char *argv[16] = { program, "--cache",   files->directory, "--agent",
                             agent,   "--disk-mb", disk_mb };
    size_t count = 7;
    int pipe_fds[2], result;

    (void)snprintf(disk_mb, sizeof(disk_mb), "%u", files->disk_mb);
    if (settings->kernel) {
        argv[count++] = "--kernel";
        argv[count++] = settings->kernel;
    }
    if (settings->initrd) {
        argv[count++] = "--initrd";
        argv[count++] = settings->initrd;
    }
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return -errno;
    files->output_fd = pipe_fds[0];
    their_fd = pipe_fds[1];
    const struct proc_fd fds[] = { { their_fd, 1 }, { their_fd, 2 } };

    result = loop_spawn(files->loop,
                        &(struct proc_spec){ .program = program,
                                             .argv = argv,
                                             .fds = fds,
                                             .fd_count = ARRAY_SIZE(fds),
                                             .new_session = true,
                                             .die_with_parent = true },
                        on_ended, files, &files->pid, &files->child);
    if (result == 0)
        result = loop_io_new(files->loop, files->output_fd, EPOLLIN, on_output, files,
                             &files->io);
    return result;
}

static int boot_files_begin(struct boot_files *files)
{
    _cleanup_free_ char *program = libexec_find(PROGRAM);
    _cleanup_free_ char *agent = files->settings->agent ? strdup(files->settings->agent)
                                                        : libexec_find(AGENT);
    int result = program && agent ? 0 : -ENOENT;

    assert(files->state == BOOT_FILES_IDLE);
    buf_clear(&files->output);
    files->state = BOOT_FILES_MAKING;
    if (result == 0)
        result = boot_files_spawn(files, program, agent);
    if (result < 0)
        boot_files_run_end(files);
    return result;
}

/* Whoever came meanwhile may want another size; then the others simply ask again. */
static void on_check(void *ctx)
{
    struct boot_files *files = ctx;
    char why[128];
    int result;

    if (files->state == BOOT_FILES_MAKING || !(files->wanted || !list_empty(&files->waits)))
        return;
    files->wanted = false;
    result = boot_files_begin(files);
    if (result == 0)
        return;
    (void)snprintf(why, sizeof(why), PROGRAM " cannot be started: %s", strerror(-result));
    tell_waits(files, why);
}

const struct boot_file_set *boot_files_get(struct boot_files *files, uint32_t disk_mb,
                                           struct boot_wait *wait)
{
    for (size_t i = 0; i < SETS_MAX; i++)
        if (files->made[i].disk_mb == disk_mb)
            return &files->made[i].set;
    if (files->state == BOOT_FILES_IDLE)
        files->disk_mb = disk_mb;
    if (wait)
        list_append(&files->waits, &wait->node);
    files->wanted |= !wait;
    loop_defer(files->loop, &files->check);
    return NULL;
}

int boot_files_new(struct loop *loop, const char *cache_directory,
                   const struct qemu_settings *settings, struct boot_files **ret_files)
{
    _cleanup_(boot_files_freep)
    struct boot_files *files = calloc(1, sizeof(*files));

    if (!files)
        return -ENOMEM;
    *files = (struct boot_files){ .loop = loop, .settings = settings, .output_fd = -1 };
    for (size_t i = 0; i < SETS_MAX; i++)
        files->made[i].set = no_files;
    list_init(&files->waits);
    loop_notice_init(&files->check, on_check, files);
    if (asprintf(&files->directory, "%s/boot", cache_directory) < 0) {
        files->directory = NULL;
        return -ENOMEM;
    }
    *ret_files = take_ptr(files);
    return 0;
}
