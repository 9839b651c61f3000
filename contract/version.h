/* version.h - which contract this tree implements (contract 2.1). */
#pragma once

#include <stdint.h>

struct contract_version {
    uint32_t major;
    uint32_t minor;
};

#define CONTRACT_MAJOR 1u
#define CONTRACT_MINOR 2u
