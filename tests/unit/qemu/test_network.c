/* test_network.c - the network of a machine, seen from where its QEMU would be. */
#include "network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend_state.h"
#include "frame.h"
#include "frames.h"
#include "turn.h"
#include "unit.h"

#define LOOPBACK 0x7f000001u

static struct backend backend;
static struct network *network;
static uint8_t data[70000];

static void begin(bool host_loopback)
{
    struct sandbox_error err = { 0 };

    backend = (struct backend){ .settings = { .host_loopback = host_loopback } };
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

    begin(true);
    arp();
    ck_assert_int_eq(network_last_payload(network), -1);
    ends.destination_port = listen_at(SOCK_DGRAM, &fd);
    put(frame_udp(data, &ends, "question"));
    ck_assert_int_eq(recvfrom(fd, text, sizeof(text), 0, (struct sockaddr *)&from, &from_size),
                     8);
    ck_assert_int_eq(memcmp(text, "question", 8), 0);
    TURN_UNTIL(backend.loop, network_last_payload(network) >= 0);
    ck_assert_int_eq(sendto(fd, "answer", 6, 0, (struct sockaddr *)&from, from_size), 6);
    ck_assert(get(FRAME_UDP, 10000, &frame));
    ck_assert_uint_eq(frame.source, GATEWAY);
    ck_assert_uint_eq(frame.destination_port, 5000);
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

    begin(true);
    arp();
    ends.destination_port = listen_at(SOCK_STREAM, &fd);
    put(frame_tcp(data, &ends, 1000, 0, 0x02, 0));
    ck_assert(get(FRAME_TCP, 10000, &frame));
    ck_assert_uint_eq(frame.flags & 0x16, 0x12); /* SYN, ACK, no RST */
    ck_assert_uint_eq(frame.acknowledged, 1001);
    put(frame_tcp(data, &ends, 1001, frame.sequence + 1, 0x10, 0));
    turn_for(backend.loop, 200);
    ck_assert_int_eq(network_last_payload(network), -1);
    put(frame_tcp(data, &ends, 1001, frame.sequence + 1, 0x18, 10));
    TURN_UNTIL(backend.loop, network_last_payload(network) >= 0);
    (void)close(fd);
    end();
}
END_TEST

START_TEST(test_loopback_denied)
{
    struct ends ends = { GUEST, GATEWAY, 5000, 0 };
    struct pollfd waiting = { .events = POLLIN };

    begin(false);
    arp();
    ends.destination_port = listen_at(SOCK_DGRAM, &waiting.fd);
    put(frame_udp(data, &ends, "by the gateway"));
    ck_assert_int_eq(poll(&waiting, 1, 300), 0);
    end();
    begin(true);
    arp();
    ends.destination = LOOPBACK; /* straight: never */
    put(frame_udp(data, &ends, "straight"));
    ck_assert_int_eq(poll(&waiting, 1, 300), 0);
    ck_assert_int_eq(network_last_payload(network), -1);
    (void)close(waiting.fd);
    end();
}
END_TEST

START_TEST(test_garbage)
{
    unsigned state = 1;

    begin(true);
    for (int i = 0; i < 2000; i++) {
        size_t size = 1 + (size_t)i % 1500;

        for (size_t at = 0; at < size; at++)
            data[at] = (uint8_t)((state = state * 1103515245 + 12345) >> 16);
        put16(data + 12, i % 2 ? 0x0800 : 0x0806);
        if (i % 3)
            (void)frame_ip(data, &(struct ends){ GUEST, GATEWAY, 1, 1 }, (uint8_t)i, size % 60);
        put(size);
    }
    arp(); /* it is still there */
    end();
}
END_TEST

START_TEST(test_another_relay_after_its_end)
{
    char command[128];
    FILE *pids;
    int pid = 0;

    begin(true);
    arp();
    (void)snprintf(command, sizeof(command), "pgrep -x -P %d sandbox-relay", (int)getpid());
    pids = popen(command, "r");
    ck_assert_int_eq(fscanf(pids, "%d", &pid), 1);
    (void)pclose(pids);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    turn_for(backend.loop, 1500);
    arp();
    end();
}
END_TEST

UNIT_MAIN("qemu_network", test_udp_out_and_back, test_tcp_handshake_is_no_payload,
          test_loopback_denied, test_garbage, test_another_relay_after_its_end)
