/* subject.c - see subject.h. The router says on its ready descriptor when the adapter is bound,
 * so nothing is polled for. */

#include "subject.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
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
    char folder[64];
    char name[128];
    pid_t pid;
    int pidfd;
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

static void write_scalar(FILE *file, const struct yaml_node *node)
{
    if (node->kind == YAML_NULL)
        return;
    if (!node->quoted) {
        fputs(node->text, file);
        return;
    }
    fputc('"', file);
    for (const char *text = node->text; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

/* In flow style, which needs no indentation. */
static void write_node(FILE *file, const struct yaml_node *node)
{
    if (node->kind == YAML_SCALAR || node->kind == YAML_NULL) {
        write_scalar(file, node);
        return;
    }
    fputc(node->kind == YAML_MAP ? '{' : '[', file);
    for (size_t i = 0; i < node->count; i++) {
        if (i > 0)
            fputs(", ", file);
        if (node->kind == YAML_MAP) {
            write_scalar(file, node->keys[i]);
            fputs(": ", file);
        }
        write_node(file, node->items[i]);
    }
    fputc(node->kind == YAML_MAP ? '}' : ']', file);
}

static bool is_set(const struct case_file *file, const char *key)
{
    return file->settings && yaml_get(file->settings, key);
}

static void write_settings(FILE *file, const struct subject_options *options,
                           const struct case_file *cases)
{
    fprintf(file, "  settings:\n");
    if (!is_set(cases, "image_allowlist"))
        fprintf(file, "    image_allowlist: [%s]\n", options->image);
    for (size_t i = 0; i < options->set_count; i++) {
        const char *equals = strchr(options->sets[i], '=');
        char key[64] = "";
        snprintf(key, sizeof(key), "%.*s", (int)(equals - options->sets[i]), options->sets[i]);
        if (!is_set(cases, key))
            fprintf(file, "    %s: %s\n", key, equals + 1);
    }
    for (size_t i = 0; cases->settings && i < cases->settings->count; i++) {
        fprintf(file, "    %s: ", cases->settings->keys[i]->text);
        write_node(file, cases->settings->items[i]);
        fputc('\n', file);
    }
}

static int write_config(const struct subject *subject, const struct subject_options *options,
                        const struct case_file *cases)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/config.yaml", subject->folder);
    FILE *file = fopen(path, "we");
    if (!file)
        return -errno;
    fprintf(file, "sandbox:\n  runtime_dir: %s/run\n  listen: [\"127.0.0.1:0\"]\n",
            subject->folder);
    if (cases->router == CASE_ROUTER_BOUND)
        fprintf(file, "  adapter: %s\n  command: [\"%s\"]\n", subject->name, options->adapter);
    else if (cases->router != CASE_ROUTER_NONE)
        fprintf(file, "  adapter: %s\n  managed: false\n", subject->name);
    if (options->section)
        fprintf(file, "%s\n", options->section);
    if (cases->router == CASE_ROUTER_BOUND)
        write_settings(file, options, cases);
    return fclose(file) == 0 ? 0 : -errno;
}

/* Reads the router's ready lines until one begins with WORD. */
static int wait_ready(int fd, const char *word)
{
    char line[512];
    size_t size = 0;
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
    while (poll(&poll_fd, 1, START_TIMEOUT_MS) == 1) {
        char byte;
        if (read(fd, &byte, 1) != 1)
            return -EPIPE;
        if (byte != '\n' && size + 1 < sizeof(line)) {
            line[size++] = byte;
            continue;
        }
        line[size] = '\0';
        size = 0;
        if (strncmp(line, word, strlen(word)) == 0)
            return 0;
    }
    return -ETIMEDOUT;
}

static int start_router(struct subject *subject, const struct subject_options *options,
                        enum case_router state)
{
    char config[128], log_path[128];
    int ready[2];
    snprintf(config, sizeof(config), "%s/config.yaml", subject->folder);
    snprintf(log_path, sizeof(log_path), "%s/log", subject->folder);
    if (pipe2(ready, O_CLOEXEC) < 0)
        return -errno;
    _cleanup_close_ int reader = ready[0];
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
    return wait_ready(reader, state == CASE_ROUTER_BOUND ? "bound" : "listening");
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

static int launch(struct subject *subject, const struct subject_options *options,
                  const struct case_file *file, char *error, size_t error_size)
{
    char url[128];
    const char *name = options->adapter ? program_name(options->adapter) : ABSENT_NAME;
    if (file->router == CASE_ROUTER_ABSENT || file->router == CASE_ROUTER_MISMATCH)
        name = ABSENT_NAME;
    snprintf(subject->name, sizeof(subject->name), "%s", name);
    snprintf(subject->folder, sizeof(subject->folder), "/tmp/conformance.XXXXXX");
    if (!mkdtemp(subject->folder))
        return -errno;
    int ret = write_config(subject, options, file);
    if (ret == 0)
        ret = start_router(subject, options, file->router);
    if (ret < 0) {
        snprintf(error, error_size, "router and adapter did not start: %s; log:\n",
                 strerror(-ret));
        read_log(subject, error, error_size);
        return ret;
    }
    snprintf(url, sizeof(url), "ipc://%s/run/router.sock", subject->folder);
    ret = native_client_new(url, START_TIMEOUT_MS, &subject->client);
    if (ret == 0 && file->router == CASE_ROUTER_MISMATCH)
        ret = native_client_new_misfit(url, ABSENT_NAME, (struct contract_version){ 2, 0 },
                                       START_TIMEOUT_MS, &subject->misfit);
    return ret;
}

int subject_start(const struct subject_options *options, const struct case_file *file,
                  struct subject **ret_subject, char *error, size_t error_size)
{
    _cleanup_(subject_stopp)
    struct subject *subject = calloc(1, sizeof(*subject));
    if (!subject)
        return -ENOMEM;
    subject->pidfd = -1;
    error[0] = '\0';
    int ret = options->router_url
                  ? native_client_new(options->router_url, START_TIMEOUT_MS, &subject->client)
                  : launch(subject, options, file, error, error_size);
    if (ret < 0) {
        if (!error[0])
            snprintf(error, error_size, "cannot connect: %s", strerror(-ret));
        return ret;
    }
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
    if (subject->folder[0])
        (void)nftw(subject->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* left in /tmp */
    free(subject);
}

struct native_client *subject_client(struct subject *subject)
{
    return subject->client;
}

const char *subject_adapter_name(const struct subject *subject)
{
    return subject->name;
}
