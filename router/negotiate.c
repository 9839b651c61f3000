/* negotiate.c - see negotiate.h. */
#include "negotiate.h"

#include "utf8.h"

/* Names go into function names (`<adapter>::exec`), messages and labels of the log. */
static bool name_is_usable(struct span name)
{
    if (!name.data || name.size == 0 || name.size > ADAPTER_NAME_MAX_BYTES)
        return false;
    for (size_t i = 0; i < name.size; i++) {
        unsigned char byte = (unsigned char)name.data[i];

        if (byte <= ' ' || byte == 0x7f || byte == ':' || byte == '/')
            return false;
    }
    return utf8_valid(name.data, name.size);
}

/* These belong to the engine itself: an adapter of that name would hide them. */
static bool name_is_reserved(struct span name)
{
    return span_equals(name, "sandbox") || span_equals(name, "engine");
}

static enum verdict malformed(const char *reason, const char **ret_reason)
{
    *ret_reason = reason;
    return VERDICT_MALFORMED;
}

static enum verdict negotiate_adapter(const struct envelope *hello, const char **ret_reason)
{
    if (!name_is_usable(hello->name))
        return malformed(
            "hello: an adapter needs a name of 1 to 128 bytes without white space, "
            "colon and slash",
            ret_reason);
    if (name_is_reserved(hello->name))
        return malformed("hello: the names sandbox and engine belong to the engine",
                         ret_reason);
    if (!hello->has_contract)
        return malformed("hello: an adapter needs a contract version", ret_reason);
    return hello->contract.major == CONTRACT_MAJOR ? VERDICT_FITS : VERDICT_MAJOR_DIFFERS;
}

enum verdict negotiate(const struct envelope *hello, enum peer_role *ret_role,
                       const char **ret_reason)
{
    *ret_role = PEER_ROLE_NONE;
    if (hello->kind != ENVELOPE_HELLO)
        return malformed("the first message is no hello", ret_reason);
    if (span_equals(hello->role, "caller")) {
        *ret_role = PEER_ROLE_CALLER;
        return VERDICT_FITS;
    }
    if (!span_equals(hello->role, "adapter"))
        return malformed("hello: role is neither adapter nor caller", ret_reason);
    *ret_role = PEER_ROLE_ADAPTER;
    return negotiate_adapter(hello, ret_reason);
}
