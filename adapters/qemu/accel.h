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
    gid_t kvm_group;  /* KVM: who may open /dev/kvm; 0: everybody */
    bool unproven;    /* KVM by "auto", and no guest has come up with it yet */
};

#define ACCEL_KVM_PATH "/dev/kvm"

/* How long the first guest under an unproven KVM may take; it needs about one second. */
#define ACCEL_TRIAL_MS 10000u

/* WANTED is "auto", "kvm" or "tcg". SAME_USER: QEMU runs as the user we are, else as one
 * without privileges. Takes some 50 ms under TCG. S300: wanted and not there. */
int accel_choose(const char *wanted, bool same_user, struct accel *ret_accel,
                 struct sandbox_error *err);

/* No guest comes up with an unproven KVM: it is TCG from now on. Takes some 50 ms. */
void accel_give_up(struct accel *accel, const char *why);

const char *accel_name(const struct accel *accel);      /* "kvm", "tcg" */
const char *accel_isolation(const struct accel *accel); /* "hardware", "emulated" */

/* TICKS within NS nanoseconds as kHz, rounded; 0 when that is no rate. */
uint64_t accel_khz(uint64_t ticks, uint64_t ns);
