/* test_token.c - the token of a worker VM. */
#include "token.h"
#include "unit.h"

START_TEST(test_matches)
{
    struct token token;

    token_set(&token, "secret");
    ck_assert(token_matches(&token, "secret"));
    ck_assert(!token_matches(&token, "secre"));
    ck_assert(!token_matches(&token, "secrets"));
    ck_assert(!token_matches(&token, "Secret"));
    ck_assert(!token_matches(&token, ""));
    ck_assert(!token_matches(&token, NULL));
}
END_TEST

START_TEST(test_missing)
{
    struct token token;

    token_set(&token, "");
    ck_assert(token_matches(&token, ""));
    ck_assert(!token_matches(&token, NULL));
}
END_TEST

UNIT_MAIN("token", test_matches, test_missing)
