/* confine.c - see confine.h: the adapter's side. */
#include "confine.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine_landlock.h"
#include "log.h"
#include "proc.h"

#define QEMU_OPEN_FILES_MAX 256

static int lookup_user(struct confine *confine, const char *user, struct sandbox_error *err)
{
    const struct passwd *entry = getpwnam(user);

    if (!confine->is_root)
        return 0;
    if (!entry || entry->pw_uid == 0)
        return sandbox_error_set(err, S300, "sandbox.qemu.user %s is %s", user,
                                 entry ? "root" : "unknown");
    confine->uid = entry->pw_uid;
    confine->gid = entry->pw_gid;
    return 0;
}

/* Whether a program can be started so. */
static int try_out(const struct confine *confine)
{
    const char *const argv[] = { "true", NULL };
    struct confine_child child = { .confine = confine, .rules_fd = -1 };
    _cleanup_close_ int pidfd = -1;
    siginfo_t end = { 0 };
    pid_t pid;
    int result = proc_spawn(&(struct proc_spec){ .program = "true",
                                                 .argv = argv,
                                                 .before_exec = confine_child,
                                                 .before_exec_ctx = &child },
                            &pid, &pidfd);

    if (result == 0)
        (void)waitid(P_PIDFD, (id_t)pidfd, &end, WEXITED); /* it does nothing, so it ends */
    return result;
}

static void warn_missing(const char *layer, int error)
{
    log_event(LOG_WARN, "confine_missing", log_text("layer", layer),
              log_text("error", strerror(-error)));
}

/* /opt/qemu for /opt/qemu/bin/qemu; NULL where the system's folders have it anyway. */
static char *program_folder(const char *program)
{
    char *path = strchr(program, '/') ? realpath(program, NULL) : NULL;

    for (int up = 0; path && up < 2; up++) {
        char *slash = strrchr(path, '/');

        if (slash)
            *slash = 0;
    }
    if (path && (!*path || strcmp(path, "/usr") == 0)) {
        free(path);
        path = NULL;
    }
    return path;
}

int confine_init(struct confine *confine, const struct confine_options *options,
                 struct sandbox_error *err)
{
    int result;

    *confine = (struct confine){
        .is_root = geteuid() == 0,
        .namespaces = true,
        .open_files_max = QEMU_OPEN_FILES_MAX,
        .extra_group = options->extra_group,
        .own_uid = geteuid(),
        .own_gid = getegid(),
    };
    if (lookup_user(confine, options->user, err) < 0)
        return -1;
    result = try_out(confine);
    if (result < 0) {
        warn_missing("namespaces", result);
        confine->namespaces = false;
        result = try_out(confine);
    }
    if (result < 0)
        return sandbox_error_set(err, S300, "a program cannot be started as user %s: %s",
                                 options->user, strerror(-result));
    result = confine_landlock_version(&confine->landlock);
    if (result < 0)
        warn_missing("landlock", result);
    confine->program_folder = program_folder(options->program);
    return 0;
}

void confine_done(struct confine *confine)
{
    free(take_ptr(confine->program_folder));
}

int confine_rules(const struct confine *confine, const int *fds, size_t fd_count)
{
    if (confine->landlock == 0)
        return -1;
    return confine_landlock_rules(
        &(struct landlock_options){ .version = confine->landlock,
                                    .folder = confine->program_folder,
                                    .network = confine->keep_network },
        fds, fd_count);
}
