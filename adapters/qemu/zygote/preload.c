/* preload.c - the zygote's side (../zygote.h). Preloaded into QEMU: it takes the place of two
 * of libc's functions (and standstill.c of two others), and main() begins in a clone.
 *
 * A process with threads cannot be cloned: a thread that QEMU starts in front of main() is
 * started in each machine instead. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "message.h"
#include "proc.h"
#include "standstill.h"

#define EXPORTED __attribute__((visibility("default")))
#define SOCKET_FD 100 /* above all that a machine has */
#define THREADS_MAX 8

typedef int main_fn(int argc, char **argv, char **environment);
typedef int start_fn(main_fn *main, int argc, char **argv, void (*init)(void),
                     void (*fini)(void), void (*ld_fini)(void), void *stack_end);
typedef int thread_fn(pthread_t *thread, const pthread_attr_t *attributes,
                      void *(*run)(void *ctx), void *ctx);

int __libc_start_main(main_fn *main, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*ld_fini)(void), void *stack_end);

/* A thread that waits for its process. */
struct waiting_thread {
    void *(*run)(void *ctx);
    void *ctx;
    sigset_t blocked;
};

static main_fn *real_main;
static bool begun; /* we are a machine */
static struct waiting_thread threads[THREADS_MAX];
static size_t thread_count;

/* Threads. */

static int thread_start(pthread_t *thread, const pthread_attr_t *attributes,
                        void *(*run)(void *ctx), void *ctx)
{
    static thread_fn *next;

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    return next ? next(thread, attributes, run, ctx) : EAGAIN;
}

/* Only one that nobody joins can wait. */
EXPORTED int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                            void *(*run)(void *ctx), void *ctx)
{
    int detached = PTHREAD_CREATE_JOINABLE;

    if (begun)
        return thread_start(thread, attributes, run, ctx);
    if (attributes)
        (void)pthread_attr_getdetachstate(attributes, &detached); /* cannot fail */
    if (detached != PTHREAD_CREATE_DETACHED || thread_count == THREADS_MAX)
        return EAGAIN;
    threads[thread_count] = (struct waiting_thread){ .run = run, .ctx = ctx };
    (void)pthread_sigmask(SIG_SETMASK, NULL, &threads[thread_count++].blocked);
    *thread = pthread_self();
    return 0;
}

static int threads_start(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t before;
    int error = pthread_attr_init(&attributes);

    if (error == 0)
        error = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    begun = true;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &before);
    for (size_t i = 0; error == 0 && i < thread_count; i++) {
        (void)pthread_sigmask(SIG_SETMASK, &threads[i].blocked, NULL);
        error = thread_start(&thread, &attributes, threads[i].run, threads[i].ctx);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

/* Requests. */

struct request {
    struct zygote_request head;
    char text[ZYGOTE_REQUEST_MAX_BYTES];
};

static struct request request;
static int fds[ZYGOTE_FDS_MAX + 1];
static char *arguments[ZYGOTE_REQUEST_MAX_BYTES / 2];

static int reply(pid_t pid, int error)
{
    const struct zygote_reply message = { .id = request.head.id, .pid = pid, .error = error };

    return send(SOCKET_FD, &message, sizeof(message), MSG_NOSIGNAL) == sizeof(message) ? 0 : -1;
}

static size_t take_fds(struct msghdr *message)
{
    struct cmsghdr *head = CMSG_FIRSTHDR(message);
    size_t size = head && head->cmsg_type == SCM_RIGHTS ? head->cmsg_len - CMSG_LEN(0) : 0;

    if (size > sizeof(fds))
        size = 0;
    if (size > 0)
        memcpy(fds, CMSG_DATA(head), size);
    return size / sizeof(fds[0]);
}

static bool take_arguments(size_t size)
{
    char *at = request.text;

    if (request.head.argument_count >= ARRAY_SIZE(arguments))
        return false;
    for (uint32_t i = 0; i < request.head.argument_count; i++) {
        char *end = memchr(at, 0, size - (size_t)(at - request.text));

        if (!end)
            return false;
        arguments[i] = at;
        at = end + 1;
    }
    arguments[request.head.argument_count] = NULL;
    return true;
}

/* The next one. False: it makes no sense. The adapter's end is ours. */
static bool receive(size_t *ret_fd_count)
{
    union {
        char bytes[CMSG_SPACE(sizeof(fds))];
        struct cmsghdr aligned;
    } control;
    struct iovec part = { .iov_base = &request, .iov_len = sizeof(request) };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    ssize_t size;

    while ((size = recvmsg(SOCKET_FD, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    if (size <= 0)
        _exit(0);
    *ret_fd_count = take_fds(&message);
    return (size_t)size >= sizeof(request.head) && request.head.fd_count <= ZYGOTE_FDS_MAX &&
           *ret_fd_count == request.head.fd_count + 1 &&
           take_arguments((size_t)size - sizeof(request.head));
}

/* Machines. */

/* A child of our parent. What libc keeps about its one thread stays right: the kernel writes
 * the new number where libc has it. */
static pid_t clone_self(void)
{
    int *tid_address = NULL;
    struct clone_args spec = { .flags = CLONE_PARENT | CLONE_CHILD_SETTID |
                                        CLONE_CHILD_CLEARTID };

    if (prctl(PR_GET_TID_ADDRESS, &tid_address, 0, 0, 0) < 0 || !tid_address)
        return -1;
    spec.child_tid = (uintptr_t)tid_address;
    return (pid_t)syscall(SYS_clone3, &spec, sizeof(spec));
}

static bool is_target(int fd)
{
    for (uint32_t i = 0; i < request.head.fd_count; i++)
        if (request.head.targets[i] == fd)
            return true;
    return false;
}

/* No exec closes what the machine is not to have. */
static void close_others(void)
{
    int fd = STDERR_FILENO + 1;

    for (; fd < SOCKET_FD; fd++)
        if (!is_target(fd) || fd == request.head.rules_fd)
            (void)close(fd);
    (void)syscall(SYS_close_range, (unsigned)fd, ~0u, 0); /* the socket is among them */
}

/* What `ps` shows of it. */
static void rename_self(const char *name, char *word, const char *text)
{
    (void)prctl(PR_SET_NAME, name, 0, 0, 0); /* cannot fail */
    if (word && strlen(word) >= strlen(text))
        strcpy(word, text);
}

/* Nobody is told of a machine that has no permit, and what is its is another one's. */
static bool is_permitted(int permit_fd)
{
    ssize_t size;
    char byte;

    while ((size = recv(permit_fd, &byte, 1, 0)) < 0 && errno == EINTR)
        ;
    return size == 1;
}

/* We are the machine. Returns as its main() does. */
static int machine_begin(pid_t parent, char **environment)
{
    struct confine_child child = { .confine = &request.head.confine,
                                   .rules_fd = request.head.rules_fd,
                                   .small_pages = request.head.small_pages };
    struct proc_fd placed[ZYGOTE_FDS_MAX];
    int result, permit_fd = fcntl(fds[request.head.fd_count], F_DUPFD_CLOEXEC, SOCKET_FD + 1);

    for (uint32_t i = 0; i < request.head.fd_count; i++)
        placed[i] = (struct proc_fd){ fds[i], request.head.targets[i] };
    result = proc_child_prepare(&(struct proc_spec){ .program = arguments[0],
                                                     .argv = (const char *const *)arguments,
                                                     .workdir = "/",
                                                     .fds = placed,
                                                     .fd_count = request.head.fd_count,
                                                     .new_session = true,
                                                     .die_with_parent = true,
                                                     .before_exec = confine_child,
                                                     .before_exec_ctx = &child },
                                parent);
    if (result == 0)
        result = threads_start();
    if (reply(getpid(), result) < 0 || result < 0 || !is_permitted(permit_fd))
        _exit(127);
    close_others();
    if (request.head.answer_fd >= 0)
        standstill_begin(request.head.answer_fd);
    return real_main((int)request.head.argument_count, arguments, environment);
}

/* What main() does first of all is the same in each machine and a good part of its start: all
 * of QEMU's types are registered, and each gets its class as soon as one list of classes is
 * asked for. Done here, main() finds it done. A QEMU that has these functions in another way,
 * or not at all, does the rest by itself. */
#define MODULES_OF_TYPES 3 /* MODULE_INIT_QOM since QEMU 5.1; before that other modules */

struct class_list; /* GSList */

static void prepare_types(void)
{
    void (*register_all)(int modules);
    struct class_list *(*list_classes)(const char *parent, bool abstract_too);
    void (*list_free)(struct class_list * list);

    *(void **)&register_all = dlsym(RTLD_DEFAULT, "module_call_init");
    *(void **)&list_classes = dlsym(RTLD_DEFAULT, "object_class_get_list");
    *(void **)&list_free = dlsym(RTLD_DEFAULT, "g_slist_free");
    if (!register_all || !list_classes || !list_free)
        return;
    register_all(MODULES_OF_TYPES);
    list_free(list_classes("machine", false));
}

static int zygote_main(int argc, char **argv, char **environment)
{
    const pid_t parent = getppid();
    char name[16] = "";

    (void)prctl(PR_GET_NAME, name, 0, 0, 0); /* cannot fail */
    rename_self(ZYGOTE_NAME, NULL, NULL);
    (void)unsetenv("LD_PRELOAD"); /* nothing that a machine might start is to be one */
    prepare_types();
    if (dup3(ZYGOTE_FD, SOCKET_FD, O_CLOEXEC) < 0 || close(ZYGOTE_FD) < 0 || reply(0, 0) < 0)
        _exit(1);
    for (;;) {
        size_t fd_count;
        bool fine = receive(&fd_count);
        pid_t pid = fine ? clone_self() : -1;

        if (pid == 0) {
            rename_self(name, argc > 1 ? argv[1] : NULL, "(clone)");
            return machine_begin(parent, environment);
        }
        if (pid < 0 && reply(0, fine ? -errno : -EINVAL) < 0)
            _exit(1);
        for (size_t i = 0; i < fd_count; i++)
            (void)close(fds[i]); /* the clone has its own */
    }
}

EXPORTED int __libc_start_main(main_fn *main, int argc, char **argv, void (*init)(void),
                               void (*fini)(void), void (*ld_fini)(void), void *stack_end)
{
    start_fn *next;

    *(void **)&next = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = main;
    return next(zygote_main, argc, argv, init, fini, ld_fini, stack_end);
}
