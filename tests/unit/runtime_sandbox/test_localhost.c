/* test_localhost.c - the host's loopback inside a guest (contract 5.1.3). */
#include "localhost.h"
#include "unit.h"

static void expect(const char *value, const char *wanted)
{
    char *got = localhost_rewrite(value, "10.0.2.2");

    ck_assert_str_eq(got, wanted);
    free(got);
}

START_TEST(test_rewrites_each)
{
    expect("http://localhost:8080/x", "http://10.0.2.2:8080/x");
    expect("ws://127.0.0.1:1,http://localhost:2", "ws://10.0.2.2:1,http://10.0.2.2:2");
    expect("://localhost:", "://10.0.2.2:");
}
END_TEST

START_TEST(test_leaves_the_rest)
{
    expect("", "");
    expect("localhost:80", "localhost:80");
    expect("http://localhost/", "http://localhost/");
    expect("http://localhosts:1", "http://localhosts:1");
    expect("http://127.0.0.11:1", "http://127.0.0.11:1");
    expect("http://user@localhost:1", "http://user@localhost:1");
    expect("://://localhost:1", "://://10.0.2.2:1");
}
END_TEST

UNIT_MAIN("localhost", test_rewrites_each, test_leaves_the_rest)
