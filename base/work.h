/* work.h - threads for work that may block, so that it blocks nothing else.
 *
 * Threads are made when work comes and nobody is idle, and leave after some idle seconds. When
 * all of them are stuck, work waits its turn. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "list.h"

#define WORK_THREADS_MAX 128u
#define WORK_IDLE_SECONDS 10
#define WORK_STACK_BYTES (512u * 1024)

struct work {
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    pthread_cond_t left; /* a thread has left */
    struct list queue;   /* struct work_item */
    unsigned queued;
    unsigned threads;
    unsigned idle;
    bool stopping;
};

/* Lives in its owner, who must not free it before FN was called. */
struct work_item {
    struct list node;
    void (*fn)(void *ctx);
    void *ctx;
};

int work_init(struct work *work); /* 0 or -errno */
/* Waits for the threads; the owner has made sure that none stays stuck. */
void work_done(struct work *work);

/* Calls FN on a thread, soon. 0, or -EAGAIN: there is no thread and none can be made. */
int work_run(struct work *work, struct work_item *item);
