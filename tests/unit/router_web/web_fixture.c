/* web_fixture.c - see web_fixture.h. */
#include "web_fixture.h"

#include <stdio.h>
#include <sys/stat.h>

struct fixture fixture;

static char *addresses[] = { "127.0.0.1:0" };
static char token_path[] = "/tmp/front-web-token-XXXXXX";

static void open_front(char *token_file)
{
    char error[FRONT_WEB_ERROR_MAX] = "";

    fake_route_reset();
    fixture = (struct fixture){
        .settings.router = {
            .listen = { .count = 1, .items = addresses },
            .docs_base = "https://docs.example/#",
            .auth_token_file = token_file,
        },
    };
    ck_assert_int_eq(loop_new(&fixture.loop), 0);
    fixture.router.loop = fixture.loop;
    fixture.router.settings = &fixture.settings;
    ck_assert_int_eq(channel_set_new(fixture.loop, &fixture.router.channels), 0);
    ck_assert_int_eq(backlog_init(&fixture.router.backlog, fixture.loop), 0);
    ck_assert_msg(front_web_new(&fixture.router, &fixture.front, error) == 0, "%s", error);
    fixture.port = front_web_port(fixture.front, 0);
    ck_assert_uint_ne(fixture.port, 0);
}

void fixture_open(void)
{
    open_front(NULL);
}

void fixture_open_with_token(void)
{
    int fd = mkstemp(token_path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(dprintf(fd, FIXTURE_TOKEN "\r\nnot this\n"), 27);
    close(fd);
    open_front(token_path);
    ck_assert_int_eq(unlink(token_path), 0);
}

void fixture_close(void)
{
    front_web_free(fixture.front);
    channel_set_free(fixture.router.channels);
    ck_assert_uint_eq(fixture.router.backlog.total_bytes, 0);
    backlog_done(&fixture.router.backlog);
    loop_free(fixture.loop);
}

void fixture_main(struct web_client *client)
{
    client_open_main(client, fixture.loop, fixture.port);
}
