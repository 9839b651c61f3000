/* test_args.c - the command line of each kind of machine. */
#include "qemu_args.h"

#include <stdbool.h>
#include <string.h>

#include "codec.h"
#include "unit.h"

static const struct qemu_args_spec cold = {
    .program = "/opt/qemu",
    .mode = QEMU_COLD,
    .shape = { .cpus = 1, .memory_mb = 256, .disk_mb = 512 },
    .accel = { .kind = ACCEL_TCG, .tsc_khz = 2096000 },
    .translation_mb = 32,
};

static struct text_list build(const struct qemu_args_spec *spec)
{
    struct text_list list = { 0 };

    ck_assert_int_eq(qemu_args_build(spec, &list), 0);
    ck_assert_str_eq(list.items[0], "/opt/qemu");
    return list;
}

/* What stands behind the OPTION for the NTH time; NULL: it is not there. */
static const char *value(const struct text_list *list, const char *option, unsigned nth)
{
    for (size_t i = 1; i + 1 < list->count; i++)
        if (strcmp(list->items[i], option) == 0 && nth-- == 0)
            return list->items[i + 1];
    return NULL;
}

static bool has(const struct text_list *list, const char *part)
{
    for (size_t i = 0; i < list->count; i++)
        if (strstr(list->items[i], part))
            return true;
    return false;
}

START_TEST(test_cold)
{
    struct text_list list = build(&cold);

    ck_assert_str_eq(value(&list, "-sandbox", 0), QEMU_SECCOMP);
    ck_assert_str_eq(value(&list, "-machine", 0),
                     "microvm,acpi=on,ioapic2=off,usb=off,isa-serial=on");
    ck_assert_str_eq(value(&list, "-m", 0), "256M");
    ck_assert_str_eq(value(&list, "-smp", 0), "1");
    ck_assert_str_eq(value(&list, "-cpu", 0), "max,-erms,-fsrm,-la57,-smap,-smep,-pku");
    ck_assert_str_eq(value(&list, "-accel", 0), "tcg,thread=single,tb-size=32");
    ck_assert_str_eq(value(&list, "-kernel", 0), "/proc/self/fd/7");
    ck_assert_str_eq(value(&list, "-initrd", 0), "/proc/self/fd/8");
    ck_assert_ptr_nonnull(
        strstr(value(&list, "-append", 0), " tsc_early_khz=2096000 tsc=reliable"));
    ck_assert_ptr_nonnull(strstr(value(&list, "-append", 0), " norandmaps"));
    ck_assert_ptr_null(value(&list, "-object", 0));
    ck_assert_ptr_null(value(&list, "-incoming", 0));
    ck_assert(!has(&list, "virtio-net"));
    text_list_done(&list);
}
END_TEST

START_TEST(test_disks)
{
    struct text_list list = build(&cold);
    const char *image = value(&list, "-blockdev", 0), *disk = value(&list, "-blockdev", 1);

    /* vda is the image and cannot be written, vdb is the writable disk. */
    ck_assert_ptr_nonnull(strstr(image, "node-name=image,read-only=on"));
    ck_assert_ptr_nonnull(strstr(image, "/dev/fdset/5,"));
    ck_assert_ptr_nonnull(strstr(disk, "node-name=disk,read-only=off"));
    ck_assert_ptr_nonnull(strstr(disk, "/dev/fdset/6,"));
    ck_assert_str_eq(value(&list, "-add-fd", 0), "fd=5,set=5");
    ck_assert_str_eq(value(&list, "-add-fd", 1), "fd=6,set=6");
    ck_assert_str_eq(value(&list, "-add-fd", 2), "fd=14,set=14");
    ck_assert_ptr_null(value(&list, "-add-fd", 3));
    text_list_done(&list);
}
END_TEST

/* The last of the disks, by a name that is not its letter; no flush, and holes go through. */
START_TEST(test_mailbox)
{
    struct text_list list = build(&cold);
    const char *mailbox = value(&list, "-blockdev", 2);

    ck_assert_int_eq(QEMU_FD_MAILBOX, 14);
    ck_assert_ptr_nonnull(strstr(mailbox, "node-name=mailbox,read-only=off"));
    ck_assert_ptr_nonnull(strstr(mailbox, "/dev/fdset/14,"));
    ck_assert_ptr_nonnull(strstr(mailbox, ",discard=unmap,file.discard=unmap"));
    ck_assert(has(&list, "virtio-blk-device,drive=mailbox,werror=report,serial=mailbox"));
    text_list_done(&list);
}
END_TEST

/* A worker's disk honours flushes, and there is a third one, which the guest is told of. */
START_TEST(test_lasting)
{
    struct qemu_args_spec spec = cold;
    struct text_list list = build(&spec);

    ck_assert_ptr_nonnull(strstr(value(&list, "-blockdev", 1), "cache.no-flush=on"));
    ck_assert(!has(&list, "sandbox.workspace"));
    text_list_done(&list);
    spec.lasting = true;
    list = build(&spec);
    ck_assert_ptr_nonnull(strstr(value(&list, "-blockdev", 1), "node-name=disk,read-only=off"));
    ck_assert_ptr_null(strstr(value(&list, "-blockdev", 1), "no-flush=on"));
    ck_assert_ptr_nonnull(strstr(value(&list, "-blockdev", 1), "drop-cache=off"));
    ck_assert_ptr_nonnull(
        strstr(value(&list, "-blockdev", 2), "node-name=workspace,read-only=on"));
    ck_assert_ptr_nonnull(strstr(value(&list, "-append", 0), " sandbox.workspace=vdc"));
    text_list_done(&list);
}
END_TEST

START_TEST(test_template_shares_its_memory)
{
    struct qemu_args_spec spec = cold;
    struct text_list list;

    spec.mode = QEMU_TEMPLATE;
    list = build(&spec);
    ck_assert_str_eq(value(&list, "-object", 0),
                     "memory-backend-file,id=ram,size=256M,mem-path=/proc/self/fd/9,share=on");
    ck_assert_ptr_nonnull(strstr(value(&list, "-machine", 0), "memory-backend=ram"));
    ck_assert_ptr_nonnull(value(&list, "-kernel", 0));
    ck_assert_ptr_null(value(&list, "-incoming", 0));
    text_list_done(&list);
}
END_TEST

START_TEST(test_clone_has_a_private_view)
{
    struct qemu_args_spec spec = cold;
    struct text_list list;

    spec.mode = QEMU_CLONE;
    list = build(&spec);
    ck_assert_ptr_nonnull(strstr(value(&list, "-object", 0), "share=off"));
    ck_assert_str_eq(value(&list, "-incoming", 0), "defer");
    ck_assert_ptr_null(value(&list, "-kernel", 0));
    ck_assert_ptr_null(value(&list, "-append", 0));
    text_list_done(&list);
}
END_TEST

/* What the guest's devices are made of must be equal, or the state does not load. */
START_TEST(test_template_and_clone_have_the_same_devices)
{
    struct qemu_args_spec spec = cold;
    struct text_list lists[2];
    unsigned devices = 0;

    for (unsigned network = 0; network < 2; network++) {
        spec.shape.network = network;
        spec.mode = QEMU_TEMPLATE;
        lists[0] = build(&spec);
        spec.mode = QEMU_CLONE;
        lists[1] = build(&spec);
        for (devices = 0; value(&lists[0], "-device", devices); devices++) {
            const char *one = value(&lists[0], "-device", devices);
            const char *other = value(&lists[1], "-device", devices);

            ck_assert_ptr_nonnull(other);
            ck_assert_int_eq(strncmp(one, other, strcspn(one, ",")), 0);
        }
        ck_assert_ptr_null(value(&lists[1], "-device", devices));
        ck_assert_uint_eq(devices, 6 + network);
        text_list_done(&lists[0]);
        text_list_done(&lists[1]);
    }
}
END_TEST

START_TEST(test_network)
{
    struct qemu_args_spec spec = cold;
    struct text_list list;

    spec.shape.network = true;
    list = build(&spec);
    ck_assert_str_eq(value(&list, "-netdev", 0), "dgram,id=net,local.type=fd,local.str=11");
    ck_assert(has(&list, "virtio-net-device,mac=" QEMU_MAC ",host_mtu=65535,netdev=net"));
    text_list_done(&list);
    spec.mode = QEMU_TEMPLATE; /* no peer: what is behind it is no part of the state */
    list = build(&spec);
    ck_assert_ptr_null(value(&list, "-netdev", 0));
    ck_assert(has(&list, "virtio-net-device,mac=" QEMU_MAC ",host_mtu=65535"));
    text_list_done(&list);
}
END_TEST

START_TEST(test_kvm)
{
    struct qemu_args_spec spec = cold;
    struct text_list list;

    spec.accel = (struct accel){ .kind = ACCEL_KVM };
    spec.shape.cpus = 4;
    list = build(&spec);
    ck_assert_str_eq(value(&list, "-accel", 0), "kvm");
    ck_assert_str_eq(value(&list, "-cpu", 0), "host");
    ck_assert_str_eq(value(&list, "-smp", 0), "4");
    ck_assert_ptr_null(strstr(value(&list, "-append", 0), "tsc"));
    ck_assert_ptr_null(strstr(value(&list, "-append", 0), "norandmaps"));
    text_list_done(&list);
}
END_TEST

START_TEST(test_more_processors_and_words)
{
    struct qemu_args_spec spec = cold;
    struct text_list list;

    spec.shape.cpus = 2;
    spec.command_line = "loglevel=7";
    list = build(&spec);
    ck_assert_str_eq(value(&list, "-accel", 0), "tcg,thread=multi,tb-size=32");
    ck_assert_ptr_nonnull(strstr(value(&list, "-append", 0), " loglevel=7"));
    text_list_done(&list);
}
END_TEST

UNIT_MAIN("qemu_args", test_cold, test_disks, test_mailbox, test_lasting,
          test_template_shares_its_memory, test_clone_has_a_private_view,
          test_template_and_clone_have_the_same_devices, test_network, test_kvm,
          test_more_processors_and_words)
