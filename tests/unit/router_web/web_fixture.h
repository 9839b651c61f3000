/* web_fixture.h - a web front on a port of its own, in front of the fake route. */
#pragma once

#include <check.h>

#include "fake_route.h"
#include "front_web.h"
#include "web_client.h"

struct fixture {
    struct loop *loop;
    struct settings settings;
    struct router router;
    struct front_web *front;
    uint16_t port;
};

extern struct fixture fixture;
void fixture_open(void);
void fixture_open_with_token(void); /* FIXTURE_TOKEN */
void fixture_close(void);
#define FIXTURE_TOKEN "0123456789abcdef"

void fixture_main(struct web_client *client); /* an open main socket */

/* The suites of the files. */
TCase *tests_of_calls(void);
TCase *tests_of_channels(void);
