/* spawn.c - see spawn.h.
 *
 * Between clone and exec the child runs on a stack of its own but in our memory, so it makes
 * raw system calls only and touches nothing that libc or a sanitizer keeps. glibc has no
 * wrapper for clone3 with a stack, hence the few lines of assembly. */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"
#include "pace.h"

#define CHILD_STACK_BYTES (64u * 1024)
#define FIRST_FREE_FD 3u
#define PROGRAM_BYTES_MAX 4096u /* of a path, its NUL included: the kernel's limit */

/* What the child is to do and how far it came; in the memory of both. */
struct child {
    const struct spawn *spawn;
    const char *path; /* PATH of its environment */
    volatile enum spawn_step step;
    volatile int error;
};

/* Of the programs: what we were started with, but for a hard limit that suits a whole machine.
 */
#define PROGRAM_FILES_MAX 524288
/* Of ours: each background child may keep two of our pipes. */
#define OWN_FILES_MAX 1048576

static struct rlimit limit_nofile_of_programs;

static void raise_file_limits(void)
{
    struct rlimit *programs = &limit_nofile_of_programs;
    struct rlimit own = { OWN_FILES_MAX, OWN_FILES_MAX };

    if (getrlimit(RLIMIT_NOFILE, programs) < 0)
        *programs = (struct rlimit){ 1024, 4096 };
    if (setrlimit(RLIMIT_NOFILE, &own) == 0) {
        if (programs->rlim_max < PROGRAM_FILES_MAX)
            programs->rlim_max = PROGRAM_FILES_MAX;
        return;
    }
    own = (struct rlimit){ programs->rlim_max, programs->rlim_max };
    (void)setrlimit(RLIMIT_NOFILE, &own); /* as far as we may */
}

void spawn_prepare_process(void)
{
    for (int number = 1; number < NSIG; number++)
        (void)signal(number, SIG_DFL); /* fails for KILL and STOP, which are always default */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(022);
    raise_file_limits();
}

/* The child. */

CHILD_CODE static size_t text_size(const char *text)
{
    size_t size = 0;

    while (text[size])
        size++;
    return size;
}

CHILD_CODE static void execute(struct child *child, const char *program)
{
    const struct spawn *spawn = child->spawn;

    (void)syscall(SYS_execve, program, spawn->argv, spawn->environment);
}

/* Errors of one folder of PATH that do not end the search. */
CHILD_CODE static bool search_goes_on(int error)
{
    return error == ENOENT || error == ENOTDIR || error == EACCES || error == ENODEV ||
           error == ESTALE || error == ETIMEDOUT || error == ENAMETOOLONG || error == ELOOP;
}

/* An empty folder name is the working directory, as everywhere. Returns errno. */
CHILD_CODE static int execute_by_search(struct child *child, const char *name)
{
    const size_t name_size = text_size(name);
    const char *folder = child->path;
    char program[PROGRAM_BYTES_MAX];
    bool denied = false;

    for (;;) {
        size_t size = 0;

        while (folder[size] && folder[size] != ':')
            size++;
        if (size + 1 + name_size < sizeof(program)) {
            size_t at = 0;

            for (size_t i = 0; i < size; i++)
                program[at++] = folder[i];
            if (size > 0)
                program[at++] = '/';
            for (size_t i = 0; i <= name_size; i++)
                program[at++] = name[i];
            execute(child, program);
            if (!search_goes_on(errno))
                return errno;
            denied |= errno == EACCES;
        }
        if (!folder[size])
            return denied ? EACCES : ENOENT;
        folder += size + 1;
    }
}

CHILD_CODE static bool child_place_fds(const struct spawn *spawn)
{
    for (int target = 0; target < 3; target++) {
        if (syscall(SYS_dup3, spawn->fds[target], target, 0) < 0)
            return false;
    }
    return syscall(SYS_close_range, FIRST_FREE_FD, ~0u, 0u) == 0;
}

CHILD_CODE static bool child_signals_default(void)
{
    /* A zeroed kernel sigaction is SIG_DFL, whatever its layout here. */
    static const char kernel_action[64];
    const uint64_t none = 0;

    return syscall(SYS_rt_sigaction, SIGPIPE, kernel_action, NULL, sizeof(none)) == 0 &&
           syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none)) == 0;
}

CHILD_CODE static int child_main(void *argument)
{
    struct child *child = argument;
    const char *program = child->spawn->argv[0];
    bool has_slash = false;

    child->step = SPAWN_SETUP;
    if (child->spawn->announce)
        child->spawn->announce((pid_t)syscall(SYS_getpid));
    if (syscall(SYS_setsid) < 0 || !child_place_fds(child->spawn) || !child_signals_default() ||
        syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit_nofile_of_programs, NULL) < 0)
        goto failed;
    child->step = SPAWN_WORKDIR;
    if (syscall(SYS_chdir, child->spawn->workdir) < 0)
        goto failed;
    child->step = SPAWN_PROGRAM;
    for (const char *at = program; *at; at++)
        has_slash |= *at == '/';
    if (has_slash)
        execute(child, program);
    else
        errno = execute_by_search(child, program);
failed:
    child->error = errno;
    (void)syscall(SYS_exit_group, 127);
    return 127;
}

/* The parent. */

/* Calls FN(ARGUMENT) in the child, on the stack of ARGS; FN never returns. -errno or the pid.
 */
__attribute__((noinline)) static long clone3_call(struct clone_args *args, int (*fn)(void *),
                                                  void *argument)
{
#if defined(__x86_64__)
    long result = SYS_clone3;
    register int (*fn_register)(void *) __asm__("r8") = fn;
    register void *argument_register __asm__("r9") = argument;

    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r9, %%rdi\n\t"
                     "call *%%r8\n\t"
                     "ud2\n"
                     "1:"
                     : "+a"(result)
                     : "D"(args), "S"(sizeof(*args)), "r"(fn_register), "r"(argument_register)
                     : "rcx", "r11", "memory", "cc");
    return result;
#elif defined(__aarch64__)
    register long result __asm__("x0") = (long)args;
    register long size __asm__("x1") = sizeof(*args);
    register long number __asm__("x8") = SYS_clone3;
    register int (*fn_register)(void *) __asm__("x10") = fn;
    register void *argument_register __asm__("x11") = argument;

    __asm__ volatile("svc #0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t"
                     "mov x0, x11\n\t"
                     "blr x10\n\t"
                     "brk #0\n"
                     "1:"
                     : "+r"(result)
                     : "r"(size), "r"(number), "r"(fn_register), "r"(argument_register)
                     : "memory", "cc");
    return result;
#else
#error "clone3_call() is missing for this architecture"
#endif
}

/* Kernels or filters that do not know clone3 get the older call, which has no cgroup. */
static long clone_child(struct child *child, uint8_t *stack)
{
    struct clone_args args = {
        .flags = CLONE_VM | CLONE_VFORK,
        .exit_signal = SIGCHLD,
        .stack = (uintptr_t)stack,
        .stack_size = CHILD_STACK_BYTES,
    };
    long pid;

    if (child->spawn->cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)child->spawn->cgroup_fd;
    }
    pid = clone3_call(&args, child_main, child);
    if (pid != -ENOSYS || child->spawn->cgroup_fd >= 0)
        return pid;
    pid = clone(child_main, stack + CHILD_STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, child);
    return pid < 0 ? -errno : pid;
}

static uint8_t *child_stack(void)
{
    static uint8_t *stack; /* mapped once, used by one child at a time */
    void *mapping;

    if (stack)
        return stack;
    mapping = mmap(NULL, CHILD_STACK_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (mapping == MAP_FAILED)
        return NULL;
    stack = mapping;
    return stack;
}

static const char *environment_path(char *const *environment)
{
    for (; *environment; environment++) {
        if (strncmp(*environment, "PATH=", 5) == 0)
            return *environment + 5;
    }
    return "";
}

pid_t spawn_program(const struct spawn *spawn, struct spawn_failure *ret_failure)
{
    struct child child = {
        .spawn = spawn,
        .path = environment_path(spawn->environment),
        .step = SPAWN_SETUP,
    };
    uint8_t *stack = child_stack();
    long pid;

    pace_set(PACE_PROMPT);
    pid = stack ? clone_child(&child, stack) : -ENOMEM;
    if (pid > 0 && child.error == 0)
        return (pid_t)pid;
    *ret_failure = (struct spawn_failure){
        .step = child.step,
        .error = pid < 0 ? (int)-pid : child.error,
    };
    while (pid > 0 && waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return -1;
}
