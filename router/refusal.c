/* refusal.c - see refusal.h. */
#include "refusal.h"

#include <inttypes.h>

void refuse_error(struct refusal *ret_refusal, const char *docs_base, struct sandbox_error *err)
{
    *ret_refusal = (struct refusal){ .code = err->code };
    if (sandbox_error_encode(err, docs_base, &ret_refusal->body) == 0)
        ret_refusal->answer = (struct answer){
            .kind = ANSWER_ERROR,
            .body = { .data = (const char *)ret_refusal->body.data,
                      .size = ret_refusal->body.size },
        };
    else
        ret_refusal->answer = (struct answer){ .kind = ANSWER_FAILED,
                                               .message = "the router is out of memory" };
    sandbox_error_done(err);
}

void refusal_done(struct refusal *refusal)
{
    buf_done(&refusal->body);
}

void refuse_no_adapter(struct refusal *ret_refusal, const char *docs_base)
{
    struct sandbox_error err = { 0 };

    (void)sandbox_error_set(&err, S303,
                            "sandbox.adapter is not set: no sandbox adapter is "
                            "configured");
    refuse_error(ret_refusal, docs_base, &err);
}

void refuse_mismatch(struct refusal *ret_refusal, const char *docs_base,
                     const struct adapter *adapter)
{
    const char *older = adapter->contract.major < CONTRACT_MAJOR ? "adapter" : "router";
    struct sandbox_error err = { 0 };

    (void)sandbox_error_set(&err, S302,
                            "adapter %s speaks contract %" PRIu32 ".%" PRIu32
                            ", this router %u.%u: upgrade the %s",
                            adapter->name, adapter->contract.major, adapter->contract.minor,
                            CONTRACT_MAJOR, CONTRACT_MINOR, older);
    sandbox_error_set_note(&err, "upgrade the %s", older);
    refuse_error(ret_refusal, docs_base, &err);
}

void refuse_unavailable(struct refusal *ret_refusal, const char *docs_base, const char *name,
                        const char *why, enum sandbox_outcome outcome)
{
    struct sandbox_error err = { 0 };

    (void)sandbox_error_set(&err, S301, "adapter %s %s", name, why);
    sandbox_error_set_outcome(&err, outcome);
    refuse_error(ret_refusal, docs_base, &err);
}

void refuse_limit(struct refusal *ret_refusal, const char *docs_base, const char *what,
                  uint64_t limit)
{
    struct sandbox_error err = { 0 };

    (void)sandbox_error_set(
        &err, S400, "one more than the %" PRIu64 " %s that this router holds", limit, what);
    refuse_error(ret_refusal, docs_base, &err);
}
