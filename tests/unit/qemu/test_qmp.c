/* test_qmp.c - the monitor's client against a scripted QEMU. */
#include "qmp.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "turn.h"
#include "unit.h"

#define GREETING "{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n"

struct scene {
    struct loop *loop;
    struct qmp *qmp;
    int peer;
    unsigned answers, errors, events, closed;
    char text[256]; /* of the last error, event or close */
    bool free_in_answer;
};

static void on_event(void *ctx, const char *name, const json_t *data)
{
    struct scene *scene = ctx;

    scene->events++;
    (void)snprintf(scene->text, sizeof(scene->text), "%s %s", name,
                   json_string_value(json_object_get(data, "status")));
}

static void on_closed(void *ctx, const char *reason)
{
    struct scene *scene = ctx;

    scene->closed++;
    (void)snprintf(scene->text, sizeof(scene->text), "%s", reason);
}

static void on_done(void *ctx, const json_t *value, const char *error)
{
    struct scene *scene = ctx;

    ck_assert(!value != !error);
    if (value)
        scene->answers++;
    else
        scene->errors++;
    if (error)
        (void)snprintf(scene->text, sizeof(scene->text), "%s", error);
    if (scene->free_in_answer)
        qmp_free(take_ptr(scene->qmp));
}

static const struct qmp_events events = { .event = on_event, .closed = on_closed };

static void begin(struct scene *scene)
{
    int fds[2];

    *scene = (struct scene){ 0 };
    ck_assert_int_eq(loop_new(&scene->loop), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
                     0);
    scene->peer = fds[1];
    ck_assert_int_eq(qmp_new(scene->loop, fds[0], &events, scene, &scene->qmp), 0);
}

static void end(struct scene *scene)
{
    qmp_free(scene->qmp);
    closep(&scene->peer);
    loop_free(scene->loop);
}

static void say(struct scene *scene, const char *text)
{
    ck_assert_int_eq(send(scene->peer, text, strlen(text), MSG_NOSIGNAL),
                     (ssize_t)strlen(text));
}

/* The next line that the client sends. */
static void hear(struct scene *scene, const char *wanted)
{
    char line[512] = "";
    size_t size = 0;

    while (size == 0 || line[size - 1] != '\n') {
        ssize_t got = recv(scene->peer, line + size, 1, 0);

        if (got == 1)
            size++;
        else
            ck_assert_int_eq(loop_turn(scene->loop, 1000), 0);
        ck_assert_uint_lt(size, sizeof(line) - 1);
    }
    line[size - 1] = 0;
    ck_assert_str_eq(line, wanted);
}

static void greet(struct scene *scene)
{
    say(scene, GREETING);
    hear(scene, "{\"execute\":\"qmp_capabilities\",\"id\":0}");
    say(scene, "{\"return\": {}, \"id\": 0}\r\n");
}

static int execute(struct scene *scene, const char *command, json_t *arguments)
{
    return qmp_execute(scene->qmp, command, arguments, 5000, on_done, scene);
}

START_TEST(test_commands_before_the_greeting_wait)
{
    struct scene scene;
    char byte;

    begin(&scene);
    ck_assert_int_eq(execute(&scene, "stop", NULL), 0);
    turn_for(scene.loop, 20);
    ck_assert_int_eq(recv(scene.peer, &byte, 1, 0), -1);
    greet(&scene);
    hear(&scene, "{\"execute\":\"stop\",\"id\":1}");
    say(&scene, "{\"return\": {}, \"id\": 1}\n");
    TURN_UNTIL(scene.loop, scene.answers == 1);
    ck_assert_uint_eq(scene.errors + scene.closed, 0);
    end(&scene);
}
END_TEST

START_TEST(test_answers_errors_and_events)
{
    struct scene scene;

    begin(&scene);
    greet(&scene);
    ck_assert_int_eq(execute(&scene, "migrate", json_pack("{s:s}", "uri", "fd:state")), 0);
    ck_assert_int_eq(execute(&scene, "cont", NULL), 0);
    hear(&scene, "{\"execute\":\"migrate\",\"arguments\":{\"uri\":\"fd:state\"},\"id\":1}");
    hear(&scene, "{\"execute\":\"cont\",\"id\":2}");
    say(&scene,
        "{\"event\": \"MIGRATION\", \"data\": {\"status\": \"setup\"}}\n{\"error\": {\"cl");
    TURN_UNTIL(scene.loop, scene.events == 1);
    ck_assert_str_eq(scene.text, "MIGRATION setup");
    say(&scene, "ass\": \"GenericError\", \"desc\": \"no such fd\"}, \"id\": 1}\n");
    TURN_UNTIL(scene.loop, scene.errors == 1);
    ck_assert_str_eq(scene.text, "no such fd");
    say(&scene, "{\"return\": {}, \"id\": 2}\n");
    TURN_UNTIL(scene.loop, scene.answers == 1);
    end(&scene);
}
END_TEST

START_TEST(test_the_end_completes_everything_once)
{
    struct scene scene;

    begin(&scene);
    greet(&scene);
    ck_assert_int_eq(execute(&scene, "stop", NULL), 0);
    ck_assert_int_eq(execute(&scene, "cont", NULL), 0);
    hear(&scene, "{\"execute\":\"stop\",\"id\":1}");
    closep(&scene.peer);
    TURN_UNTIL(scene.loop, scene.closed == 1);
    ck_assert_uint_eq(scene.errors, 2);
    ck_assert_int_eq(execute(&scene, "cont", NULL), -EPIPE);
    turn_for(scene.loop, 20);
    ck_assert_uint_eq(scene.errors, 2);
    ck_assert_uint_eq(scene.closed, 1);
    end(&scene);
}
END_TEST

START_TEST(test_no_answer_in_time)
{
    struct scene scene;

    begin(&scene);
    greet(&scene);
    ck_assert_int_eq(qmp_execute(scene.qmp, "stop", NULL, 30, on_done, &scene), 0);
    TURN_UNTIL(scene.loop, scene.closed == 1);
    ck_assert_uint_eq(scene.errors, 1);
    ck_assert_str_eq(scene.text, "QEMU does not answer");
    end(&scene);
}
END_TEST

/* Each of these ends the connection with a reason, and nothing else. */
START_TEST(test_nonsense)
{
    static const char *const lines[] = {
        "hello\n",
        "[]\n",
        "{\"return\": {}, \"id\": 7}\n",                /* no such command */
        "{\"return\": {}}\n",                           /* whose? */
        "{\"return\": {}, \"error\": {}, \"id\": 1}\n", /* both */
        "{\"id\": 1}\n",                                /* neither */
        "{\"return\": {}, \"id\": \"1\"}\n",
        GREETING, /* twice */
    };

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct scene scene;

        begin(&scene);
        greet(&scene);
        ck_assert_int_eq(execute(&scene, "stop", NULL), 0);
        hear(&scene, "{\"execute\":\"stop\",\"id\":1}");
        say(&scene, lines[i]);
        TURN_UNTIL(scene.loop, scene.closed == 1);
        ck_assert_str_eq(scene.text, "QEMU says what makes no sense");
        ck_assert_uint_eq(scene.errors, 1);
        end(&scene);
    }
}
END_TEST

START_TEST(test_a_line_without_an_end)
{
    static char flood[65536];
    struct scene scene;

    memset(flood, ' ', sizeof(flood));
    begin(&scene);
    greet(&scene);
    while (scene.closed == 0) {
        (void)send(scene.peer, flood, sizeof(flood), MSG_NOSIGNAL);
        ck_assert_int_eq(loop_turn(scene.loop, 1000), 0);
    }
    ck_assert_str_eq(scene.text, "QEMU sends a line without an end");
    end(&scene);
}
END_TEST

START_TEST(test_freed_in_an_answer)
{
    struct scene scene;

    begin(&scene);
    greet(&scene);
    scene.free_in_answer = true;
    ck_assert_int_eq(execute(&scene, "stop", NULL), 0);
    ck_assert_int_eq(execute(&scene, "cont", NULL), 0);
    hear(&scene, "{\"execute\":\"stop\",\"id\":1}");
    say(&scene, "{\"return\": {}, \"id\": 1}\n{\"return\": {}, \"id\": 2}\n");
    TURN_UNTIL(scene.loop, scene.answers == 1);
    turn_for(scene.loop, 20);
    ck_assert_uint_eq(scene.answers, 1); /* the second has nobody to tell */
    ck_assert_uint_eq(scene.closed, 0);
    ck_assert_ptr_null(scene.qmp);
    end(&scene);
}
END_TEST

START_TEST(test_a_descriptor_goes_along)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } control;
    struct scene scene;
    char text[256];
    struct iovec part = { text, sizeof(text) };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    int pipe_fds[2], passed;

    begin(&scene);
    ck_assert_int_eq(pipe(pipe_fds), 0);
    ck_assert_int_eq(
        qmp_execute_with_fd(scene.qmp, "getfd", NULL, pipe_fds[1], 5000, on_done, &scene),
        -EAGAIN); /* not before the greeting */
    greet(&scene);
    turn_for(scene.loop, 20);
    ck_assert_int_eq(
        qmp_execute_with_fd(scene.qmp, "getfd", NULL, pipe_fds[1], 5000, on_done, &scene), 0);
    turn_for(scene.loop, 20);
    message.msg_control = &control;
    message.msg_controllen = sizeof(control.bytes);
    ck_assert_int_gt(recvmsg(scene.peer, &message, 0), 0);
    ck_assert_uint_eq(control.aligned.cmsg_type, SCM_RIGHTS);
    memcpy(&passed, CMSG_DATA(&control.aligned), sizeof(passed));
    ck_assert_int_eq(write(passed, "x", 1), 1);
    ck_assert_int_eq(read(pipe_fds[0], text, 1), 1);
    (void)close(passed);
    closep(&pipe_fds[0]);
    closep(&pipe_fds[1]);
    end(&scene);
}
END_TEST

UNIT_MAIN("qmp", test_commands_before_the_greeting_wait, test_answers_errors_and_events,
          test_the_end_completes_everything_once, test_no_answer_in_time, test_nonsense,
          test_a_line_without_an_end, test_freed_in_an_answer, test_a_descriptor_goes_along)
