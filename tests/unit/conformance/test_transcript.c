/* test_transcript.c - what may differ between two right adapters is masked, and only that. */
#include <string.h>

#include "transcript.h"
#include "unit.h"

static char *transcript(bool ok, const char *text)
{
    struct buf out = { 0 };
    size_t size;
    json_t *body = json_loads(text, JSON_DECODE_ANY, NULL);
    ck_assert_ptr_nonnull(body);
    transcript_add(ok, body, &out);
    json_decref(body);
    (void)buf_text(&out);
    return (char *)buf_take(&out, &size);
}

static bool same(bool ok, const char *a, const char *b)
{
    char *left = transcript(ok, a), *right = transcript(ok, b);
    bool equal = strcmp(left, right) == 0;
    free(left);
    free(right);
    return equal;
}

START_TEST(test_masked)
{
    ck_assert(same(true, "{\"sandbox_id\":\"0b0aacec-1c7f-4006-9f58-004b2c8a330d\"}",
                   "{\"sandbox_id\":\"11111111-1c7f-4006-9f58-004b2c8a330d\"}"));
    ck_assert(same(true, "{\"duration_ms\":1,\"created_at\":5,\"idle_secs\":0}",
                   "{\"duration_ms\":99,\"created_at\":6,\"idle_secs\":2}"));
    ck_assert(same(true, "{\"adapter\":\"a\",\"features\":[\"x\"]}",
                   "{\"adapter\":\"b\",\"features\":[\"y\",\"z\"],\"acceleration\":\"kvm\"}"));
    ck_assert(same(false, "{\"code\":\"S211\",\"message\":\"one\",\"fix\":null}",
                   "{\"code\":\"S211\",\"message\":\"other words\",\"fix\":null}"));
}
END_TEST

START_TEST(test_told)
{
    ck_assert(!same(true, "{\"exit_code\":0}", "{\"exit_code\":1}"));
    ck_assert(!same(true, "{\"exit_code\":0}", "{\"exit_code\":null}"));
    ck_assert(!same(true, "{\"a\":1}", "{\"a\":1,\"b\":2}"));
    ck_assert(!same(true, "{\"stdout\":\"a\"}", "{\"stdout\":\"b\"}"));
    ck_assert(!same(true, "{\"duration_ms\":1}", "{\"duration_ms\":\"1\"}"));
    ck_assert(!same(true, "[1,2]", "[2,1]"));
    ck_assert(!same(false, "{\"code\":\"S211\"}", "{\"code\":\"S212\"}"));
    ck_assert(!same(false, "{\"code\":\"S300\",\"outcome\":\"never_ran\"}",
                    "{\"code\":\"S300\",\"outcome\":\"may_have_run\"}"));
    ck_assert(!same(false, "{\"code\":\"S211\",\"fix\":{\"parents\":true}}",
                    "{\"code\":\"S211\",\"fix\":null}"));
}
END_TEST

START_TEST(test_nobody_asks)
{
    json_t *body = json_object();
    transcript_add(true, body, NULL);
    json_decref(body);
}
END_TEST

UNIT_MAIN("transcript", test_masked, test_told, test_nobody_asks)
