/* template_key.c - see template_key.h. What is read is hashed with a name and a size in front,
 * so that two lists of things never look the same. */
#include "template_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "buf.h"
#include "codec.h"
#include "file.h"
#include "proc.h"

#define FORMAT "3" /* of what is hashed, and how a template is made */
#define CHUNK_BYTES 65536u
#define CPUINFO_MAX_BYTES (16u * 1024 * 1024)
/* The rate of the TSC is measured; what differs by less is the same processor. */
#define TSC_GRAIN_KHZ 20000u

static void add_text(struct hash_sha256 *hash, const char *name, const char *text)
{
    char head[64];
    int size = snprintf(head, sizeof(head), "%s %zu ", name, strlen(text));

    hash_sha256_update(hash, head, (size_t)size);
    hash_sha256_update(hash, text, strlen(text));
}

static int add_file(struct hash_sha256 *hash, const char *name, int fd)
{
    uint8_t chunk[CHUNK_BYTES];
    struct stat status;
    char size_text[32];
    off_t at = 0;

    if (fstat(fd, &status) < 0)
        return -errno;
    (void)snprintf(size_text, sizeof(size_text), "%lld", (long long)status.st_size);
    add_text(hash, name, size_text);
    for (;;) {
        ssize_t got = pread(fd, chunk, sizeof(chunk), at);

        if (got < 0)
            return -errno;
        if (got == 0)
            return at == status.st_size ? 0 : -EBUSY; /* somebody changes it */
        hash_sha256_update(hash, chunk, (size_t)got);
        at += got;
    }
}

/* What QEMU loads into a microVM by itself: it is part of what is saved. Where there is none,
 * that is hashed too. */
static int add_firmware(struct hash_sha256 *hash, const char *folder)
{
    static const char *const names[] = { "bios-microvm.bin", "qboot.rom", "linuxboot_dma.bin",
                                         "pvh.bin", "kvmvapic.bin" };
    int result = 0;

    for (size_t i = 0; result == 0 && i < ARRAY_SIZE(names); i++) {
        char path[PROC_PATH_MAX + 64];
        _cleanup_close_ int fd = -1;

        (void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            result = add_file(hash, "firmware", fd);
        else
            add_text(hash, "no firmware", path);
    }
    return result;
}

/* Debian's QEMU looks into the first two, one that was installed elsewhere beside itself. */
static int add_firmwares(struct hash_sha256 *hash, const char *program)
{
    char beside[PROC_PATH_MAX + 32] = "";
    const char *const folders[] = { "/usr/share/qemu", "/usr/share/seabios", beside };
    const char *slash = strrchr(program, '/');
    int result = 0;

    if (slash)
        (void)snprintf(beside, sizeof(beside), "%.*s/../share/qemu", (int)(slash - program),
                       program);
    for (size_t i = 0; result == 0 && i < ARRAY_SIZE(folders) && *folders[i]; i++)
        result = add_firmware(hash, folders[i]);
    return result;
}

static int add_program(struct hash_sha256 *hash, const char *name)
{
    char path[PROC_PATH_MAX];
    int result = proc_find(name, path);
    _cleanup_close_ int fd = result < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);

    if (result < 0)
        return result;
    result = fd < 0 ? -errno : add_file(hash, "program", fd);
    return result < 0 ? result : add_firmwares(hash, path);
}

/* Model and features of the first processor; the lines that change by themselves are not. */
static int add_processor(struct hash_sha256 *hash)
{
    static const char *const names[] = { "vendor_id",  "cpu family",      "model",
                                         "model name", "stepping",        "flags",
                                         "Features",   "CPU implementer", "CPU part" };
    _cleanup_(buf_done)
    struct buf text = { 0 };
    int result = file_read("/proc/cpuinfo", CPUINFO_MAX_BYTES, &text);
    char *line = result < 0 ? NULL : (char *)(uintptr_t)buf_text(&text);

    if (!line)
        return result < 0 ? result : -ENOMEM;
    for (char *next; *line && *line != '\n'; line = next) {
        size_t name = strcspn(line, "\t:\n");

        next = strchrnul(line, '\n');
        if (*next)
            *next++ = 0;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
            if (strlen(names[i]) == name && strncmp(line, names[i], name) == 0)
                add_text(hash, "processor", line);
    }
    return 0;
}

/* KVM's part of a machine is the host's kernel. */
static int add_accelerator(struct hash_sha256 *hash, const struct accel *accel)
{
    struct utsname host;

    add_text(hash, "accelerator", accel_name(accel));
    if (accel->kind != ACCEL_KVM)
        return 0;
    if (uname(&host) < 0)
        return -errno;
    add_text(hash, "host", host.release);
    return 0;
}

static int add_arguments(struct hash_sha256 *hash, const struct qemu_args_spec *spec)
{
    struct qemu_args_spec rounded = *spec;
    struct text_list arguments = { 0 };
    int result;

    rounded.accel.tsc_khz = (spec->accel.tsc_khz + TSC_GRAIN_KHZ / 2) / TSC_GRAIN_KHZ;
    result = qemu_args_build(&rounded, &arguments);
    for (size_t i = 0; result == 0 && i < arguments.count; i++)
        add_text(hash, "argument", arguments.items[i]);
    text_list_done(&arguments);
    return result;
}

/* In full: not all of it shows in the arguments, such as the size of the disk. */
static void add_shape(struct hash_sha256 *hash, const struct qemu_shape *shape)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "%u %u %u %d", shape->cpus, shape->memory_mb,
                   shape->disk_mb, shape->network);
    add_text(hash, "shape", text);
}

int template_key(const struct template_key_spec *spec, char ret_key[HASH_SHA256_HEX_BYTES])
{
    struct hash_sha256 hash;
    int result;

    hash_sha256_init(&hash);
    add_text(&hash, "format", FORMAT);
    add_text(&hash, "image", spec->image_digest);
    add_text(&hash, "rehearsal", spec->rehearsal);
    add_shape(&hash, &spec->args.shape);
    result = add_accelerator(&hash, &spec->args.accel);
    if (result == 0)
        result = add_arguments(&hash, &spec->args);
    if (result == 0)
        result = add_processor(&hash);
    if (result == 0)
        result = add_program(&hash, spec->args.program);
    if (result == 0)
        result = add_file(&hash, "kernel", spec->kernel_fd);
    if (result == 0)
        result = add_file(&hash, "initrd", spec->initrd_fd);
    if (result == 0)
        hash_sha256_final_hex(&hash, ret_key);
    return result;
}
