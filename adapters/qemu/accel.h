/* accel.h - what runs a guest's instructions: the processor (KVM) or QEMU itself (TCG). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "error.h"

enum accel_kind { ACCEL_TCG, ACCEL_KVM, ACCEL_KIND_MAX };

struct accel {
    enum accel_kind kind;
    uint64_t tsc_khz; /* TCG: rate of the guest's time stamp counter, which is the host's;
                       * 0: unknown */
    gid_t kvm_group;  /* KVM: who may open /dev/kvm; 0: everybody, or nobody but root */
};

#define ACCEL_KVM_PATH "/dev/kvm"

/* WANTED is "auto", "kvm" or "tcg". Takes some 50 ms under TCG. S300: wanted and not there. */
int accel_choose(const char *wanted, struct accel *ret_accel, struct sandbox_error *err);

const char *accel_name(const struct accel *accel);      /* "kvm", "tcg" */
const char *accel_isolation(const struct accel *accel); /* "hardware", "emulated" */

/* TICKS within NS nanoseconds as kHz, rounded; 0 when that is no rate. */
uint64_t accel_khz(uint64_t ticks, uint64_t ns);
