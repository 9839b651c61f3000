/* version.h - which contract this tree implements (contract 2.1). */
#pragma once

#include <stdint.h>

struct contract_version {
    uint32_t major;
    uint32_t minor;
};

/* A test builds routers of other versions. */
#ifndef CONTRACT_MAJOR
#define CONTRACT_MAJOR 1u
#define CONTRACT_MINOR 2u
#endif
