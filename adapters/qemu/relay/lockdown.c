/* lockdown.c - see lockdown.h.
 *
 * A call that is not listed fails with EPERM: a library that tries something else first goes on
 * with what is left. */
#include "lockdown.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "cleanup.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "which architecture is this in linux/audit.h?"
#endif

static const int allowed[] = {
    /* sockets */
    SYS_connect,
    SYS_sendto,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_getsockname,
    SYS_getpeername,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_shutdown,
    SYS_ppoll,
    SYS_ioctl,
    SYS_fcntl,
    SYS_close,
    /* the name servers' file, the log, the report */
    SYS_newfstatat,
    SYS_fstat,
    SYS_lseek,
    SYS_read,
    SYS_write,
    SYS_writev,
    /* memory, time, an orderly end */
    SYS_brk,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_clock_gettime,
    SYS_gettimeofday,
    SYS_getrandom,
    SYS_futex,
    SYS_restart_syscall,
    SYS_rt_sigreturn,
    SYS_rt_sigprocmask,
    SYS_rt_sigaction,
    SYS_getpid,
    SYS_gettid,
    SYS_tgkill,
    SYS_exit,
    SYS_exit_group,
#ifdef SYS_poll
    SYS_poll,
#endif
#ifdef SYS_stat
    SYS_stat,
#endif
};

/* Allowed when the argument has none of the bits. */
static const struct rule {
    int call;
    unsigned argument;
    uint32_t bits;
} rules[] = {
    { SYS_mmap, 2, PROT_EXEC },
    { SYS_mprotect, 2, PROT_EXEC },
    { SYS_socket, 0, ~(uint32_t)(AF_INET | AF_INET6) },
    { SYS_openat, 2, O_WRONLY | O_RDWR | O_CREAT },
#ifdef SYS_open
    { SYS_open, 1, O_WRONLY | O_RDWR | O_CREAT },
#endif
};

#define RULE_WORDS 5u
#define WORDS_MAX (8u + 2u * ARRAY_SIZE(allowed) + RULE_WORDS * ARRAY_SIZE(rules))

struct program {
    struct sock_filter words[WORDS_MAX];
    unsigned short count;
};

static void add(struct program *program, struct sock_filter word)
{
    program->words[program->count++] = word;
}

static void add_return(struct program *program, uint32_t value)
{
    add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, value));
}

static void add_load(struct program *program, size_t offset)
{
    add(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* The next COUNT words are skipped unless the loaded word is VALUE. */
static void add_unless(struct program *program, uint32_t value, uint8_t count)
{
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count));
}

static void program_make(struct program *program)
{
    add_load(program, offsetof(struct seccomp_data, arch));
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
    add_return(program, SECCOMP_RET_KILL_PROCESS);
    add_load(program, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < ARRAY_SIZE(allowed); i++) {
        add_unless(program, (uint32_t)allowed[i], 1);
        add_return(program, SECCOMP_RET_ALLOW);
    }
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        add_unless(program, (uint32_t)rules[i].call, RULE_WORDS - 1);
        add_load(program, offsetof(struct seccomp_data, args[0]) + 8 * rules[i].argument);
        add(program,
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, rules[i].bits, 1, 0));
        add_return(program, SECCOMP_RET_ALLOW);
        add_return(program, SECCOMP_RET_ERRNO | EPERM);
    }
    add_return(program, SECCOMP_RET_ERRNO | EPERM);
}

static int limit_calls(void)
{
    static struct program program;
    struct sock_fprog filter = { .filter = program.words };

    program_make(&program);
    filter.len = program.count;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
        return -errno;
    return 0;
}

int lockdown_enter(void)
{
    const struct rlimit memory = { LOCKDOWN_MEMORY_BYTES, LOCKDOWN_MEMORY_BYTES };

    if (SANITIZED)
        return 0;
    return setrlimit(RLIMIT_AS, &memory) < 0 ? -errno : limit_calls();
}
