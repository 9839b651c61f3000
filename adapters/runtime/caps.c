/* caps.c - see caps.h. */
#include "caps.h"

#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

static const struct setting_cap *image_cap(const struct adapter_settings *settings,
                                           const char *image)
{
    for (size_t i = 0; i < settings->per_image_caps.count; i++) {
        if (strcmp(settings->per_image_caps.items[i].name, image) == 0)
            return &settings->per_image_caps.items[i];
    }
    return NULL;
}

static uint32_t machine_cpus(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    return count > 0 ? (uint32_t)count : 1;
}

static uint32_t machine_memory_mb(void)
{
    struct sysinfo info;
    uint64_t mb;

    if (sysinfo(&info) < 0)
        return UINT32_MAX;
    mb = (uint64_t)info.totalram * info.mem_unit / (1024 * 1024);
    return mb < UINT32_MAX ? (uint32_t)mb : UINT32_MAX;
}

/* One resource: what is asked for, and the two caps on it. */
struct cap_check {
    const char *field;
    uint32_t value;
    const char *setting;
    uint32_t setting_value; /* 0: all that the machine has */
    uint32_t machine_value;
    const uint32_t *image_value; /* NULL: the image has no caps */
};

static int cap_check(const struct cap_check *check, const char *image,
                     struct sandbox_error *err)
{
    uint32_t cap = check->setting_value > 0 ? check->setting_value : check->machine_value;

    if (check->image_value && check->value > *check->image_value)
        return sandbox_error_set(err, S400, "%s %u exceeds per_image_caps.%s.%s %u",
                                 check->field, check->value, image, check->setting,
                                 *check->image_value);
    if (check->value > cap)
        return sandbox_error_set(err, S400, "%s %u exceeds %s %u%s", check->field, check->value,
                                 check->setting, cap,
                                 check->setting_value > 0 ? "" : " (all this machine has)");
    return 0;
}

int caps_check(const struct adapter_settings *settings, const char *image, uint32_t cpus,
               uint32_t memory_mb, struct sandbox_error *err)
{
    const struct setting_cap *cap = image_cap(settings, image);
    const struct cap_check cpu_check = {
        .field = "cpus",
        .value = cpus,
        .setting = "max_cpus",
        .setting_value = settings->max_cpus,
        .machine_value = machine_cpus(),
        .image_value = cap ? &cap->max_cpus : NULL,
    };
    const struct cap_check memory_check = {
        .field = "memory_mb",
        .value = memory_mb,
        .setting = "max_memory_mb",
        .setting_value = settings->max_memory_mb,
        .machine_value = machine_memory_mb(),
        .image_value = cap ? &cap->max_memory_mb : NULL,
    };

    if (cap_check(&cpu_check, image, err) < 0)
        return -1;
    return cap_check(&memory_check, image, err);
}
