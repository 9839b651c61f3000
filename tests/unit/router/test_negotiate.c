/* test_negotiate.c - the verdict on a hello. */
#include <check.h>
#include <string.h>

#include "negotiate.h"
#include "unit.h"

static struct envelope hello_of(const char *role, const char *name, uint32_t major)
{
    return (struct envelope){
        .kind = ENVELOPE_HELLO,
        .role = span_of_text(role),
        .name = span_of_text(name),
        .has_contract = true,
        .contract = { .major = major, .minor = 9 },
    };
}

static enum verdict judge(const struct envelope *hello, enum peer_role *ret_role)
{
    const char *reason = NULL;
    enum verdict verdict = negotiate(hello, ret_role, &reason);

    ck_assert_int_eq(verdict == VERDICT_MALFORMED, reason != NULL);
    return verdict;
}

START_TEST(test_major_decides)
{
    enum peer_role role;
    struct envelope hello = hello_of("adapter", "sandbox-qemu", CONTRACT_MAJOR);

    ck_assert_int_eq(judge(&hello, &role), VERDICT_FITS);
    ck_assert_int_eq(role, PEER_ROLE_ADAPTER);
    hello.contract.minor = 0;
    ck_assert_int_eq(judge(&hello, &role), VERDICT_FITS);
    hello.contract.major = CONTRACT_MAJOR + 1;
    ck_assert_int_eq(judge(&hello, &role), VERDICT_MAJOR_DIFFERS);
    hello.contract.major = 0;
    ck_assert_int_eq(judge(&hello, &role), VERDICT_MAJOR_DIFFERS);
}
END_TEST

START_TEST(test_callers_need_no_contract)
{
    enum peer_role role;
    struct envelope hello = { .kind = ENVELOPE_HELLO, .role = span_of_text("caller") };

    ck_assert_int_eq(judge(&hello, &role), VERDICT_FITS);
    ck_assert_int_eq(role, PEER_ROLE_CALLER);
}
END_TEST

START_TEST(test_malformed)
{
    static const char *const names[] = { "",    "a b",     "a:b",    "a/b",  "a\tb",
                                         "a\n", "sandbox", "engine", "\xff", "a\x7f" };
    char long_name[ADAPTER_NAME_MAX_BYTES + 2];
    enum peer_role role;
    struct envelope hello;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        hello = hello_of("adapter", names[i], CONTRACT_MAJOR);
        ck_assert_msg(judge(&hello, &role) == VERDICT_MALFORMED, "took %s", names[i]);
    }
    memset(long_name, 'n', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    hello = hello_of("adapter", long_name, CONTRACT_MAJOR);
    ck_assert_int_eq(judge(&hello, &role), VERDICT_MALFORMED);
    long_name[ADAPTER_NAME_MAX_BYTES] = '\0';
    hello = hello_of("adapter", long_name, CONTRACT_MAJOR);
    ck_assert_int_eq(judge(&hello, &role), VERDICT_FITS);

    hello = hello_of("adapter", "a", CONTRACT_MAJOR);
    hello.has_contract = false;
    ck_assert_int_eq(judge(&hello, &role), VERDICT_MALFORMED);
    hello = hello_of("router", "a", CONTRACT_MAJOR);
    ck_assert_int_eq(judge(&hello, &role), VERDICT_MALFORMED);
    hello = hello_of("adapter", "a", CONTRACT_MAJOR);
    hello.kind = ENVELOPE_CALL;
    ck_assert_int_eq(judge(&hello, &role), VERDICT_MALFORMED);
}
END_TEST

UNIT_MAIN("router.negotiate", test_major_decides, test_callers_need_no_contract, test_malformed)
