/* work.c - see work.h. */
#include "work.h"

#include <errno.h>
#include <limits.h>
#include <time.h>

int work_init(struct work *work)
{
    pthread_condattr_t attributes;
    int result;

    *work = (struct work){ .lock = PTHREAD_MUTEX_INITIALIZER,
                           .left = PTHREAD_COND_INITIALIZER };
    list_init(&work->queue);
    result = pthread_condattr_init(&attributes);
    if (result != 0)
        return -result;
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    result = pthread_cond_init(&work->wanted, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return -result;
}

void work_done(struct work *work)
{
    (void)pthread_mutex_lock(&work->lock);
    work->stopping = true;
    (void)pthread_cond_broadcast(&work->wanted);
    while (work->threads > 0)
        (void)pthread_cond_wait(&work->left, &work->lock);
    (void)pthread_mutex_unlock(&work->lock);
    (void)pthread_cond_destroy(&work->wanted);
}

/* The next item, or NULL when the thread is to leave. The lock is held. */
static struct work_item *work_wait(struct work *work)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WORK_IDLE_SECONDS;
    work->idle++;
    while (list_empty(&work->queue) && !work->stopping) {
        if (pthread_cond_timedwait(&work->wanted, &work->lock, &until) == ETIMEDOUT)
            break;
    }
    work->idle--;
    if (list_empty(&work->queue))
        return NULL;
    work->queued--;
    return LIST_ENTRY(list_pop(&work->queue), struct work_item, node);
}

static void *work_thread(void *argument)
{
    struct work *work = argument;
    struct work_item *item;

    (void)pthread_mutex_lock(&work->lock);
    while ((item = work_wait(work))) {
        (void)pthread_mutex_unlock(&work->lock);
        item->fn(item->ctx);
        (void)pthread_mutex_lock(&work->lock);
    }
    work->threads--;
    (void)pthread_cond_signal(&work->left);
    (void)pthread_mutex_unlock(&work->lock);
    return NULL;
}

static int work_add_thread(struct work *work)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int result = pthread_attr_init(&attributes);

    if (result != 0)
        return -result;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, WORK_STACK_BYTES);
    result = pthread_create(&thread, &attributes, work_thread, work);
    (void)pthread_attr_destroy(&attributes);
    if (result == 0)
        work->threads++;
    return -result;
}

int work_run(struct work *work, struct work_item *item)
{
    int result = 0;

    (void)pthread_mutex_lock(&work->lock);
    if (work->queued >= work->idle && work->threads < WORK_THREADS_MAX)
        (void)work_add_thread(work); /* without it the others will come to it */
    if (work->threads > 0) {
        list_append(&work->queue, &item->node);
        work->queued++;
        (void)pthread_cond_signal(&work->wanted);
    } else {
        result = -EAGAIN;
    }
    (void)pthread_mutex_unlock(&work->lock);
    return result;
}
