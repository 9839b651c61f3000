/* matrix.h - router contract by adapter contract by operation: what was seen, and how it is
 * told in docs/compatibility.md. */
#pragma once

#include "buf.h"
#include "tables.h"
#include "version.h"

/* A row: a router. */
struct matrix_router {
    struct contract_version contract;
};
#define MATRIX_ROUTERS 6
extern const struct matrix_router matrix_routers[MATRIX_ROUTERS];

/* A column: an adapter. */
struct matrix_adapter {
    const char *heading;
    struct contract_version contract;
    bool without_contract;
    unsigned replies; /* the minor whose recorded replies it gives */
    bool later;       /* with a key that is in no table yet */
    const char *features[3];
};
#define MATRIX_ADAPTERS 8
extern const struct matrix_adapter matrix_adapters[MATRIX_ADAPTERS];

enum matrix_verdict {
    MATRIX_FORWARDED,
    MATRIX_UPGRADE_ADAPTER, /* S302 */
    MATRIX_UPGRADE_ROUTER,  /* S302 */
    MATRIX_CLOSED,          /* S301: it does not count as connected */
    MATRIX_VERDICT_MAX
};

/* What one operation gave over one pair. */
struct matrix_cell {
    enum matrix_verdict verdict;
    bool unsupported; /* S304, passed on from the adapter */
    bool no_info;     /* adapter::info: the router's own part alone */
    bool extra;       /* a key in no table came through */
    /* Names, borrowed from the tables. */
    const char *missing[16];
    size_t missing_count;
    const char *ignored[4]; /* keys of the request that this adapter does not know */
    size_t ignored_count;
};

struct matrix {
    struct matrix_cell cells[MATRIX_ROUTERS][MATRIX_ADAPTERS][OP_MAX];
};

/* The Markdown text. */
void matrix_doc(const struct matrix *matrix, struct buf *to);
