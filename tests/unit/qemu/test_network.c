/* test_network.c - the network of a machine, seen from where its QEMU would be. */
#include "network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend_state.h"
#include "frame.h"
#include "frames.h"
#include "lockdown.h"
#include "turn.h"
#include "unit.h"

#define LOOPBACK 0x7f000001u

static struct backend backend;
static struct network *network;
static uint8_t data[70000];

/* HOST_PORT of loopback can be reached; 0: none. */
static void begin(uint16_t host_port)
{
    static uint32_t ports[1];
    struct sandbox_error err = { 0 };

    ports[0] = host_port;
    backend = (struct backend){ .settings = { .host_ports = { host_port ? 1 : 0, ports } } };
    list_init(&backend.networks);
    ck_assert_int_eq(loop_new(&backend.loop), 0);
    ck_assert_int_eq(
        confine_init(&backend.confine,
                     &(struct confine_options){ .user = "nobody", .program = "sh" }, &err),
        0);
    ck_assert_int_eq(network_new(&backend, "test", &network), 0);
}

static void end(void)
{
    network_free(network);
    TURN_UNTIL(backend.loop, list_empty(&backend.networks));
    confine_done(&backend.confine);
    loop_free(backend.loop);
}

static void put(size_t size)
{
    ck_assert_int_eq(send(network_fd(network), data, size, 0), (ssize_t)size);
}

/* The next frame of that kind; false: none came in time. */
static bool get(enum frame_kind kind, int timeout_ms, struct frame *ret_frame)
{
    struct pollfd fd = { .fd = network_fd(network), .events = POLLIN };

    while (poll(&fd, 1, timeout_ms) == 1) {
        ssize_t size = recv(network_fd(network), data, sizeof(data), 0);

        ck_assert_int_gt(size, 0);
        frame_parse(data, (size_t)size, ret_frame);
        if (ret_frame->kind == kind)
            return true;
    }
    return false;
}

/* libslirp answers to whom it knows; so the guest tells its address first. */
static void arp(void)
{
    static const uint8_t request[] = {
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x52, 0x54, 0,    0x12, 0x34, 0x56, 8,    6,
        0,    1,    8,    0,    6,    4,    0,    1,    0x52, 0x54, 0,    0x12, 0x34, 0x56,
        10,   0,    2,    15,   0,    0,    0,    0,    0,    0,    10,   0,    2,    2,
    };
    struct frame frame;

    memcpy(data, request, sizeof(request));
    put(sizeof(request));
    ck_assert(get(FRAME_ARP, 10000, &frame));
}

/* A socket of this machine's loopback; its port. */
static uint16_t listen_at(int type, int *ret_fd)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(LOOPBACK) };
    socklen_t size = sizeof(address);

    *ret_fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(*ret_fd, 0);
    ck_assert_int_eq(bind(*ret_fd, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(getsockname(*ret_fd, (struct sockaddr *)&address, &size), 0);
    if (type == SOCK_STREAM)
        ck_assert_int_eq(listen(*ret_fd, 4), 0);
    return ntohs(address.sin_port);
}

START_TEST(test_udp_out_and_back)
{
    struct ends ends = { GUEST, GATEWAY, 5000, 0 };
    struct sockaddr_in from;
    socklen_t from_size = sizeof(from);
    struct frame frame;
    char text[16];
    int fd;

    ends.destination_port = listen_at(SOCK_DGRAM, &fd);
    begin(ends.destination_port);
    arp();
    ck_assert_int_eq(network_last_payload(network), -1);
    put(frame_udp(data, &ends, "question"));
    ck_assert_int_eq(recvfrom(fd, text, sizeof(text), 0, (struct sockaddr *)&from, &from_size),
                     8);
    ck_assert_int_eq(memcmp(text, "question", 8), 0);
    TURN_UNTIL(backend.loop, network_last_payload(network) >= 0);
    ck_assert_int_eq(sendto(fd, "answer", 6, 0, (struct sockaddr *)&from, from_size), 6);
    ck_assert(get(FRAME_UDP, 10000, &frame));
    ck_assert(address_equal(frame.source.address, address_v4(GATEWAY)));
    ck_assert_uint_eq(frame.destination.port, 5000);
    ck_assert_int_eq(memcmp(data + 42, "answer", 6), 0);
    (void)close(fd);
    end();
}
END_TEST

/* A connection is made and left alone: that is no payload. */
START_TEST(test_tcp_handshake_is_no_payload)
{
    struct ends ends = { GUEST, GATEWAY, 5000, 0 };
    struct frame frame;
    int fd;

    ends.destination_port = listen_at(SOCK_STREAM, &fd);
    begin(ends.destination_port);
    arp();
    put(frame_tcp(data, &ends, 1000, 0, SYN, 0));
    ck_assert(get(FRAME_TCP, 10000, &frame));
    ck_assert_uint_eq(frame.flags & (SYN | ACK | RST), SYN | ACK);
    ck_assert_uint_eq(frame.acknowledged, 1001);
    put(frame_tcp(data, &ends, 1001, frame.sequence + 1, ACK, 0));
    turn_for(backend.loop, 200);
    ck_assert_int_eq(network_last_payload(network), -1);
    put(frame_tcp(data, &ends, 1001, frame.sequence + 1, ACK | PSH, 10));
    TURN_UNTIL(backend.loop, network_last_payload(network) >= 0);
    (void)close(fd);
    end();
}
END_TEST

static void expect_refused(uint32_t address, uint16_t port, uint16_t from_port)
{
    const struct ends ends = { GUEST, address, from_port, port };
    struct frame frame;

    put(frame_tcp(data, &ends, 1000, 0, SYN, 0));
    ck_assert_msg(get(FRAME_TCP, 10000, &frame), "no answer from %08x", address);
    ck_assert(address_equal(frame.source.address, address_v4(address)));
    ck_assert_uint_eq(frame.destination.port, from_port);
    ck_assert_uint_eq(frame.flags & (SYN | RST), RST);
    ck_assert_uint_eq(frame.acknowledged, 1001);
}

/* At once, so that nobody waits: what may not be reached, and where nobody listens. */
START_TEST(test_refused)
{
    static const uint32_t addresses[] = { 0xa9fea9fe, 0x0a010203, 0xac100001, 0xc0a80001,
                                          0x64400001, 0x0a0002ff, 0x0a000204 };
    uint16_t port, other_port;
    int fd, other_fd;

    port = listen_at(SOCK_STREAM, &fd);
    other_port = listen_at(SOCK_STREAM, &other_fd);
    begin(port);
    arp();
    for (uint16_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
        expect_refused(addresses[i], 80, (uint16_t)(6000 + i));
    expect_refused(GATEWAY, other_port, 6100);
    (void)close(fd);
    expect_refused(GATEWAY, port, 6101);
    (void)close(other_fd);
    end();
}
END_TEST

static void expect_silence(const struct pollfd *listener, uint32_t address, uint16_t port)
{
    const struct ends ends = { GUEST, address, 5000, port };
    struct pollfd waiting = *listener;

    put(frame_udp(data, &ends, "let me in"));
    ck_assert_int_eq(poll(&waiting, 1, 200), 0);
}

/* By every way that leads to loopback: a port that is not named, addresses of the guest's own
 * network that the stack may take for this machine, broadcast, and the address itself. */
START_TEST(test_loopback_denied)
{
    struct pollfd listener = { .events = POLLIN };
    uint16_t port = listen_at(SOCK_DGRAM, &listener.fd);

    begin(port == 9 ? 10 : 9);
    arp();
    expect_silence(&listener, GATEWAY, port);
    end();
    begin(port);
    arp();
    expect_silence(&listener, LOOPBACK, port);
    expect_silence(&listener, 0x7f000002, port);
    expect_silence(&listener, 0x00000000, port);
    expect_silence(&listener, 0xffffffff, port);
    expect_silence(&listener, 0x0a0002ff, port);
    expect_silence(&listener, NAME_SERVER, port);
    ck_assert_int_eq(network_last_payload(network), -1);
    (void)close(listener.fd);
    end();
}
END_TEST

static int relay_pid(void)
{
    char command[128];
    FILE *pids;
    int pid = 0;

    (void)snprintf(command, sizeof(command), "pgrep -x -P %d sandbox-relay", (int)getpid());
    pids = popen(command, "r");
    ck_assert_int_eq(fscanf(pids, "%d", &pid), 1);
    (void)pclose(pids);
    return pid;
}

/* The number behind KEY in a file of /proc. */
static unsigned long status(int pid, const char *file, const char *key, int base)
{
    char path[64], line[256];
    unsigned long value = ULONG_MAX;
    FILE *status;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
    status = fopen(path, "re");
    ck_assert_ptr_nonnull(status);
    while (fgets(line, sizeof(line), status)) {
        if (strncmp(line, key, strlen(key)) == 0)
            value = strtoul(line + strlen(key), NULL, base);
    }
    (void)fclose(status);
    return value;
}

START_TEST(test_confined)
{
    struct rlimit own;
    int pid;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &own), 0);
    begin(0);
    arp(); /* so it is past its start */
    pid = relay_pid();
    ck_assert_uint_eq(status(pid, "status", "NoNewPrivs:", 10), 1);
    ck_assert_uint_eq(status(pid, "status", "CapEff:", 16), 0);
    ck_assert_uint_eq(status(pid, "status", "CapBnd:", 16), geteuid() == 0 ? 0 : ULONG_MAX);
    ck_assert_uint_ne(status(pid, "status", "Uid:", 10), 0);
    ck_assert_uint_eq(status(pid, "limits", "Max open files", 10),
                      own.rlim_max < 1024 ? own.rlim_max : 1024);
#if !SANITIZED
    ck_assert_uint_eq(status(pid, "status", "Seccomp:", 10), 2);
    ck_assert_uint_eq(status(pid, "limits", "Max address space", 10), LOCKDOWN_MEMORY_BYTES);
#endif
    end();
}
END_TEST

static unsigned random_state = 1;

static uint8_t random_byte(void)
{
    return (uint8_t)((random_state = random_state * 1103515245 + 12345) >> 16);
}

START_TEST(test_garbage)
{
    begin(9);
    for (int i = 0; i < 2000; i++) {
        static const uint16_t types[] = { 0x0806, 0x0800, 0x86dd };
        size_t size = 1 + (size_t)i % 1500;

        for (size_t at = 0; at < size; at++)
            data[at] = random_byte();
        put16(data + 12, types[i % 3]);
        if (i % 4)
            (void)frame_ip(data, &(struct ends){ GUEST, GATEWAY, 1, 1 }, (uint8_t)i, size % 60);
        put(size);
    }
    arp(); /* it is still there */
    end();
}
END_TEST

static void drain(void)
{
    static uint8_t frame[sizeof(data)];

    while (recv(network_fd(network), frame, sizeof(frame), MSG_DONTWAIT) > 0)
        ;
}

/* A guest that opens all it can, and leaves all of it half done, gets no more than its share,
 * and the relay stays the same process. */
START_TEST(test_flood)
{
    struct ends ends = { GUEST, GATEWAY, 0, 0 };
    int pid, fd;

    ends.destination_port = listen_at(SOCK_DGRAM, &fd);
    begin(ends.destination_port);
    arp();
    pid = relay_pid();
    for (unsigned i = 1; i < 4000; i++) {
        const struct ends syn = { GUEST, 0xcb007101 + i % 200, (uint16_t)i, 80 };
        const struct ends refused = { GUEST, 0x0a010203, (uint16_t)i, 80 };

        ends.source_port = (uint16_t)i;
        put(frame_tcp(data, &syn, i, 0, SYN, 0));
        put(frame_tcp(data, &refused, i, 0, SYN, 0));
        put(frame_udp(data, &ends, "one of many"));
        drain();
    }
    arp();
    ck_assert_int_eq(relay_pid(), pid);
    ck_assert_uint_lt(status(pid, "status", "VmRSS:", 10), 400 * 1024);
    (void)close(fd);
    end();
}
END_TEST

/* A guest that takes no frames does not keep the relay from its work. */
START_TEST(test_deaf_guest)
{
    struct ends ends = { GUEST, GATEWAY, 5000, 0 };
    const struct ends refused = { GUEST, 0x0a010203, 5000, 80 };
    struct pollfd listener = { .events = POLLIN };

    ends.destination_port = listen_at(SOCK_DGRAM, &listener.fd);
    begin(ends.destination_port);
    arp();
    for (unsigned i = 0; i < 3000; i++) /* each is answered */
        put(frame_tcp(data, &refused, i, 0, SYN, 0));
    put(frame_udp(data, &ends, "still here"));
    ck_assert_int_eq(poll(&listener, 1, 10000), 1);
    drain();
    arp();
    (void)close(listener.fd);
    end();
}
END_TEST

/* Who is not the guest's address, and says so: addresses without number, the gateway's among
 * them. Answers to them are lost, what waits for them is bounded, the guest's own go on. */
START_TEST(test_spoofed)
{
    const struct ends ends = { GUEST, 0x0a010203, 7000, 80 };
    int pid;

    begin(0);
    arp();
    pid = relay_pid();
    for (uint32_t i = 0; i < 300; i++) { /* `I am the gateway`, `I am 10.0.2.i` */
        static const uint8_t claim[] = {
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0,
            2,    2,    0,    0,    0,    0,    1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0,
        };

        memcpy(data, claim, sizeof(claim));
        put32(data + 28, i % 2 ? GATEWAY : 0x0a000200 + i);
        put32(data + 38, i % 2 ? GATEWAY : 0x0a000200 + i);
        put(sizeof(claim));
    }
    for (uint32_t i = 0; i < 2000; i++) { /* each is to be answered */
        const struct ends spoofed = { 0x0a000210 + i % 200 + (i % 3 ? 0x08000000 : 0),
                                      0x0a010203, (uint16_t)(i + 1), 80 };

        put(frame_tcp(data, &spoofed, i, 0, SYN, 0));
        drain();
    }
    ck_assert_uint_lt(status(pid, "status", "VmRSS:", 10), 400 * 1024);
    drain();
    arp();
    expect_refused(ends.destination, ends.destination_port, ends.source_port);
    ck_assert_int_eq(relay_pid(), pid);
#if !SANITIZED
    ck_assert_uint_lt(status(pid, "status", "VmPeak:", 10), 96 * 1024);
#endif
    end();
}
END_TEST

static bool has_relay(void)
{
    return system("pgrep -x -P $PPID sandbox-relay >/dev/null") == 0;
}

/* In a second, and later each time: a guest may know how to end it. */
START_TEST(test_another_relay_after_its_end)
{
    begin(0);
    for (int i = 0; i < 2; i++) {
        arp();
        ck_assert_int_eq(kill(relay_pid(), SIGKILL), 0);
        TURN_UNTIL(backend.loop, !has_relay());
        turn_for(backend.loop, i == 0 ? 100 : 1100);
        ck_assert(!has_relay());
        TURN_UNTIL(backend.loop, has_relay());
    }
    arp();
    end();
}
END_TEST

UNIT_MAIN("qemu_network", test_udp_out_and_back, test_tcp_handshake_is_no_payload, test_refused,
          test_loopback_denied, test_confined, test_garbage, test_flood, test_deaf_guest,
          test_spoofed, test_another_relay_after_its_end)
