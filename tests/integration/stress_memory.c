/* stress_memory.c - see stress_memory.h. The kernel keeps each process's peak (VmHWM). */

#include "stress_memory.h"

#include <string.h>

/* The first number behind KEY in /proc/PID/status, -1 if there is none. */
static long status_number(pid_t pid, const char *key)
{
    char path[64], line[256];
    long number = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && number < 0 && fgets(line, sizeof(line), file)) {
        if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':')
            (void)sscanf(line + strlen(key) + 1, "%ld", &number);
    }
    if (file)
        (void)fclose(file); /* read only */
    return number;
}

static bool forget_peak(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/clear_refs", (int)pid);
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    bool written = fputs("5", file) >= 0;
    return fclose(file) == 0 && written;
}

static void read_name(pid_t pid, char *ret_name, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file || !fgets(ret_name, (int)size, file))
        snprintf(ret_name, size, "?");
    ret_name[strcspn(ret_name, "\n")] = '\0';
    if (file)
        (void)fclose(file); /* read only */
}

static bool add(struct stress_memory *memory, pid_t pid)
{
    if (memory->count == STRESS_PROCESSES_MAX)
        return false;
    struct stress_process *process = &memory->processes[memory->count++];
    process->pid = pid;
    process->before_kib = status_number(pid, "VmRSS");
    read_name(pid, process->name, sizeof(process->name));
    return forget_peak(pid);
}

static bool add_children(struct stress_memory *memory, pid_t pid)
{
    char path[64];
    int child;
    bool right = true;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *file = fopen(path, "re");
    while (file && right && fscanf(file, "%d", &child) == 1)
        right = add(memory, child);
    if (file)
        (void)fclose(file); /* read only */
    return right;
}

bool stress_memory_begin(pid_t root, struct stress_memory *ret_memory)
{
    ret_memory->count = 0;
    bool right = add(ret_memory, root);
    for (size_t i = 0; right && i < ret_memory->count; i++)
        right = add_children(ret_memory, ret_memory->processes[i].pid);
    return right && ret_memory->count > 1; /* an adapter at least */
}

long stress_memory_growth_kib(const struct stress_memory *memory, FILE *to)
{
    long most = 0;
    for (size_t i = 0; i < memory->count; i++) {
        const struct stress_process *process = &memory->processes[i];
        long peak_kib = status_number(process->pid, "VmHWM");
        long growth = peak_kib - process->before_kib;
        fprintf(to, "# %s: %ld KiB, at most %ld KiB\n", process->name, process->before_kib,
                peak_kib);
        if (growth > most)
            most = growth;
    }
    return most;
}
