/* boot_files.h - kernel, initramfs and empty disk, made by the program boot-install.
 *
 * States: idle -> making (the program runs, waits are kept) -> made, or idle again after a
 * failure that all waits were told of. Another size of the disk starts again from idle. */
#pragma once

#include <stdint.h>

#include "list.h"
#include "loop.h"
#include "qemu_settings.h"

struct boot_files;

/* One who waits; lives in its owner. */
struct boot_wait {
    struct list node;
    /* Once; NULL: made. WHY is borrowed for the call. */
    void (*done)(void *ctx, const char *why);
    void *ctx;
};

/* What a machine boots from; borrowed, valid until the next boot_files_get(). */
struct boot_file_set {
    int kernel_fd;
    int initrd_fd;
    int blank_fd;     /* empty ext4 of disk_mb */
    char version[64]; /* of the kernel */
};

/* CACHE_DIRECTORY: of the settings; its folder boot is ours. SETTINGS are borrowed. */
int boot_files_new(struct loop *loop, const char *cache_directory,
                   const struct qemu_settings *settings, struct boot_files **ret_files);
void boot_files_free(struct boot_files *files);
DEFINE_CLEANUP(struct boot_files *, boot_files_free)

/* The files for disks of DISK_MB if they are there; else NULL, and they are being made: WAIT
 * (may be NULL) is told when that has ended, never from inside this call. */
const struct boot_file_set *boot_files_get(struct boot_files *files, uint32_t disk_mb,
                                           struct boot_wait *wait);
void boot_wait_init(struct boot_wait *wait, void (*done)(void *ctx, const char *why),
                    void *ctx);
void boot_wait_cancel(struct boot_wait *wait);
