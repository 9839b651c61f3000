/* test_metrics.c - what the counters count, and that no peer can put a text into them. */
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "unit.h"

static void expect_line(const struct router *router, const char *line)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };

    ck_assert_int_eq(metrics_write(router, &text), 0);
    ck_assert_msg(strstr(buf_text(&text), line) != NULL, "%s is not in\n%s", line,
                  buf_text(&text));
}

START_TEST(test_codes)
{
    static const struct {
        const char *envelope;
        unsigned code;
    } rows[] = {
        { "{\"type\":\"validation\",\"code\":\"S001\"}", S001 },
        { "{\"code\":\"S506\",\"partial\":{\"code\":\"S001\"}}", S506 },
        { "{\"code\":\"\\u0053002\"}", S002 },
        { "{\"code\":\"S999\"}", METRICS_CODE_OTHER },
        { "{\"code\":\"a text that is longer than any code\"}", METRICS_CODE_OTHER },
        { "{\"code\":7}", METRICS_CODE_OTHER },
        { "{}", METRICS_CODE_OTHER },
        { "[\"S001\"]", METRICS_CODE_OTHER },
        { "S001", METRICS_CODE_OTHER },
        { "", METRICS_CODE_OTHER },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        ck_assert_msg(metrics_code_of(span_of_text(rows[i].envelope)) == rows[i].code, "%s",
                      rows[i].envelope);
}
END_TEST

START_TEST(test_calls)
{
    struct fixture fixture;
    struct peer adapter, caller;
    struct router *router = &fixture.router;

    fixture_open(&fixture, "  adapter: mock\n", NULL);
    peer_as_caller(&caller, &fixture);
    expect_line(router, "sandbox_adapter_state{state=\"waiting\"} 1");
    peer_call(&caller, 1, "sandbox::exec", "{}");
    peer_expect(&caller, ENVELOPE_ERROR);
    expect_line(router, "sandbox_calls_total{op=\"exec\",code=\"S301\"} 1\n");
    peer_as_adapter(&adapter, &fixture, "mock");
    expect_line(router, "sandbox_adapter_state{state=\"bound\"} 1");
    expect_line(router, "sandbox_adapter_connects_total 1");
    peer_call(&caller, 2, "sandbox::exec", "{}");
    expect_line(router, "sandbox_calls_in_flight 0"); /* nothing has turned yet */
    peer_answer(&adapter, ENVELOPE_ERROR, peer_expect_call(&adapter, "exec"),
                "{\"code\":\"S200\"}");
    peer_expect(&caller, ENVELOPE_ERROR);
    expect_line(router, "sandbox_calls_total{op=\"exec\",code=\"S200\"} 1\n");
    expect_line(router, "sandbox_call_seconds_count{op=\"exec\"} 2\n");
    expect_line(router, "sandbox_call_seconds_bucket{op=\"exec\",le=\"+Inf\"} 2\n");
    peer_call(&caller, 3, "mock::own::secret-name", "{}");
    peer_answer(&adapter, ENVELOPE_REPLY, peer_expect_call(&adapter, "own::secret-name"), "{}");
    peer_expect(&caller, ENVELOPE_REPLY);
    expect_line(router, "sandbox_calls_total{op=\"other\",code=\"ok\"} 1\n");
    peer_call(&caller, 4, "sandbox::secret-name", "{}");
    peer_expect(&caller, ENVELOPE_ERROR);
    expect_line(router, "sandbox_calls_total{op=\"other\",code=\"not_found\"} 1\n");
    peer_call(&caller, 5, "engine::channels::create", "{}");
    peer_expect(&caller, ENVELOPE_REPLY);
    expect_line(router, "sandbox_calls_total{op=\"channels::create\",code=\"ok\"} 1\n");
    expect_line(router, "sandbox_channels 1\n");
    expect_line(router, "sandbox_connections{front=\"native\"} 2\n");
    peer_call(&caller, 6, "sandbox::exec", "{}");
    (void)peer_expect_call(&adapter, "exec");
    expect_line(router, "sandbox_calls_in_flight 1\n");
    peer_close(&caller);
    peer_expect(&adapter, ENVELOPE_CANCEL);
    expect_line(router, "sandbox_calls_total{op=\"exec\",code=\"cancelled\"} 1\n");
    expect_line(router, "sandbox_calls_unanswered 1\n");
    peer_close(&adapter);
    TURN_UNTIL(fixture.loop, router->metrics.adapter_losses == 1);
    expect_line(router, "sandbox_calls_unanswered 0\n");
    fixture_close(&fixture);
}
END_TEST

START_TEST(test_no_text_of_peers)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    struct fixture fixture;
    struct peer adapter, caller;

    fixture_open(&fixture, "  adapter: mock-secret\n", NULL);
    peer_as_adapter(&adapter, &fixture, "mock-secret");
    peer_as_caller(&caller, &fixture);
    peer_call(&caller, 1, "mock-secret::op-secret", "{\"k\":\"secret\"}");
    peer_answer(&adapter, ENVELOPE_ERROR, peer_expect_call(&adapter, "op-secret"),
                "{\"code\":\"secret\"}");
    peer_expect(&caller, ENVELOPE_ERROR);
    ck_assert_int_eq(metrics_write(&fixture.router, &text), 0);
    ck_assert_ptr_null(strstr(buf_text(&text), "secret"));
    expect_line(&fixture.router, "sandbox_calls_total{op=\"other\",code=\"other\"} 1\n");
    peer_close(&caller);
    peer_close(&adapter);
    fixture_close(&fixture);
}
END_TEST

UNIT_MAIN("router.metrics", test_codes, test_calls, test_no_text_of_peers)
