/* test_policy.c - where a guest may connect to, and who this machine's name servers are. */
#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "policy.h"
#include "resolvers.h"
#include "unit.h"

static struct address at(const char *text)
{
    struct address address;

    ck_assert_msg(address_parse(text, &address) == 0, "%s", text);
    return address;
}

/* The first and the last of each range, and their neighbours. */
static const struct {
    const char *address;
    enum address_kind kind;
} rows[] = {
    { "0.0.0.0", ADDRESS_FORBIDDEN },
    { "0.255.255.255", ADDRESS_FORBIDDEN },
    { "1.0.0.0", ADDRESS_PUBLIC },
    { "9.255.255.255", ADDRESS_PUBLIC },
    { "10.0.0.0", ADDRESS_PRIVATE },
    { "10.255.255.255", ADDRESS_PRIVATE },
    { "11.0.0.0", ADDRESS_PUBLIC },
    { "100.63.255.255", ADDRESS_PUBLIC },
    { "100.64.0.0", ADDRESS_PRIVATE },
    { "100.100.100.200", ADDRESS_FORBIDDEN },
    { "100.127.255.255", ADDRESS_PRIVATE },
    { "100.128.0.0", ADDRESS_PUBLIC },
    { "126.255.255.255", ADDRESS_PUBLIC },
    { "127.0.0.1", ADDRESS_LOOPBACK },
    { "127.255.255.255", ADDRESS_LOOPBACK },
    { "128.0.0.0", ADDRESS_PUBLIC },
    { "168.63.129.16", ADDRESS_FORBIDDEN },
    { "169.253.255.255", ADDRESS_PUBLIC },
    { "169.254.0.0", ADDRESS_FORBIDDEN },
    { "169.254.169.254", ADDRESS_FORBIDDEN },
    { "169.255.0.0", ADDRESS_PUBLIC },
    { "172.15.255.255", ADDRESS_PUBLIC },
    { "172.16.0.0", ADDRESS_PRIVATE },
    { "172.31.255.255", ADDRESS_PRIVATE },
    { "172.32.0.0", ADDRESS_PUBLIC },
    { "192.0.0.8", ADDRESS_PRIVATE },
    { "192.0.0.192", ADDRESS_FORBIDDEN },
    { "192.167.255.255", ADDRESS_PUBLIC },
    { "192.168.0.0", ADDRESS_PRIVATE },
    { "192.168.255.255", ADDRESS_PRIVATE },
    { "192.169.0.0", ADDRESS_PUBLIC },
    { "198.17.255.255", ADDRESS_PUBLIC },
    { "198.18.0.0", ADDRESS_PRIVATE },
    { "198.19.255.255", ADDRESS_PRIVATE },
    { "198.20.0.0", ADDRESS_PUBLIC },
    { "223.255.255.255", ADDRESS_PUBLIC },
    { "224.0.0.0", ADDRESS_FORBIDDEN },
    { "239.255.255.255", ADDRESS_FORBIDDEN },
    { "240.0.0.0", ADDRESS_FORBIDDEN },
    { "255.255.255.255", ADDRESS_FORBIDDEN },
    { "::", ADDRESS_FORBIDDEN },
    { "::1", ADDRESS_LOOPBACK },
    { "::2", ADDRESS_FORBIDDEN },
    { "::127.0.0.1", ADDRESS_FORBIDDEN }, /* IPv4-compatible, of old */
    { "::ffff:8.8.8.8", ADDRESS_PUBLIC },
    { "::ffff:10.0.0.1", ADDRESS_PRIVATE },
    { "::ffff:127.0.0.1", ADDRESS_LOOPBACK },
    { "::ffff:169.254.169.254", ADDRESS_FORBIDDEN },
    { "::ffff:0.0.0.0", ADDRESS_FORBIDDEN },
    { "64:ff9b::8.8.8.8", ADDRESS_PUBLIC },
    { "64:ff9b::10.1.2.3", ADDRESS_PRIVATE },
    { "64:ff9b::169.254.169.254", ADDRESS_FORBIDDEN },
    { "64:ff9b:1::10.1.2.3", ADDRESS_PRIVATE },
    { "100::1", ADDRESS_FORBIDDEN },
    { "2000::1", ADDRESS_PUBLIC },
    { "2001::1", ADDRESS_FORBIDDEN },
    { "2001:1::1", ADDRESS_PUBLIC },
    { "2002:0808:0808::1", ADDRESS_PUBLIC },
    { "2002:0a00:0001::1", ADDRESS_PRIVATE },
    { "2002:7f00:0001::1", ADDRESS_LOOPBACK },
    { "2600::", ADDRESS_PUBLIC },
    { "fbff:ffff::1", ADDRESS_PUBLIC },
    { "fc00::", ADDRESS_PRIVATE },
    { "fd00:ec2::253", ADDRESS_PRIVATE },
    { "fd00:ec2::254", ADDRESS_FORBIDDEN },
    { "fd20:ce::254", ADDRESS_FORBIDDEN },
    { "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ADDRESS_PRIVATE },
    { "fe7f:ffff::1", ADDRESS_PUBLIC },
    { "fe80::1", ADDRESS_FORBIDDEN },
    { "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ADDRESS_FORBIDDEN },
    { "fec0::2", ADDRESS_PRIVATE },
    { "ff02::1", ADDRESS_FORBIDDEN },
};

START_TEST(test_kinds)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        ck_assert_msg(address_kind(at(rows[i].address)) == rows[i].kind, "%s is %d",
                      rows[i].address, address_kind(at(rows[i].address)));
}
END_TEST

START_TEST(test_private_networks)
{
    for (int allowed = 0; allowed < 2; allowed++) {
        const struct policy policy = { .private_networks = allowed };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
            bool wanted = rows[i].kind == ADDRESS_PUBLIC ||
                          (allowed && rows[i].kind == ADDRESS_PRIVATE);

            ck_assert_msg(policy_allows(&policy, at(rows[i].address), 80) == wanted, "%s",
                          rows[i].address);
        }
    }
}
END_TEST

START_TEST(test_host_ports)
{
    struct policy policy = { 0 };

    ck_assert_int_eq(policy_name_host_ports(&policy, ""), 0);
    ck_assert(!policy_allows(&policy, at("127.0.0.1"), 80));
    ck_assert_int_eq(policy_name_host_ports(&policy, "80,65535,1"), 0);
    for (unsigned port = 0; port <= 65535; port++) {
        bool wanted = port == 80 || port == 65535 || port == 1;

        ck_assert(policy_allows(&policy, at("127.0.0.1"), (uint16_t)port) == wanted);
        ck_assert(policy_allows(&policy, at("::1"), (uint16_t)port) == wanted);
    }
    ck_assert(!policy_allows(&policy, at("10.0.0.1"), 80));
    ck_assert(!policy_allows(&policy, at("169.254.169.254"), 80));
}
END_TEST

START_TEST(test_host_ports_that_are_none)
{
    static const char *const texts[] = { "0",   "65536",  "-1",
                                         "+1",  " 1",     "x",
                                         "80x", "80,,81", "99999999999999999999" };
    struct policy policy = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        ck_assert_msg(policy_name_host_ports(&policy, texts[i]) < 0, "%s", texts[i]);
}
END_TEST

/* Name servers. */

static struct resolvers resolvers;

static void read_resolvers(const char *text)
{
    char copy[2048];

    ck_assert_uint_lt(strlen(text), sizeof(copy));
    resolvers_read(&resolvers, strcpy(copy, text));
}

START_TEST(test_resolvers)
{
    static const char *const wanted[] = { "127.0.0.53", "fe80::1", "10.0.0.1", "::1" };

    resolvers = (struct resolvers){ 0 };
    read_resolvers("# nameserver 1.1.1.1\nsearch example.org\nnameserver 127.0.0.53\n"
                   "nameserver\t fe80::1%eth0\nnameserver\nnameserver no.address\n"
                   "nameserver 10.0.0.1 trailing\nnameservers 9.9.9.9\r\nnameserver ::1\r\n"
                   "nameserver 127.0.0.53\n");
    ck_assert_uint_eq(resolvers.count, ARRAY_SIZE(wanted));
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        ck_assert(address_equal(resolvers.items[i].address, at(wanted[i])));
    ck_assert(resolvers_have(&resolvers, at("::1")));
    ck_assert(!resolvers_have(&resolvers, at("9.9.9.9")));
}
END_TEST

START_TEST(test_resolvers_are_bounded)
{
    char text[40 * 32] = "";

    resolvers = (struct resolvers){ 0 };
    for (int i = 0; i < 40; i++)
        (void)snprintf(text + strlen(text), 32, "nameserver 9.9.9.%d\n", i);
    read_resolvers(text);
    ck_assert_uint_eq(resolvers.count, RESOLVERS_MAX);
}
END_TEST

#define SECOND_NS 1000000000
static int64_t now_ns;

static void expect_asked(bool v4, const char *address)
{
    const struct resolver *asked = resolvers_ask(&resolvers, v4, now_ns);

    ck_assert_ptr_nonnull(asked);
    ck_assert_msg(address_equal(asked->address, at(address)), "not %s", address);
}

static void begin_resolvers(void)
{
    resolvers = (struct resolvers){ 0 };
    now_ns = 1000 * (int64_t)SECOND_NS;
    read_resolvers("nameserver 10.0.0.1\nnameserver fd00::1\nnameserver 10.0.0.2\n"
                   "nameserver 10.0.0.3\n");
}

/* The first one as long as it answers, however much it is asked. */
START_TEST(test_the_first_is_asked)
{
    begin_resolvers();
    for (int i = 0; i < 100; i++) {
        expect_asked(true, "10.0.0.1");
        now_ns += SECOND_NS;
        expect_asked(true, "10.0.0.1");
        resolvers_answered(&resolvers, at("10.0.0.1"));
        now_ns += 100 * (int64_t)SECOND_NS;
    }
    expect_asked(false, "fd00::1");
    read_resolvers("nameserver 10.0.0.1\n");
    ck_assert_ptr_null(resolvers_ask(&resolvers, false, now_ns));
}
END_TEST

START_TEST(test_a_silent_one_is_passed_over)
{
    begin_resolvers();
    expect_asked(true, "10.0.0.1");
    now_ns += RESOLVER_PATIENCE_NS;
    expect_asked(true, "10.0.0.2");
    expect_asked(false, "fd00::1");
    resolvers_answered(&resolvers, at("10.0.0.2"));
    now_ns += RESOLVER_REST_NS - 1;
    expect_asked(true, "10.0.0.2");
    now_ns += 1;
    expect_asked(true, "10.0.0.1"); /* another chance */
    now_ns += RESOLVER_PATIENCE_NS;
    expect_asked(true, "10.0.0.3");                 /* the second owes an answer too */
    resolvers_answered(&resolvers, at("10.0.0.1")); /* late, but there */
    expect_asked(true, "10.0.0.1");
}
END_TEST

START_TEST(test_one_that_fails_is_passed_over)
{
    begin_resolvers();
    expect_asked(true, "10.0.0.1");
    resolvers_failed(&resolvers, at("10.0.0.1"), now_ns);
    expect_asked(true, "10.0.0.2");
    now_ns++;
    resolvers_failed(&resolvers, at("10.0.0.2"), now_ns);
    expect_asked(true, "10.0.0.3");
    now_ns++;
    resolvers_failed(&resolvers, at("10.0.0.3"), now_ns);
    expect_asked(true, "10.0.0.1"); /* all have failed: in turn */
    resolvers_failed(&resolvers, at("10.0.0.1"), ++now_ns);
    expect_asked(true, "10.0.0.2");
    resolvers_failed(&resolvers, at("fd00::1"), now_ns);
    expect_asked(false, "fd00::1");                      /* the only one */
    resolvers_failed(&resolvers, at("9.9.9.9"), now_ns); /* none of ours */
}
END_TEST

/* Of a list that is read again each second, what is known stays; who is new has failed nowhere.
 */
START_TEST(test_resolvers_are_read_again)
{
    begin_resolvers();
    resolvers_failed(&resolvers, at("10.0.0.1"), now_ns);
    read_resolvers("nameserver 10.0.0.1\nnameserver 10.0.0.9\n");
    expect_asked(true, "10.0.0.9");
    read_resolvers("nameserver 10.0.0.9\n");
    read_resolvers("nameserver 10.0.0.1\nnameserver 10.0.0.9\n");
    expect_asked(true, "10.0.0.1");
    read_resolvers("");
    ck_assert_ptr_null(resolvers_ask(&resolvers, true, now_ns));
}
END_TEST

UNIT_MAIN("qemu_policy", test_kinds, test_private_networks, test_host_ports,
          test_host_ports_that_are_none, test_resolvers, test_resolvers_are_bounded,
          test_the_first_is_asked, test_a_silent_one_is_passed_over,
          test_one_that_fails_is_passed_over, test_resolvers_are_read_again)
