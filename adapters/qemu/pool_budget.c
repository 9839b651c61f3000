/* pool_budget.c - see pool_budget.h. */
#include "pool_budget.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

uint64_t pool_budget_memory_kb(pid_t pid)
{
    char path[32];
    unsigned long long resident = 0, shared = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%*u %llu %llu", &resident, &shared) != 2 || shared > resident)
        resident = shared = 0;
    (void)fclose(file); /* read only */
    return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

uint64_t pool_budget_cpu_ms(pid_t pid)
{
    clockid_t clock;
    struct timespec used;

    /* 0 and -1 would name our own clock. */
    if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) < 0)
        return 0;
    return (uint64_t)used.tv_sec * 1000 + (uint64_t)used.tv_nsec / 1000000;
}

bool pool_budget_has_room(uint64_t used_kb, uint64_t expected_kb, uint32_t limit_mb)
{
    const uint64_t limit_kb = (uint64_t)limit_mb * 1024;

    if (limit_mb == 0)
        return true;
    return used_kb < limit_kb && expected_kb <= limit_kb - used_kb;
}

uint64_t pool_budget_rest_ms(uint64_t cpu_ms, uint32_t percent)
{
    return percent == 0 || percent >= 100 ? 0 : cpu_ms * (100 - percent) / percent;
}
