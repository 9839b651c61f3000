/* accel.c - see accel.h. */
#include "accel.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "log.h"

#define KVM_API 12
#define NS_A_SECOND 1000000000u
#define MEASURE_NS 50000000u /* within 0.001 % of the rate */

static const struct {
    const char *name;
    const char *isolation;
} accel_rows[] = {
    [ACCEL_TCG] = { "tcg", "emulated" },
    [ACCEL_KVM] = { "kvm", "hardware" },
};
static_assert(ARRAY_SIZE(accel_rows) == ACCEL_KIND_MAX, "a row for each kind");

const char *accel_name(const struct accel *accel)
{
    return accel_rows[accel->kind].name;
}

const char *accel_isolation(const struct accel *accel)
{
    return accel_rows[accel->kind].isolation;
}

uint64_t accel_khz(uint64_t ticks, uint64_t ns)
{
    __extension__ typedef unsigned __int128 wide;

    if (ns == 0)
        return 0;
    return (uint64_t)(((wide)ticks * 1000000 + ns / 2) / ns);
}

#if defined(__x86_64__)
static uint64_t clock_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * NS_A_SECOND + (uint64_t)now.tv_nsec;
}

static uint64_t tsc_measure(void)
{
    uint64_t began_ns = clock_ns();
    uint64_t began_ticks = __rdtsc();
    uint64_t now_ns;

    do
        now_ns = clock_ns();
    while (now_ns - began_ns < MEASURE_NS);
    return accel_khz(__rdtsc() - began_ticks, now_ns - began_ns);
}
#else
static uint64_t tsc_measure(void)
{
    return 0;
}
#endif

/* The group that lets an unprivileged user in; 0: all are let in. -EACCES: only its owner is.
 */
static int kvm_group(const struct stat *status, gid_t *ret_group)
{
    *ret_group = 0;
    if ((status->st_mode & 0006) == 0006)
        return 0;
    if ((status->st_mode & 0060) != 0060 || status->st_gid == 0)
        return -EACCES;
    *ret_group = status->st_gid;
    return 0;
}

/* 0, or -errno: no KVM that QEMU may use. */
static int kvm_open(struct accel *accel, bool same_user)
{
    _cleanup_close_ int fd = open(ACCEL_KVM_PATH, O_RDWR | O_CLOEXEC);
    _cleanup_close_ int vm_fd = -1;
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return -errno;
    if (!same_user && kvm_group(&status, &accel->kvm_group) < 0)
        return -EACCES;
    if (ioctl(fd, KVM_GET_API_VERSION, 0) != KVM_API)
        return -ENOTSUP;
    vm_fd = ioctl(fd, KVM_CREATE_VM, 0); /* there may be a device and no permission to use it */
    return vm_fd < 0 ? -errno : 0;
}

static const char *kvm_error(int error)
{
    return error == -EACCES ? "it is not open to QEMU's user (a group of its own, mode 0660)"
                            : strerror(-error);
}

int accel_choose(const char *wanted, bool same_user, struct accel *ret_accel,
                 struct sandbox_error *err)
{
    const bool automatic = strcmp(wanted, "auto") == 0;
    struct accel accel = { .kind = ACCEL_KVM, .unproven = automatic };
    int result = strcmp(wanted, "tcg") == 0 ? -ENODEV : kvm_open(&accel, same_user);

    if (result < 0 && strcmp(wanted, "kvm") == 0)
        return sandbox_error_set(err, S300, "sandbox.qemu.acceleration is kvm, but %s: %s",
                                 ACCEL_KVM_PATH, kvm_error(result));
    if (result < 0 && automatic)
        log_event(LOG_INFO, "kvm_not_used", log_text("why", kvm_error(result)));
    if (result < 0)
        accel = (struct accel){ .kind = ACCEL_TCG, .tsc_khz = tsc_measure() };
    *ret_accel = accel;
    return 0;
}

void accel_give_up(struct accel *accel, const char *why)
{
    assert(accel->unproven);
    log_event(LOG_WARN, "kvm_given_up", log_text("why", why));
    *accel = (struct accel){ .kind = ACCEL_TCG, .tsc_khz = tsc_measure() };
}
