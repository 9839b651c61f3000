/* The line of progress: parts by what is known and by the room there is. */
#include <check.h>

#include "cleanup.h"
#include "progress_line.h"
#include "unit.h"

#define MIB (1024u * 1024u)

START_TEST(lines)
{
    static const struct {
        struct progress_line line;
        unsigned columns;
        const char *text;
    } cases[] = {
        { { .step = "booting", .elapsed_ms = 1249 }, 80, "booting  1.2s" },
        { { .step = "pulling", .has_bytes = true, .elapsed_ms = 99 },
          80,
          "pulling  0 B  0.0s" },
        { { .step = "up", .has_bytes = true, .done_bytes = 1536, .elapsed_ms = 100 },
          80,
          "up  1.5 KiB  0.1s" },
        { { .step = "up",
            .has_bytes = true,
            .done_bytes = 3 * MIB,
            .step_ms = 2000,
            .elapsed_ms = 5000 },
          80,
          "up  3.0 MiB  1.5 MiB/s  5.0s" },
        { { .step = "up", .has_bytes = true, .done_bytes = MIB, .total_bytes = 2 * MIB },
          80,
          "up  [===============>              ]   50 %  1.0 MiB of 2.0 MiB  0.0s" },
        { { .step = "up", .has_bytes = true, .done_bytes = 2 * MIB, .total_bytes = 2 * MIB },
          80,
          "up  [==============================]  100 %  2.0 MiB of 2.0 MiB  0.0s" },
        /* less room: a shorter bar, none, a cut line */
        { { .step = "up", .has_bytes = true, .done_bytes = MIB, .total_bytes = 2 * MIB },
          50,
          "up  [=====>    ]   50 %  1.0 MiB of 2.0 MiB  0.0s" },
        { { .step = "up", .has_bytes = true, .done_bytes = MIB, .total_bytes = 2 * MIB },
          45,
          "up  1.0 MiB of 2.0 MiB  0.0s" },
        { { .step = "booting", .elapsed_ms = 1200 }, 6, "booti" },
        { { .step = "booting", .elapsed_ms = 1200 }, 1, "" },
        { { .step = "booting", .elapsed_ms = 1200 }, 0, "" },
        /* a total that was wrong, and numbers beyond sense */
        { { .step = "up", .has_bytes = true, .done_bytes = 3, .total_bytes = 2 },
          80,
          "up  3 B  0.0s" },
        { { .step = "up", .has_bytes = true, .done_bytes = UINT64_MAX, .step_ms = UINT64_MAX },
          80,
          "up  16.0 EiB  1000 B/s  0.0s" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[PROGRESS_LINE_MAX_BYTES] = "";
        size_t size = progress_line_write(&cases[i].line, cases[i].columns, text);

        ck_assert_str_eq(text, cases[i].text);
        ck_assert_uint_eq(size, strlen(text));
        ck_assert(size == 0 || size < cases[i].columns);
    }
}
END_TEST

START_TEST(a_wide_terminal)
{
    char text[PROGRESS_LINE_MAX_BYTES];
    const struct progress_line line = {
        .step = "up", .has_bytes = true, .done_bytes = 1, .total_bytes = 3
    };

    ck_assert_uint_lt(progress_line_write(&line, 100000, text), PROGRESS_LINE_MAX_BYTES);
}
END_TEST

UNIT_MAIN("cli-progress-line", lines, a_wide_terminal)
