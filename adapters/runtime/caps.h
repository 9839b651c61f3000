/* caps.h - how much of the machine one VM may take (contract 5.1.2 check 4, 11.2). */
#pragma once

#include "error.h"
#include "settings.h"

/* Effective CPUS, then MEMORY_MB, each against per_image_caps.<IMAGE>, then against the general
 * cap. S400 that names the setting. */
int caps_check(const struct adapter_settings *settings, const char *image, uint32_t cpus,
               uint32_t memory_mb, struct sandbox_error *err);
