/* byte_count.h - a number of bytes as people read it. */
#pragma once

#include <stdint.h>

#define BYTE_COUNT_TEXT_BYTES 24

/* "512 B", "1.5 KiB", "12.3 MiB". */
void byte_count_write(uint64_t bytes, char ret_text[BYTE_COUNT_TEXT_BYTES]);
