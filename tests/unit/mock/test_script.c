/* test_script.c - rules of faults: what is understood, and which call uses them up. */
#include <string.h>

#include "json_scan.h"
#include "script.h"
#include "unit.h"

static struct rule rule;
static char why[SCRIPT_WHY_BYTES];

static int parse(const char *json)
{
    struct span value;

    ck_assert_int_eq(json_scan(json, strlen(json), &value, NULL), 0);
    return rule_parse(value, &rule, why);
}

START_TEST(test_defaults)
{
    ck_assert_int_eq(parse("{\"fault\":\"error\"}"), 0);
    ck_assert_int_eq(rule.kind, FAULT_ERROR);
    ck_assert_str_eq(rule.operation, "*");
    ck_assert_uint_eq(rule.times, 1);
    ck_assert_int_eq(rule.code, S300);
    ck_assert_int_eq(rule.when, FAULT_BEFORE);
    ck_assert_int_eq(parse("{\"fault\":\"garbage\"}"), 0);
    ck_assert_int_eq(rule.when, FAULT_AFTER);
    ck_assert_int_eq(parse("{\"fault\":\"stderr\"}"), 0);
    ck_assert_uint_eq(rule.bytes, 10 * 1024 * 1024);
}
END_TEST

START_TEST(test_every_key)
{
    ck_assert_int_eq(parse("{\"code\":\"S216\",\"message\":\"m\",\"outcome\":\"never_ran\","
                           "\"times\":0,\"operation\":\"fs::ls\",\"fault\":\"error\"}"),
                     0);
    ck_assert_int_eq(rule.code, S216);
    ck_assert_str_eq(rule.message, "m");
    ck_assert_int_eq(rule.outcome, OUTCOME_NEVER_RAN);
    ck_assert_uint_eq(rule.times, UINT64_MAX);
    ck_assert_int_eq(parse("{\"fault\":\"slow\",\"ms\":7,\"when\":\"after\"}"), 0);
    ck_assert_uint_eq(rule.ms, 7);
    ck_assert_int_eq(rule.when, FAULT_AFTER);
    ck_assert_int_eq(
        parse("{\"fault\":\"contract\",\"major\":2,\"minor\":99,\"extra_keys\":true}"), 0);
    ck_assert_uint_eq(rule.major, 2);
    ck_assert_uint_eq(rule.minor, 99);
    ck_assert(rule.extra_keys);
}
END_TEST

START_TEST(test_what_is_refused)
{
    static const struct {
        const char *json;
        const char *says;
    } cases[] = {
        { "[]", "object" },
        { "{}", "fault" },
        { "{\"fault\":\"nonsense\"}", "fault" },
        { "{\"fault\":\"error\",\"ms\":1}", "ms" },
        { "{\"fault\":\"error\",\"code\":\"S999\"}", "code" },
        { "{\"fault\":\"error\",\"code\":7}", "code" },
        { "{\"fault\":\"error\",\"when\":\"after\"}", "when" },
        { "{\"fault\":\"garbage\",\"when\":\"before\"}", "when" },
        { "{\"fault\":\"slow\",\"when\":\"later\"}", "when" },
        { "{\"fault\":\"slow\",\"ms\":-1}", "ms" },
        { "{\"fault\":\"slow\",\"ms\":3600001}", "ms" },
        { "{\"fault\":\"slow\",\"times\":\"1\"}", "times" },
        { "{\"fault\":\"clear\",\"operation\":\"exec\"}", "operation" },
        { "{\"fault\":\"contract\",\"extra_keys\":1}", "extra_keys" },
        { "{\"fault\":\"contract\",\"major\":4294967296}", "major" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_int_lt(parse(cases[i].json), 0);
        ck_assert_msg(strstr(why, cases[i].says) != NULL, "%s: %s", cases[i].json, why);
    }
}
END_TEST

START_TEST(test_rules_are_used_up)
{
    struct script script;
    struct rule found;

    script_init(&script);
    ck_assert_int_eq(parse("{\"fault\":\"error\",\"operation\":\"exec\",\"times\":2}"), 0);
    ck_assert_int_eq(script_add(&script, &rule), 0);
    ck_assert_int_eq(parse("{\"fault\":\"error\",\"code\":\"S216\",\"times\":0}"), 0);
    ck_assert_int_eq(script_add(&script, &rule), 0);
    ck_assert(!script_find(&script, FAULT_SLOW, FAULT_BEFORE, "exec", &found));
    ck_assert(!script_find(&script, FAULT_ERROR, FAULT_AFTER, "exec", &found));
    for (int i = 0; i < 2; i++) {
        ck_assert(script_find(&script, FAULT_ERROR, FAULT_BEFORE, "exec", &found));
        ck_assert_int_eq(found.code, S300);
    }
    for (int i = 0; i < 5; i++) { /* the first is used up, the second never is */
        ck_assert(script_find(&script, FAULT_ERROR, FAULT_BEFORE, "exec", &found));
        ck_assert_int_eq(found.code, S216);
    }
    ck_assert_uint_eq(script.count, 1);
    script_clear(&script);
    ck_assert(!script_find(&script, FAULT_ERROR, FAULT_BEFORE, "exec", &found));
}
END_TEST

START_TEST(test_rules_have_a_limit)
{
    struct script script;

    script_init(&script);
    ck_assert_int_eq(parse("{\"fault\":\"die\"}"), 0);
    for (unsigned i = 0; i < SCRIPT_RULES_MAX; i++)
        ck_assert_int_eq(script_add(&script, &rule), 0);
    ck_assert_int_lt(script_add(&script, &rule), 0);
    script_clear(&script);
    ck_assert_uint_eq(script.count, 0);
}
END_TEST

UNIT_MAIN("mock.script", test_defaults, test_every_key, test_what_is_refused,
          test_rules_are_used_up, test_rules_have_a_limit)
