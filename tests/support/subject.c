/* subject.c - see subject.h. The router says on its ready descriptor when the adapter is bound,
 * so nothing is polled for. */

#include "subject.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "proc.h"

#define START_TIMEOUT_MS 60000
#define STOP_TIMEOUT_MS 30000
#define ABSENT_NAME "sandbox-absent"

struct subject {
    struct subject_options options; /* its texts are the caller's */
    char folder[64];
    char url[128];
    char name[128];
    pid_t pid;
    int pidfd;
    int ready_fd; /* the router's ready lines */
    uint16_t web_port;
    struct native_client *client;
    struct native_client *misfit;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

/* ADAPTER's name is its program's last part. */
static const char *program_name(const char *program)
{
    const char *slash = strrchr(program, '/');
    return slash ? slash + 1 : program;
}

static int write_config(const struct subject *subject, const char *settings)
{
    const struct subject_options *options = &subject->options;
    char path[128], fresh_path[128];
    snprintf(path, sizeof(path), "%s/config.yaml", subject->folder);
    snprintf(fresh_path, sizeof(fresh_path), "%s/config.yaml.new", subject->folder);
    FILE *file = fopen(fresh_path, "we");
    if (!file)
        return -errno;
    fprintf(file, "sandbox:\n  runtime_dir: %s/run\n  listen: [\"127.0.0.1:0\"]\n",
            subject->folder);
    if (options->state == SUBJECT_BOUND)
        fprintf(file, "  adapter: %s\n  command: [\"%s\"]\n", subject->name, options->adapter);
    else if (options->state != SUBJECT_NONE)
        fprintf(file, "  adapter: %s\n  managed: false\n", subject->name);
    if (options->section)
        fprintf(file, "%s\n", options->section);
    if (settings)
        fprintf(file, "  settings:\n%s\n", settings);
    if (settings && !strstr(settings, "state_dir:"))
        fprintf(file, "    state_dir: %s/state\n", subject->folder);
    if (fclose(file) != 0)
        return -errno;
    return rename(fresh_path, path) == 0 ? 0 : -errno;
}

static void note_ready(struct subject *subject, const char *line)
{
    unsigned port;
    if (sscanf(line, "listening %u", &port) == 1)
        subject->web_port = (uint16_t)port;
}

/* Reads the router's ready lines until one begins with WORD. */
static int wait_ready(struct subject *subject, const char *word)
{
    char line[512];
    size_t size = 0;
    struct pollfd poll_fd = { .fd = subject->ready_fd, .events = POLLIN };
    while (poll(&poll_fd, 1, START_TIMEOUT_MS) == 1) {
        char byte;
        if (read(subject->ready_fd, &byte, 1) != 1)
            return -EPIPE;
        if (byte != '\n' && size + 1 < sizeof(line)) {
            line[size++] = byte;
            continue;
        }
        line[size] = '\0';
        size = 0;
        note_ready(subject, line);
        if (strncmp(line, word, strlen(word)) == 0)
            return 0;
    }
    return -ETIMEDOUT;
}

static int start_router(struct subject *subject)
{
    const struct subject_options *options = &subject->options;
    char config[128], log_path[128];
    int ready[2];
    snprintf(config, sizeof(config), "%s/config.yaml", subject->folder);
    snprintf(log_path, sizeof(log_path), "%s/log", subject->folder);
    if (pipe2(ready, O_CLOEXEC) < 0)
        return -errno;
    subject->ready_fd = ready[0];
    _cleanup_close_ int writer = ready[1];
    _cleanup_close_ int log_fd = options->verbose
                                     ? dup(2)
                                     : open(log_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    const char *const argv[] = {
        options->router_program, "--config", config, "--ready-fd", "3", NULL
    };
    const struct proc_fd fds[] = { { log_fd, 2 }, { writer, 3 } };
    int ret = proc_spawn(&(struct proc_spec){ .program = options->router_program,
                                              .argv = argv,
                                              .fds = fds,
                                              .fd_count = ARRAY_SIZE(fds),
                                              .die_with_parent = true },
                         &subject->pid, &subject->pidfd);
    if (ret < 0)
        return ret;
    closep(&writer);
    return wait_ready(subject, options->state == SUBJECT_BOUND ? "bound" : "listening");
}

/* The last lines of the log, for the error. */
static void read_log(const struct subject *subject, char *error, size_t error_size)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/log", subject->folder);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    size_t used = strlen(error);
    (void)fseek(file, -1500, SEEK_END); /* a shorter log is read from its start */
    size_t count = fread(error + used, 1, error_size - used - 1, file);
    error[used + count] = '\0';
    (void)fclose(file); /* read only */
}

static int launch(struct subject *subject, char *error, size_t error_size)
{
    const struct subject_options *options = &subject->options;
    const char *name = options->state == SUBJECT_BOUND ? program_name(options->adapter)
                                                       : ABSENT_NAME;
    snprintf(subject->name, sizeof(subject->name), "%s", name);
    snprintf(subject->folder, sizeof(subject->folder), "/tmp/subject.XXXXXX");
    if (!mkdtemp(subject->folder))
        return -errno;
    snprintf(subject->url, sizeof(subject->url), "ipc://%s/run/router.sock", subject->folder);
    int ret = write_config(subject, options->settings);
    if (ret == 0)
        ret = start_router(subject);
    if (ret < 0) {
        snprintf(error, error_size, "router and adapter did not start: %s; log:\n",
                 strerror(-ret));
        read_log(subject, error, error_size);
        return ret;
    }
    ret = native_client_new(subject->url, START_TIMEOUT_MS, &subject->client);
    if (ret == 0 && options->state == SUBJECT_MISMATCH)
        ret = native_client_new_misfit(subject->url, ABSENT_NAME,
                                       (struct contract_version){ 2, 0 }, START_TIMEOUT_MS,
                                       &subject->misfit);
    return ret;
}

int subject_start(const struct subject_options *options, struct subject **ret_subject,
                  char *error, size_t error_size)
{
    _cleanup_(subject_stopp)
    struct subject *subject = calloc(1, sizeof(*subject));
    int ret;

    if (!subject)
        return -ENOMEM;
    subject->options = *options;
    subject->pidfd = -1;
    subject->ready_fd = -1;
    error[0] = '\0';
    if (options->router_url) {
        snprintf(subject->url, sizeof(subject->url), "%s", options->router_url);
        ret = native_client_new(subject->url, START_TIMEOUT_MS, &subject->client);
    } else {
        ret = launch(subject, error, error_size);
    }
    if (ret < 0) {
        if (!error[0])
            snprintf(error, error_size, "cannot connect: %s", strerror(-ret));
        return ret;
    }
    subject->options.settings = NULL; /* in the file by now */
    *ret_subject = take_ptr(subject);
    return 0;
}

void subject_stop(struct subject *subject)
{
    if (!subject)
        return;
    native_client_free(subject->misfit);
    native_client_free(subject->client);
    if (subject->pid > 0) {
        struct pollfd poll_fd = { .fd = subject->pidfd, .events = POLLIN };
        (void)proc_pidfd_signal(subject->pidfd, SIGTERM); /* it may have ended by itself */
        if (poll(&poll_fd, 1, STOP_TIMEOUT_MS) != 1)
            (void)proc_pidfd_signal(subject->pidfd, SIGKILL); /* the same */
        (void)waitpid(subject->pid, NULL, 0);                 /* our child, it has ended */
    }
    closep(&subject->pidfd);
    closep(&subject->ready_fd);
    if (subject->folder[0])
        (void)nftw(subject->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* left in /tmp */
    free(subject);
}

int subject_configure(struct subject *subject, const char *settings)
{
    return subject->pid > 0 ? write_config(subject, settings) : -ENOTSUP;
}

/* The children of the router's threads: the adapter alone. */
static int kill_children(pid_t pid)
{
    char pattern[64];
    glob_t files;
    int killed = 0;
    snprintf(pattern, sizeof(pattern), "/proc/%d/task/*/children", (int)pid);
    if (glob(pattern, 0, NULL, &files) != 0)
        return -ESRCH;
    for (size_t i = 0; i < files.gl_pathc; i++) {
        FILE *file = fopen(files.gl_pathv[i], "re");
        int child;
        while (file && fscanf(file, "%d", &child) == 1)
            killed += child > 1 && kill(child, SIGKILL) == 0;
        if (file)
            (void)fclose(file); /* read only */
    }
    globfree(&files);
    return killed > 0 ? 0 : -ESRCH;
}

int subject_restart_adapter(struct subject *subject)
{
    if (subject->pid <= 0)
        return -ENOTSUP;
    int ret = kill_children(subject->pid);
    return ret < 0 ? ret : wait_ready(subject, "bound");
}

uint16_t subject_web_port(const struct subject *subject)
{
    return subject->web_port;
}

struct native_client *subject_client(struct subject *subject)
{
    return subject->client;
}

const char *subject_adapter_name(const struct subject *subject)
{
    return subject->name;
}

const char *subject_url(const struct subject *subject)
{
    return subject->url;
}

pid_t subject_router_pid(const struct subject *subject)
{
    return subject->pid;
}
