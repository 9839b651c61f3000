/* stray.c - see stray.h. */
#include "stray.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "proc.h"

struct stray {
    struct list node;
    struct list *all;
    pid_t pid;
    struct loop_child *child; /* NULL: its end is not watched */
};

static void stray_free(struct stray *stray)
{
    loop_child_free(stray->child);
    list_remove(&stray->node);
    free(stray);
}

/* Those whose end could not be watched: when there is another reason to look. */
static void strays_reap(struct list *strays)
{
    LIST_FOREACH(node, strays)
    {
        struct stray *stray = LIST_ENTRY(node, struct stray, node);

        if (!stray->child && waitpid(stray->pid, NULL, WNOHANG) != 0)
            stray_free(stray);
    }
}

static void on_ended(void *ctx, int wait_status)
{
    struct stray *stray = ctx;
    struct list *all = stray->all;

    stray_free(stray);
    strays_reap(all);
}

void strays_add(struct list *strays, struct loop *loop, pid_t pid)
{
    struct stray *stray = calloc(1, sizeof(*stray));
    int pidfd = proc_pidfd_open(pid);

    (void)kill(pid, SIGKILL); /* it may have ended by itself */
    strays_reap(strays);
    if (!stray) {
        closep(&pidfd);
        return; /* out of memory: it stays a zombie */
    }
    stray->all = strays;
    stray->pid = pid;
    list_append(strays, &stray->node);
    if (pidfd >= 0)
        (void)loop_child_new(loop, pid, pidfd, on_ended, stray, &stray->child);
}

void strays_end(struct list *strays)
{
    LIST_FOREACH(node, strays)
    {
        struct stray *stray = LIST_ENTRY(node, struct stray, node);

        while (waitpid(stray->pid, NULL, 0) < 0 && errno == EINTR) /* killed, so it ends */
            ;
        stray_free(stray);
    }
}
