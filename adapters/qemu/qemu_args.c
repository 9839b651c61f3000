/* qemu_args.c - see qemu_args.h. docs/qemu.md tells why each of these is there. */
#include "qemu_args.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent_frame.h"
#include "codec.h"

/* Fewer words cost boot time or idle time, see docs/qemu.md. */
#define KERNEL_WORDS                                                                           \
    "console=ttyS0 quiet panic=-1 reboot=t nokaslr cryptomgr.notests init_on_alloc=0 "         \
    "random.trust_cpu=on psi=0"

static _printf_(2, 3) int add(struct text_list *to, const char *format, ...)
{
    _cleanup_free_ char *text = NULL;
    va_list arguments;
    int size;

    va_start(arguments, format);
    size = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (size < 0) {
        text = NULL;
        return -ENOMEM;
    }
    return text_list_append(to, text);
}

static int add_all(struct text_list *to, const char *const *texts, size_t count)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < count; i++)
        result = text_list_append(to, texts[i]);
    return result;
}
#define ADD_ALL(to, ...)                                                                       \
    add_all(to, (const char *const[]){ __VA_ARGS__ },                                          \
            ARRAY_SIZE(((const char *const[]){ __VA_ARGS__ })))

static int add_machine(const struct qemu_args_spec *spec, struct text_list *to)
{
    const bool saved = spec->mode != QEMU_COLD;
    int result = ADD_ALL(to, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                         "-sandbox", QEMU_SECCOMP, "-machine");

    if (result == 0)
        result = add(to, "microvm,acpi=on,ioapic2=off,usb=off,isa-serial=on%s",
                     saved ? ",memory-backend=ram" : "");
    if (result == 0 && saved)
        result = add(to, "-object");
    if (result == 0 && saved)
        result = add(
            to, "memory-backend-file,id=ram,size=%uM,mem-path=/proc/self/fd/%d,share=%s",
            spec->shape.memory_mb, QEMU_FD_MEMORY, spec->mode == QEMU_TEMPLATE ? "on" : "off");
    if (result == 0)
        result = ADD_ALL(to, "-m");
    if (result == 0)
        result = add(to, "%uM", spec->shape.memory_mb);
    if (result == 0)
        result = ADD_ALL(to, "-smp");
    return result < 0 ? result : add(to, "%u", spec->shape.cpus);
}

static int add_processor(const struct qemu_args_spec *spec, struct text_list *to)
{
    /* TCG runs `rep movsb` a byte at a time, and a guest that sees ERMS or FSRM copies so. The
     * others make each fault, access to a program's memory or change of programs dearer, and
     * separate nothing here. */
    static const char *const models[] = {
        [ACCEL_TCG] = "max,-erms,-fsrm,-la57,-smap,-smep,-pku",
        [ACCEL_KVM] = "host",
    };
    static_assert(ARRAY_SIZE(models) == ACCEL_KIND_MAX, "a model for each kind");
    int result = ADD_ALL(to, "-cpu", models[spec->accel.kind], "-accel");

    if (result < 0)
        return result;
    if (spec->accel.kind == ACCEL_KVM)
        return add(to, "kvm");
    return add(to, "tcg,thread=%s,tb-size=%u", spec->shape.cpus == 1 ? "single" : "multi",
               spec->translation_mb);
}

static int add_kernel(const struct qemu_args_spec *spec, struct text_list *to)
{
    /* What TCG has translated is found again only at the same address. */
    const char *layout = spec->accel.kind == ACCEL_TCG ? " norandmaps" : "";
    char clock[96] = "";
    int result = ADD_ALL(to, "-kernel");

    /* A microVM has no timer to measure the TSC with, and TCG no CPUID leaf that tells. */
    if (spec->accel.kind == ACCEL_TCG && spec->accel.tsc_khz > 0)
        (void)snprintf(clock, sizeof(clock), " tsc_early_khz=%llu tsc=reliable no_timer_check",
                       (unsigned long long)spec->accel.tsc_khz);
    if (result == 0)
        result = add(to, "/proc/self/fd/%d", QEMU_FD_KERNEL);
    if (result == 0)
        result = ADD_ALL(to, "-initrd");
    if (result == 0)
        result = add(to, "/proc/self/fd/%d", QEMU_FD_INITRD);
    if (result == 0)
        result = ADD_ALL(to, "-append");
    return result < 0 ? result
                      : add(to, KERNEL_WORDS "%s%s%s%s%s", layout, clock,
                            spec->lasting ? " sandbox.workspace=vdc" : "",
                            spec->command_line ? " " : "",
                            spec->command_line ? spec->command_line : "");
}

/* Without werror a full disk of the host would stop the machine: the guest is told instead.
 * A disk that outlives nothing needs no flush, and no lock on a file without a name; one that
 * lasts is locked by its owner. No other machine has written to it: a clone need not write back
 * and forget what the host has in memory of it, the image of all others among it. */
enum disk_kind { DISK_READ_ONLY, DISK_THROWN_AWAY, DISK_LASTING, DISK_MAILBOX };

static int add_disk(struct text_list *to, const char *name, enum qemu_fd fd,
                    enum disk_kind kind)
{
    const char *no_flush = kind == DISK_LASTING ? "off" : "on";

    int result = ADD_ALL(to, "-add-fd");

    if (result == 0)
        result = add(to, "fd=%d,set=%d", fd, fd);
    if (result == 0)
        result = ADD_ALL(to, "-blockdev");
    if (result == 0)
        result = add(to,
                     "driver=raw,node-name=%s,read-only=%s,cache.no-flush=%s,file.driver=file,"
                     "file.filename=/dev/fdset/%d,file.locking=off,file.drop-cache=off,"
                     "file.cache.no-flush=%s%s",
                     name, kind == DISK_READ_ONLY ? "on" : "off", no_flush, fd, no_flush,
                     kind == DISK_MAILBOX ? ",discard=unmap,file.discard=unmap" : "");
    if (result == 0)
        result = ADD_ALL(to, "-device");
    return result < 0 ? result
                      : add(to, "virtio-blk-device,drive=%s,werror=report%s", name,
                            kind == DISK_MAILBOX ? ",serial=" AGENT_MAILBOX_SERIAL : "");
}

static int add_channels(struct text_list *to)
{
    int result = ADD_ALL(to, "-chardev");

    if (result == 0)
        result = add(to, "socket,id=agent,fd=%d", QEMU_FD_AGENT);
    if (result == 0)
        result = ADD_ALL(to, "-device", "virtio-serial-device,max_ports=2", "-device",
                         "virtserialport,chardev=agent,name=agent", "-chardev",
                         "stdio,id=console,signal=off", "-serial", "chardev:console",
                         "-chardev");
    if (result == 0)
        result = add(to, "socket,id=qmp,fd=%d", QEMU_FD_QMP);
    return result < 0 ? result : ADD_ALL(to, "-mon", "chardev=qmp,mode=control");
}

#define INTERFACE "virtio-net-device,mac=" QEMU_MAC ",host_mtu=65535" /* FRAME_MTU */

/* The template's interface has no peer: what is behind it is no part of the state. */
static int add_network(const struct qemu_args_spec *spec, struct text_list *to)
{
    if (!spec->shape.network)
        return 0;
    if (spec->mode == QEMU_TEMPLATE)
        return ADD_ALL(to, "-device", INTERFACE);
    int result = ADD_ALL(to, "-netdev");

    if (result == 0)
        result = add(to, "dgram,id=net,local.type=fd,local.str=%d", QEMU_FD_NETWORK);
    return result < 0 ? result : ADD_ALL(to, "-device", INTERFACE ",netdev=net");
}

int qemu_args_build(const struct qemu_args_spec *spec, struct text_list *to)
{
    int result = text_list_append(to, spec->program);

    if (result == 0)
        result = add_machine(spec, to);
    if (result == 0)
        result = add_processor(spec, to);
    if (result == 0 && spec->mode != QEMU_CLONE)
        result = add_kernel(spec, to);
    if (result == 0)
        result = add_channels(to);
    if (result == 0)
        result = add_disk(to, "image", QEMU_FD_IMAGE, DISK_READ_ONLY);
    if (result == 0)
        result = add_disk(to, "disk", QEMU_FD_DISK,
                          spec->lasting ? DISK_LASTING : DISK_THROWN_AWAY);
    if (result == 0 && spec->lasting)
        result = add_disk(to, "workspace", QEMU_FD_WORKSPACE, DISK_READ_ONLY);
    if (result == 0)
        result = add_disk(to, "mailbox", QEMU_FD_MAILBOX, DISK_MAILBOX);
    if (result == 0)
        result = add_network(spec, to);
    if (result == 0)
        result = ADD_ALL(to, "-device", "virtio-rng-device");
    if (result == 0 && spec->mode == QEMU_CLONE)
        result = ADD_ALL(to, "-incoming", "defer");
    return result;
}
