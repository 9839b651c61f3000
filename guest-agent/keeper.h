/* keeper.h - the process that keeps one exec's tree together where there are no cgroups.
 *
 * It is a subreaper: whatever descends from the program and loses its parent becomes its child.
 * It starts the program, tells its end, and stays until nothing is left. It ends by itself only
 * when its tree is empty, so its exit status 0 is the proof of that. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "spawn.h"

/* What it says, each as one message of the control socket (SOCK_SEQPACKET). */
enum keeper_report_kind { KEEPER_FORKED, KEEPER_STARTED, KEEPER_FAILED, KEEPER_ENDED };

struct keeper_report {
    int32_t kind;
    int32_t value; /* FORKED: pid; FAILED: step; ENDED: wait status */
    int32_t error; /* FAILED: errno */
};

/* What it is told: any message means "kill all of it". So does the end of the socket. */
#define KEEPER_KILL "K"

/* The keeper's whole life, in a child made with fork(); never returns. Takes its own copies of
 * the descriptors and closes all others. PROC_FD: /proc. */
_Noreturn void keeper_main(int control_fd, int proc_fd, const struct spawn *spawn);

/* Sends SIGKILL once to each process below PID that can be seen now, at most KEEPER_PASS_MAX;
 * how many. Whatever was forked meanwhile is left to the next pass. */
#define KEEPER_PASS_MAX 4096u
unsigned keeper_kill_below(int proc_fd, pid_t pid);
