/* refusal.h - the errors that the router makes itself: S301, S302, S303, S400 and the like.
 *
 * Each fills an answer whose body is in TO; the code goes to the counters. */
#pragma once

#include "adapter.h"
#include "error.h"
#include "route.h"

struct refusal {
    struct buf body;
    struct answer answer;
    enum sandbox_code code;
};

/* What has an effect and did not happen says so. */
void refuse_no_adapter(struct refusal *ret_refusal, const char *docs_base);
void refuse_mismatch(struct refusal *ret_refusal, const char *docs_base,
                     const struct adapter *adapter);
/* WHY follows the adapter's name: "is not connected". */
void refuse_unavailable(struct refusal *ret_refusal, const char *docs_base, const char *name,
                        const char *why, enum sandbox_outcome outcome);
void refuse_limit(struct refusal *ret_refusal, const char *docs_base, const char *what,
                  uint64_t limit);
/* Of ERR, which is emptied. */
void refuse_error(struct refusal *ret_refusal, const char *docs_base,
                  struct sandbox_error *err);
void refusal_done(struct refusal *refusal);
