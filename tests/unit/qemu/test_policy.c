/* test_policy.c - where a guest may connect to, and who this machine's name servers are. */
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

START_TEST(test_resolvers)
{
    char text[] = "# nameserver 1.1.1.1\nsearch example.org\nnameserver 127.0.0.53\n"
                  "nameserver\t fe80::1%eth0\nnameserver\nnameserver no.address\n"
                  "nameserver 10.0.0.1 trailing\nnameservers 9.9.9.9\r\nnameserver ::1\r\n";
    struct resolvers resolvers;

    resolvers_parse(text, &resolvers);
    ck_assert_uint_eq(resolvers.count, 4);
    ck_assert(address_equal(resolvers.addresses[0], at("127.0.0.53")));
    ck_assert(address_equal(resolvers.addresses[1], at("fe80::1")));
    ck_assert(address_equal(resolvers.addresses[2], at("10.0.0.1")));
    ck_assert(address_equal(resolvers.addresses[3], at("::1")));
}
END_TEST

START_TEST(test_resolvers_are_bounded)
{
    char text[40 * 32] = "";
    struct resolvers resolvers;

    for (int i = 0; i < 40; i++)
        strcat(text, "nameserver 9.9.9.9\n");
    resolvers_parse(text, &resolvers);
    ck_assert_uint_eq(resolvers.count, RESOLVERS_MAX);
}
END_TEST

UNIT_MAIN("qemu_policy", test_kinds, test_private_networks, test_host_ports,
          test_host_ports_that_are_none, test_resolvers, test_resolvers_are_bounded)
