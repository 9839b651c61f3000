/* ops.h - QEMU as a back end of the adapter runtime. */
#pragma once

#include "backend.h"

extern const struct backend_ops qemu_backend_ops;
