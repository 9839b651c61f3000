/* test_case.c - case files are read whole or refused with file and line. */
#include <stdio.h>
#include <string.h>

#include "case.h"
#include "unit.h"

static char folder[64];
static struct case_list list;
static char error[512];

static void make_folder(void)
{
    snprintf(folder, sizeof(folder), "/tmp/unit-case.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    error[0] = '\0';
}

static void remove_folder(void)
{
    char command[128];
    case_list_done(&list);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static int load(void)
{
    return case_list_load(folder, &list, error, sizeof(error));
}

#define HEAD "title: T\ncontract: \"1\"\n"
#define RULE(id) "  - id: " id "\n    text: t\n    steps: [{ call: list }]\n"

START_TEST(test_whole)
{
    write_file("b.yaml", HEAD "sandbox: each\nrouter: absent\nrules:\n" RULE("b.1"));
    write_file("a.yaml",
               HEAD "settings: { max_cpus: 2 }\nrules:\n" RULE("a.1")
                   RULE("a.2") "    since: 2\n    needs: idempotency\n    lacks: worker\n");
    write_file("c.txt", "no case");
    ck_assert_msg(load() == 0, "%s", error);
    ck_assert_uint_eq(list.count, 2);
    ck_assert_uint_eq(list.rule_count, 3);
    const struct case_file *a = &list.items[0], *b = &list.items[1];
    ck_assert_str_eq(a->rules[1].id, "a.2");
    ck_assert_uint_eq(a->rules[1].since, 2);
    ck_assert_str_eq(a->rules[1].needs, "idempotency");
    ck_assert_str_eq(a->rules[1].lacks, "worker");
    ck_assert_int_eq(a->sandbox, CASE_SANDBOX_NONE);
    ck_assert(case_file_is_apart(a));
    ck_assert_int_eq(b->sandbox, CASE_SANDBOX_EACH);
    ck_assert_int_eq(b->router, CASE_ROUTER_ABSENT);
    ck_assert(case_file_is_apart(b));
}
END_TEST

START_TEST(test_together)
{
    write_file("a.yaml", HEAD "sandbox: shared\nrules:\n" RULE("a.1"));
    ck_assert_int_eq(load(), 0);
    ck_assert(!case_file_is_apart(&list.items[0]));
}
END_TEST

static void refused(const char *text, const char *says)
{
    write_file("x.yaml", text);
    ck_assert_int_lt(load(), 0);
    ck_assert_msg(strstr(error, says), "%s: %s", says, error);
}

START_TEST(test_refused)
{
    refused("title: [", "x.yaml");
    refused("contract: \"1\"\nrules:\n" RULE("a"), "needs title");
    refused(HEAD, "needs title, contract, rules");
    refused(HEAD "sandbox: some\nrules:\n" RULE("a"), "sandbox");
    refused(HEAD "router: there\nrules:\n" RULE("a"), "router");
    refused(HEAD "rules:\n  - id: a\n    text: t\n",
            "x.yaml:4: a rule needs id, text and steps");
    refused(HEAD "rules:\n  - id: a\n    text: t\n    steps: []\n", "x.yaml:4");
    refused(HEAD "rules:\n" RULE("a") RULE("b") RULE("a"), "rule id a stands twice");
}
END_TEST

START_TEST(test_nothing)
{
    ck_assert_int_lt(load(), 0);
    ck_assert_msg(strstr(error, "no case files"), "%s", error);
}
END_TEST

UNIT_MAIN_IN(make_folder, remove_folder, "case", test_whole, test_together, test_refused,
             test_nothing)
