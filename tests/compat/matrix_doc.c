/* matrix_doc.c - docs/compatibility.md out of what the matrix saw. */
#include <assert.h>
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "matrix.h"

static const char *const verdicts[] = {
    [MATRIX_FORWARDED] = "passes",
    [MATRIX_UPGRADE_ADAPTER] = "S302: upgrade the adapter",
    [MATRIX_UPGRADE_ROUTER] = "S302: upgrade the router",
    [MATRIX_CLOSED] = "S301: connection closed",
};
static_assert(ARRAY_SIZE(verdicts) == MATRIX_VERDICT_MAX, "a text for each verdict");

static const char head[] =
    "<!-- Generated: tests/compat runs every operation over every pair of versions and writes "
    "what came.\n     cmake --build build --target compatibility-doc; a test compares. -->\n\n"
    "# Compatibility\n\n"
    "Only the major decides whether router and adapter fit "
    "([contract.md](contract.md), version pair). With the same major each side may be\n"
    "older or newer: bodies pass as the same bytes, and what one side does not know is absent, "
    "never invented. Nothing here\n"
    "changes between published versions: messages and replies of each minor are kept in "
    "`tests/compat/frozen`.\n";

static void put(struct buf *to, const char *text)
{
    ck_assert_int_eq(buf_append_text(to, text), 0);
}

static void put_row_of(struct buf *to, const char *first)
{
    put(to, "| ");
    put(to, first);
    put(to, " |");
}

static void put_headings(struct buf *to, const char *first)
{
    put_row_of(to, first);
    for (size_t i = 0; i < MATRIX_ADAPTERS; i++) {
        put(to, " ");
        put(to, matrix_adapters[i].heading);
        put(to, " |");
    }
    put(to, "\n|---|");
    for (size_t i = 0; i < MATRIX_ADAPTERS; i++)
        put(to, "---|");
    put(to, "\n");
}

static void put_names(struct buf *to, const char *before, const char *const *names,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put(to, i == 0 ? before : ", ");
        put(to, "`");
        put(to, names[i]);
        put(to, "`");
    }
}

static void put_cell(struct buf *to, const struct matrix_cell *cell)
{
    size_t start = to->size;

    put(to, " ");
    if (cell->no_info)
        put(to, "`info` is null");
    else if (cell->verdict != MATRIX_FORWARDED)
        put(to, verdicts[cell->verdict]);
    else if (cell->unsupported)
        put(to, "S304: no feature `worker`");
    else
        put(to, cell->missing_count || cell->ignored_count || cell->extra ? "" : "as is");
    if (cell->missing_count)
        put_names(to, "no ", cell->missing, cell->missing_count);
    if (cell->ignored_count)
        put_names(to, cell->missing_count ? "; ignores " : "ignores ", cell->ignored,
                  cell->ignored_count);
    if (cell->extra)
        put(to, cell->missing_count || cell->ignored_count ? "; unknown keys pass"
                                                           : "unknown keys pass");
    ck_assert_uint_gt(to->size, start + 1); /* every cell says something */
    put(to, " |");
}

/* All operations of a pair have the verdict of the first: the test has seen to that. */
static void put_verdicts(const struct matrix *matrix, struct buf *to)
{
    put(to, "\n## Router by adapter\n\n"
            "Of every operation with the same verdict; `sandbox::adapter::info` answers over "
            "every pair.\n\n");
    put_headings(to, "router");
    for (size_t i = 0; i < MATRIX_ROUTERS; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "%u.%u", matrix_routers[i].contract.major,
                       matrix_routers[i].contract.minor);
        put_row_of(to, name);
        for (size_t j = 0; j < MATRIX_ADAPTERS; j++) {
            put(to, " ");
            put(to, verdicts[matrix->cells[i][j][0].verdict]);
            put(to, " |");
        }
        put(to, "\n");
    }
}

static size_t router_of_today(void)
{
    for (size_t i = 0; i < MATRIX_ROUTERS; i++) {
        if (matrix_routers[i].contract.major == CONTRACT_MAJOR &&
            matrix_routers[i].contract.minor == CONTRACT_MINOR)
            return i;
    }
    ck_abort_msg("the matrix has no router of the current version");
}

static void put_operations(const struct matrix *matrix, struct buf *to)
{
    size_t router = router_of_today();

    put(to,
        "\n## Operation by adapter\n\n"
        "Behind any router of major 1, whatever its minor. \"as is\": request and reply are "
        "those of the current minor. \"no\": keys that\n"
        "replies of this adapter lack, which then are unknown, not `false`. \"ignores\": keys "
        "of a request that change nothing at this\n"
        "adapter; a caller that needs them reads `info.features` first.\n\n");
    put_headings(to, "operation");
    for (size_t op = 0; op < OP_MAX; op++) {
        char name[64];

        (void)snprintf(name, sizeof(name), "`%s`", operations[op].name);
        put_row_of(to, name);
        for (size_t j = 0; j < MATRIX_ADAPTERS; j++)
            put_cell(to, &matrix->cells[router][j][op]);
        put(to, "\n");
    }
}

void matrix_doc(const struct matrix *matrix, struct buf *to)
{
    put(to, head);
    put_verdicts(matrix, to);
    put_operations(matrix, to);
}
