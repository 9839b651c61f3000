/* test_shutdown.c - the order of the end, with both fronts and a managed process. */
#include "fixture.h"
#include "shutdown.h"
#include "unit.h"

static const char settings[] = "  adapter: mock\n  listen: ['127.0.0.1:0']\n"
                               "  command: [/bin/sleep, '60']\n";

struct scene {
    struct fixture fixture;
    struct front_web *web;
    struct supervise *supervise;
    struct shutdown shutdown;
    struct peer adapter;
    struct peer caller;
};

static void scene_open(struct scene *scene)
{
    static const struct supervise_timing by_limits;
    struct router *router = &scene->fixture.router;
    char error[FRONT_WEB_ERROR_MAX] = "";

    *scene = (struct scene){ 0 };
    fixture_open(&scene->fixture, settings, NULL);
    ck_assert_msg(front_web_new(router, &scene->web, error) == 0, "%s", error);
    ck_assert_int_eq(
        supervise_new(router, fixture_url(&scene->fixture), &by_limits, &scene->supervise), 0);
    ck_assert_int_eq(shutdown_init(&scene->shutdown, router, &scene->fixture.native, scene->web,
                                   scene->supervise),
                     0);
    supervise_apply(scene->supervise);
    peer_as_adapter(&scene->adapter, &scene->fixture, "mock");
    peer_as_caller(&scene->caller, &scene->fixture);
}

static void scene_close(struct scene *scene)
{
    peer_close(&scene->caller);
    peer_close(&scene->adapter);
    supervise_free(scene->supervise);
    shutdown_done(&scene->shutdown);
    front_web_free(scene->web);
    fixture_close(&scene->fixture);
}

START_TEST(test_nothing_in_flight)
{
    struct scene scene;

    scene_open(&scene);
    shutdown_begin(&scene.shutdown);
    ck_assert_int_eq(scene.shutdown.state, SHUTDOWN_DRAINING);
    ck_assert_int_eq(loop_run(scene.fixture.loop), 0);
    ck_assert_int_eq(scene.shutdown.state, SHUTDOWN_DONE);
    ck_assert_uint_eq(scene.fixture.native.peer_count, 0);
    scene_close(&scene);
}
END_TEST

/* Calls in flight end by their answers; new ones are refused meanwhile. */
START_TEST(test_calls_end)
{
    struct scene scene;
    uint64_t id;

    scene_open(&scene);
    peer_call(&scene.caller, 1, "sandbox::exec", "{}");
    id = peer_expect_call(&scene.adapter, "exec");
    shutdown_begin(&scene.shutdown);
    peer_call(&scene.caller, 2, "sandbox::exec", "{}");
    peer_expect_answer(&scene.caller, ENVELOPE_ERROR, 2, "\"outcome\":\"never_ran\"");
    peer_call(&scene.caller, 3, "mock::exec", "{}");
    peer_expect_answer(&scene.caller, ENVELOPE_ERROR, 3, "shutting down");
    peer_call(&scene.caller, 4, "sandbox::adapter::info", "{}");
    peer_expect_answer(&scene.caller, ENVELOPE_REPLY, 4, "\"info\":null");
    ck_assert_int_eq(scene.shutdown.state, SHUTDOWN_DRAINING);
    peer_answer(&scene.adapter, ENVELOPE_REPLY, id, "\"done\"");
    peer_expect_answer(&scene.caller, ENVELOPE_REPLY, 1, "done");
    ck_assert_int_eq(loop_run(scene.fixture.loop), 0);
    scene_close(&scene);
}
END_TEST

/* Those that do not end get S301 when the time is over, and it arrives. */
START_TEST(test_time_is_over)
{
    struct scene scene;

    scene_open(&scene);
    scene.shutdown.grace_ms = 30;
    peer_call(&scene.caller, 1, "sandbox::exec", "{}");
    peer_call(&scene.caller, 2, "sandbox::list", "{}");
    (void)peer_expect_call(&scene.adapter, "exec");
    (void)peer_expect_call(&scene.adapter, "list");
    shutdown_begin(&scene.shutdown);
    ck_assert_int_eq(loop_run(scene.fixture.loop), 0);
    ck_assert_uint_eq(scene.fixture.router.passthrough.in_use, 0);
    TURN_UNTIL(scene.fixture.loop, scene.caller.closed);
    peer_expect_answer(&scene.caller, ENVELOPE_ERROR, 1, "\"outcome\":\"may_have_run\"");
    peer_expect_answer(&scene.caller, ENVELOPE_ERROR, 2, "S301");
    peer_expect(&scene.adapter, ENVELOPE_CANCEL);
    scene_close(&scene);
}
END_TEST

START_TEST(test_second_signal)
{
    struct scene scene;

    scene_open(&scene);
    peer_call(&scene.caller, 1, "sandbox::exec", "{}");
    (void)peer_expect_call(&scene.adapter, "exec");
    shutdown_begin(&scene.shutdown);
    shutdown_begin(&scene.shutdown);
    ck_assert_int_eq(loop_run(scene.fixture.loop), 1);
    scene_close(&scene);
}
END_TEST

UNIT_MAIN("router.shutdown", test_nothing_in_flight, test_calls_end, test_time_is_over,
          test_second_signal)
