/* reap.c - see reap.h. */
#include "reap.h"

#include <errno.h>
#include <sys/wait.h>

static void reaper_collect(void *ctx, int signal_number)
{
    struct reaper *reaper = ctx;
    int status;
    pid_t pid;

    (void)signal_number;
    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        struct reap_watch *watch = table_remove(reaper->watches, (uint64_t)pid);

        if (!watch)
            continue;
        watch->pid = 0;
        watch->ended(watch->ctx, status);
    }
}

int reaper_init(struct reaper *reaper, struct loop *loop)
{
    int result;

    *reaper = (struct reaper){ 0 };
    result = table_new(&reaper->watches);
    if (result < 0)
        return result;
    return loop_signal_new(loop, SIGCHLD, reaper_collect, reaper, &reaper->signal);
}

void reaper_done(struct reaper *reaper)
{
    loop_signal_free(take_ptr(reaper->signal));
    table_free(take_ptr(reaper->watches));
}

int reaper_watch(struct reaper *reaper, pid_t pid, void (*ended)(void *ctx, int wait_status),
                 void *ctx, struct reap_watch *watch)
{
    struct reap_watch *stale = table_remove(reaper->watches, (uint64_t)pid);

    if (stale)
        stale->pid = 0; /* its child was reaped by another, or the number were not free again */
    *watch = (struct reap_watch){ .pid = pid, .ended = ended, .ctx = ctx };
    return table_put(reaper->watches, (uint64_t)pid, watch);
}

void reaper_forget(struct reaper *reaper, struct reap_watch *watch)
{
    if (watch->pid > 0)
        (void)table_remove(reaper->watches, (uint64_t)watch->pid);
    watch->pid = 0;
}
