/* calibration.c - see calibration.h. The same two shell commands run here and in a guest. */
#include "calibration.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "proc.h"
#include <sys/wait.h>

#define LOOP "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
#define GZIP "head -c 8000000 /dev/zero | tr '\\0' 'x' | gzip -1 | wc -c >/dev/null"

static double here_ms(const char *script)
{
    const char *const argv[] = { "/bin/sh", "-c", script, NULL };
    pid_t pid;
    int pidfd;
    double start = bench_now_ms();
    if (proc_spawn(&(struct proc_spec){ .program = "/bin/sh", .argv = argv }, &pid, &pidfd) < 0)
        return 0;
    (void)waitpid(pid, NULL, 0); /* our child */
    closep(&pidfd);
    return bench_now_ms() - start;
}

static double guest_ms(struct native_client *client, const char *id, const char *script)
{
    char body[1024], escaped[512];
    size_t used = 0;
    double ms;
    for (const char *text = script; *text && used + 2 < sizeof(escaped); text++) {
        if (*text == '\\' || *text == '"')
            escaped[used++] = '\\';
        escaped[used++] = *text;
    }
    escaped[used] = '\0';
    snprintf(body, sizeof(body), "{\"sandbox_id\":\"%s\",\"argv\":[\"/bin/sh\",\"-c\",\"%s\"]}",
             id, escaped);
    if (bench_call(client, "sandbox::exec", body, NULL, NULL) < 0 || /* the first warms up */
        bench_call(client, "sandbox::exec", body, &ms, NULL) < 0)
        return 0;
    return ms;
}

/* "" when there is none. */
static void qemu_version(char *ret, size_t size)
{
    FILE *pipe = popen("qemu-system-x86_64 --version 2>/dev/null", "re");
    ret[0] = '\0';
    if (pipe && fgets(ret, (int)size, pipe)) {
        char *word = strstr(ret, "version ");
        word = word ? word + strlen("version ") : ret;
        memmove(ret, word, strlen(word) + 1);
        ret[strcspn(ret, " \n\"\\")] = '\0';
    }
    if (pipe)
        (void)pclose(pipe); /* what it said is enough */
}

static double load_average(void)
{
    double load = 0;
    return getloadavg(&load, 1) == 1 ? load : 0;
}

int calibrate(struct bench *bench)
{
    _cleanup_(subject_stopp)
    struct subject *subject = NULL;
    _cleanup_(buf_done)
    struct buf info = { 0 };
    _cleanup_(buf_done)
    struct buf reply = { 0 };
    char function[256], body[256], id[64], qemu[64], version[64] = "";
    struct utsname host;
    if (uname(&host) < 0 || bench_subject(bench, bench->adapter, NULL, &subject) < 0)
        return -1;
    struct native_client *client = subject_client(subject);
    snprintf(function, sizeof(function), "%s::adapter::info", subject_adapter_name(subject));
    snprintf(body, sizeof(body), "{\"image\":\"%s\"}", bench->image);
    if (bench_call(client, function, "{}", NULL, &info) < 0 ||
        bench_call(client, "sandbox::create", body, NULL, &reply) < 0 ||
        bench_text(&reply, "sandbox_id", id, sizeof(id)) < 0)
        return -1;
    if (bench_text(&info, "acceleration", bench->acceleration, sizeof(bench->acceleration)) < 0)
        snprintf(bench->acceleration, sizeof(bench->acceleration), "none");
    qemu_version(qemu, sizeof(qemu));
    (void)bench_text(&info, "adapter_version", version, sizeof(version)); /* the same */
    double loop_here = here_ms(LOOP), gzip_here = here_ms(GZIP);
    double loop_guest = guest_ms(client, id, LOOP), gzip_guest = guest_ms(client, id, GZIP);
    snprintf(bench->report.calibration, sizeof(bench->report.calibration),
             "\"adapter\":\"%s "
             "%s\",\"acceleration\":\"%s\",\"qemu\":\"%s\",\"kernel\":\"%s\",\"nproc\":%ld,"
             "\"load\":%.2f,\"slowdown_loop\":%.3g,\"slowdown_gzip\":%.3g",
             subject_adapter_name(subject), version, bench->acceleration, qemu, host.release,
             sysconf(_SC_NPROCESSORS_ONLN), load_average(), loop_guest / loop_here,
             gzip_guest / gzip_here);
    printf("calibration {%s}\n", bench->report.calibration);
    fflush(stdout);
    return 0;
}
