/* qemu_settings.c - see qemu_settings.h. */
#include "qemu_settings.h"

#include <assert.h>
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
    ROW(BOOL, allow_private_networks, "false", 0, 0,
        "a guest with a network may reach private ranges, and this machine's own addresses"),
    ROW(U32S, host_ports, "", 1, UINT16_MAX,
        "ports of this machine's loopback that a guest may reach through its gateway"),
    ROW(BOOL, templates, "true", 0, 0, "start machines as copies of one that has booted"),
    ROW(TEXT, warm_up, "auto", 1, 16,
        "who runs the interpreters ahead: off, template, pool; auto: tcg pool, kvm template"),
    ROW(U32, max_templates, "8", 1, 1024, "the least recently used one is dropped"),
    ROW(U32, template_cache_mb, "2048", 0, 1048576, "disk for templates; 0: none is kept"),
    ROW(U32, pool_size, "2", 0, 256, "machines kept ready for each template"),
    ROW(U32, max_pool_size, "6", 0, 4096, "machines kept ready in all"),
    ROW(U32, pool_memory_mb, "0", 0, 1048576, "memory of those machines; 0: no limit"),
    ROW(U32, pool_cpu_percent, "0", 0, 100, "of one processor, for making them; 0: no limit"),
    ROW(U32, translation_mb, "64", 8, 2048, "tcg: buffer of translated code, MiB a machine"),
};

static const char *const accelerations[] = { "auto", "kvm", "tcg", NULL };
static const char *const warm_ups[] = { "auto", "off", "template", "pool", NULL };

/* S300 when TEXT is none of WORDS. */
static int check_word(const struct settings *settings, const char *key, const char *text,
                      const char *const *words, struct sandbox_error *err)
{
    for (size_t i = 0; words[i]; i++)
        if (strcmp(words[i], text) == 0)
            return 0;
    return sandbox_error_set(err, S300, "%s: sandbox.qemu.%s %s is none of %s, %s, %s%s%s",
                             settings->path, key, text, words[0], words[1], words[2],
                             words[3] ? ", " : "", words[3] ? words[3] : "");
}

enum qemu_warm_up qemu_settings_warm_up(const struct qemu_settings *settings,
                                        const struct accel *accel)
{
    static const enum qemu_warm_up by_accel[] = {
        [ACCEL_TCG] = WARM_UP_POOL, [ACCEL_KVM] = WARM_UP_TEMPLATE
    };
    static_assert(ARRAY_SIZE(by_accel) == ACCEL_KIND_MAX, "a way for each kind");

    if (strcmp(settings->warm_up, "off") == 0)
        return WARM_UP_OFF;
    if (strcmp(settings->warm_up, "template") == 0)
        return WARM_UP_TEMPLATE;
    return strcmp(settings->warm_up, "pool") == 0 ? WARM_UP_POOL : by_accel[accel->kind];
}

int qemu_settings_read(const struct settings *settings, struct qemu_settings *ret_settings,
                       struct sandbox_error *err)
{
    char error[SETTINGS_ERROR_MAX];

    if (settings_read(settings->qemu, "sandbox.qemu", rows, ARRAY_SIZE(rows), ret_settings,
                      error) < 0)
        return sandbox_error_set(err, S300, "%s:%s", settings->path, error);
    if (check_word(settings, "acceleration", ret_settings->acceleration, accelerations, err) ==
            0 &&
        check_word(settings, "warm_up", ret_settings->warm_up, warm_ups, err) == 0)
        return 0;
    qemu_settings_done(ret_settings);
    return -1;
}

void qemu_settings_done(struct qemu_settings *settings)
{
    settings_release(rows, ARRAY_SIZE(rows), settings);
}
