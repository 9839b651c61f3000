/* qemu_settings.c - see qemu_settings.h. */
#include "qemu_settings.h"

#include <stddef.h>
#include <string.h>

#define ROW(kind_, name_, standard_, min_, max_, text_)                                        \
    {                                                                                          \
        .name = #name_, .kind = SETTING_##kind_, .standard = standard_, .min = min_,           \
        .max = max_, .offset = offsetof(struct qemu_settings, name_), .text = text_            \
    }

static const struct setting_row rows[] = {
    ROW(TEXT, program, "qemu-system-x86_64", 1, 4095, "QEMU: a path, or a name on PATH"),
    ROW(TEXT, acceleration, "auto", 1, 16, "auto, kvm or tcg"),
    ROW(TEXT, user, "nobody", 1, 64, "whom QEMU runs as when the adapter is root"),
    ROW(PATH, agent, "", 0, 0, "the static guest agent; default: beside the adapter"),
    ROW(PATH, kernel, "", 0, 0, "a kernel of one's own instead of Debian's"),
    ROW(PATH, initrd, "", 0, 0, "an initramfs of one's own"),
    ROW(TEXT, command_line, "", 0, 1024, "further words of the kernel's command line"),
    ROW(BOOL, host_loopback, "false", 0, 0,
        "a guest's gateway leads to this machine's loopback"),
    ROW(BOOL, templates, "true", 0, 0, "start machines as copies of one that has booted"),
    ROW(U32, max_templates, "8", 1, 1024, "the least recently used one is dropped"),
    ROW(U32, pool_size, "2", 0, 256, "machines kept ready for each template"),
    ROW(U32, max_pool_size, "6", 0, 4096, "machines kept ready in all"),
    ROW(U32, translation_mb, "64", 8, 2048, "tcg: buffer of translated code, MiB a machine"),
};

static bool is_acceleration(const char *text)
{
    return strcmp(text, "auto") == 0 || strcmp(text, "kvm") == 0 || strcmp(text, "tcg") == 0;
}

int qemu_settings_read(const struct settings *settings, struct qemu_settings *ret_settings,
                       struct sandbox_error *err)
{
    char error[SETTINGS_ERROR_MAX];

    if (settings_read(settings->qemu, "sandbox.qemu", rows, ARRAY_SIZE(rows), ret_settings,
                      error) < 0)
        return sandbox_error_set(err, S300, "%s:%s", settings->path, error);
    if (!is_acceleration(ret_settings->acceleration)) {
        (void)sandbox_error_set(err, S300,
                                "%s: sandbox.qemu.acceleration %s is none of auto, kvm, tcg",
                                settings->path, ret_settings->acceleration);
        qemu_settings_done(ret_settings);
        return -1;
    }
    return 0;
}

void qemu_settings_done(struct qemu_settings *settings)
{
    settings_release(rows, ARRAY_SIZE(rows), settings);
}
