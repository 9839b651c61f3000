/* Words to JSON: the rules of contract 4.5 and iii-wire 5, one case each. */
#include <errno.h>

#include "args.h"
#include "unit.h"

#define MAX_PAIRS 5

struct args_case {
    const char *function;
    const char *json;
    char *pairs[MAX_PAIRS];
    const char *payload; /* NULL: refused */
    const char *error;   /* what the complaint holds */
};

static void check_case(const struct args_case *given)
{
    struct args args = {
        .function = given->function,
        .json = span_of_text(given->json),
        .source = "--json",
        .pairs = given->pairs,
    };
    struct buf payload = { 0 }, error = { 0 };
    int result;

    while (args.pair_count < MAX_PAIRS && given->pairs[args.pair_count])
        args.pair_count++;
    result = args_payload(&args, &payload, &error);
    if (given->payload) {
        ck_assert_msg(result == 0, "%s", buf_text(&error));
        ck_assert_str_eq(buf_text(&payload), given->payload);
    } else {
        ck_assert_int_eq(result, -EINVAL);
        ck_assert_msg(strstr(buf_text(&error), given->error) != NULL, "%s", buf_text(&error));
    }
    buf_done(&payload);
    buf_done(&error);
}

static const struct args_case accepted[] = {
    { "sandbox::list", NULL, { NULL }, "{}", NULL },
    /* text fields take the text */
    { "sandbox::fs::write",
      NULL,
      { "mode=755", "content=42" },
      "{\"mode\":\"755\",\"content\":\"42\"}",
      NULL },
    { "sandbox::run", NULL, { "code=true" }, "{\"code\":\"true\"}", NULL },
    { "sandbox::fs::grep", NULL, { "pattern=5" }, "{\"pattern\":\"5\"}", NULL },
    { "sandbox::create", NULL, { "name=null" }, "{\"name\":\"null\"}", NULL },
    { "sandbox::exec",
      NULL,
      { "stdin=1234", "cmd=" },
      "{\"stdin\":\"1234\",\"cmd\":\"\"}",
      NULL },
    { "sandbox::fs::write",
      NULL,
      { "content={\"channel_id\":1}" },
      "{\"content\":\"{\\\"channel_id\\\":1}\"}",
      NULL },
    /* others are JSON, or text where they are none */
    { "sandbox::create",
      NULL,
      { "cpus=2", "network=true", "env={\"A\": \"1\"}" },
      "{\"cpus\":2,\"network\":true,\"env\":{\"A\": \"1\"}}",
      NULL },
    { "sandbox::create",
      NULL,
      { "cpus=two", "network=True" },
      "{\"cpus\":\"two\",\"network\":\"True\"}",
      NULL },
    { "sandbox::exec",
      NULL,
      { "argv=[\"a\",\"b\"]", "timeout_ms=1e3" },
      "{\"argv\":[\"a\",\"b\"],\"timeout_ms\":1e3}",
      NULL },
    /* any adapter's name */
    { "other::fs::write", NULL, { "mode=755" }, "{\"mode\":\"755\"}", NULL },
    /* in no table */
    { "sandbox::create", NULL, { "unknown=5" }, "{\"unknown\":5}", NULL },
    { "my::function", NULL, { "mode=755", "t=x y" }, "{\"mode\":755,\"t\":\"x y\"}", NULL },
    { "plain", NULL, { "a=[1" }, "{\"a\":\"[1\"}", NULL },
    /* keys */
    { "f", NULL, { "a=b=c" }, "{\"a\":\"b=c\"}", NULL },
    { "f", NULL, { "a.b=1" }, "{\"a.b\":1}", NULL },
    { "f", NULL, { "a=1", "b=2", "a=3" }, "{\"b\":2,\"a\":3}", NULL },
    { "f", NULL, { "a=1", "ab=2" }, "{\"a\":1,\"ab\":2}", NULL },
    { "f", NULL, { "q\"=\n" }, "{\"q\\\"\":\"\\n\"}", NULL },
    { "f", NULL, { "e=\xC3\xA9" }, "{\"e\":\"\xC3\xA9\"}", NULL },
    /* --json */
    { "f", " [1, 2.0] ", { NULL }, "[1, 2.0]", NULL },
    { "f", "\"text\"", { NULL }, "\"text\"", NULL },
    { "f", "{ \"a\" : 1 }", { NULL }, "{ \"a\" : 1 }", NULL },
    { "f", "{\"a\" : 1.50, \"b\":2}", { "b=3" }, "{\"a\":1.50,\"b\":3}", NULL },
    { "f", "{\"\\u0061\":1}", { "a=2" }, "{\"a\":2}", NULL },
    { "f", "{}", { "a=2" }, "{\"a\":2}", NULL },
};

START_TEST(payloads)
{
    check_case(&accepted[_i]);
}
END_TEST

static const struct args_case refused[] = {
    { "f", NULL, { "word" }, NULL, "\"word\"" },
    { "f", NULL, { "=5" }, NULL, "\"=5\"" },
    { "f", NULL, { "a=1", "" }, NULL, "\"\"" },
    { "f", NULL, { "a=\xFF" }, NULL, "UTF-8" },
    { "f", "{\"a\":}", { NULL }, NULL, "position 6" },
    { "f", "", { NULL }, NULL, "position 1" },
    { "f", "[1]", { "a=1" }, NULL, "object" },
    { "f", "null", { "a=1" }, NULL, "object" },
};

START_TEST(complaints)
{
    check_case(&refused[_i]);
}
END_TEST

START_TEST(functions_of_the_tables)
{
    ck_assert_ptr_eq(args_operation("sandbox::fs::ls"), &operations[OP_fs_ls]);
    ck_assert_ptr_eq(args_operation("sandbox-qemu::exec"), &operations[OP_exec]);
    ck_assert_ptr_null(args_operation("exec"));
    ck_assert_ptr_null(args_operation("engine::functions::list"));
}
END_TEST

UNIT_MAIN_ROWS("args", UNIT_ROWS(payloads, accepted), UNIT_ROWS(complaints, refused),
               UNIT_TEST(functions_of_the_tables))
