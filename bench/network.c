/* network.c - bytes and connections between a guest and this machine's loopback, with the relay
 * as it is and with a bare one (bare.c), both under way at once and measured in turn. */
#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define MEASURES 3
#define GATEWAY "10.0.2.2"
#define EXEC_TIMEOUT_MS 300000

/* One machine and what was measured with it. */
struct side {
    const char *name;
    const char *against; /* prefix of rows; NULL: none */
    const char *adapter;
    struct subject *subject;
    char id[64];
    struct samples samples[MEASURES];
};

static const struct {
    const char *name, *unit;
} measures[MEASURES] = { { "down", "MiB/s" }, { "up", "MiB/s" }, { "connects", "1/s" } };

/* In the guest: ADDRESS PORT MEBIBYTES CONNECTIONS; a line for each measure. */
static const char program[] =
    "import socket,sys,time\n"
    "at=(sys.argv[1],int(sys.argv[2]));n=int(sys.argv[3]);c=int(sys.argv[4]);b=bytearray(1<<20)"
    "\n"
    "def open(how):\n"
    " s=socket.create_connection(at);s.sendall(how);return s\n"
    "def say(amount,since):\n"
    " print(amount/(time.monotonic()-since))\n"
    "t=time.monotonic();s=open(b'd%07d'%n)\n"
    "while s.recv_into(b): pass\n"
    "say(n,t);t=time.monotonic();s=open(b'u0000000')\n"
    "for i in range(n): s.sendall(b)\n"
    "s.shutdown(socket.SHUT_WR);s.recv(1);say(n,t);t=time.monotonic()\n"
    "for i in range(c):\n"
    " s=open(b'c0000000');s.recv(1);s.close()\n"
    "say(c,t)\n";

/* The server's side of a connection: eight bytes say what is wanted. */
static void serve(int fd)
{
    static char block[1 << 20];
    char wanted[9] = "";

    if (recv(fd, wanted, 8, MSG_WAITALL) != 8)
        return;
    if (wanted[0] == 'd') {
        for (long left = strtol(wanted + 1, NULL, 10); left > 0; left--) {
            for (size_t sent = 0; sent < sizeof(block);) {
                ssize_t size = send(fd, block + sent, sizeof(block) - sent, MSG_NOSIGNAL);

                if (size <= 0)
                    return;
                sent += (size_t)size;
            }
        }
        return;
    }
    while (wanted[0] == 'u' && recv(fd, block, sizeof(block), 0) > 0)
        ;
    (void)send(fd, "!", 1, MSG_NOSIGNAL); /* the guest notices its absence */
}

static int listen_on_loopback(uint16_t *ret_port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 128) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) < 0)
        return -1;
    *ret_port = ntohs(address.sin_port);
    return fd;
}

/* A process that serves one connection after the other, until it is killed. */
static pid_t server_start(uint16_t *ret_port)
{
    int fd = listen_on_loopback(ret_port);
    pid_t pid = fd < 0 ? -1 : fork();

    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int client; (client = accept(fd, NULL, NULL)) >= 0; (void)close(client))
            serve(client);
        _exit(1);
    }
    if (fd >= 0)
        (void)close(fd);
    return pid;
}

static int side_open(struct bench *bench, struct side *side, uint16_t port)
{
    _cleanup_(buf_done)
    struct buf reply = { 0 };
    char section[128], body[256];

    (void)snprintf(section, sizeof(section), "  qemu: {pool_size: 0, host_ports: [%u]}\n",
                   port);
    (void)snprintf(body, sizeof(body), "{\"image\":\"%s\",\"network\":true}", bench->image);
    if (bench_subject(bench, side->adapter, section, &side->subject) < 0 ||
        bench_call(subject_client(side->subject), "sandbox::create", body, NULL, &reply) < 0)
        return -1;
    return bench_text(&reply, "sandbox_id", side->id, sizeof(side->id));
}

/* The call's body; the caller frees. */
static char *exec_body(const struct side *side, uint16_t port, unsigned mebibytes,
                       unsigned connections)
{
    char numbers[3][16];
    json_t *request;
    char *text;

    (void)snprintf(numbers[0], sizeof(numbers[0]), "%u", port);
    (void)snprintf(numbers[1], sizeof(numbers[1]), "%u", mebibytes);
    (void)snprintf(numbers[2], sizeof(numbers[2]), "%u", connections);
    request = json_pack("{s:s, s:[sssssss], s:i}", "sandbox_id", side->id, "argv", "python3",
                        "-c", program, GATEWAY, numbers[0], numbers[1], numbers[2],
                        "timeout_ms", EXEC_TIMEOUT_MS);
    text = request ? json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    return text;
}

static int side_measure(struct side *side, uint16_t port, unsigned mebibytes,
                        unsigned connections)
{
    _cleanup_(buf_done)
    struct buf reply = { 0 };
    _cleanup_free_ char *body = exec_body(side, port, mebibytes, connections);
    char text[1024], *next = text;

    if (!body ||
        bench_call(subject_client(side->subject), "sandbox::exec", body, NULL, &reply) < 0 ||
        bench_text(&reply, "stdout", text, sizeof(text)) < 0)
        return -1;
    for (size_t i = 0; i < MEASURES; i++) {
        double rate = strtod(next, &next);

        if (rate <= 0 || samples_add(&side->samples[i], rate) < 0)
            return -1;
    }
    return 0;
}

static void side_report(struct bench *bench, struct side *side)
{
    char name[64], against[64];

    for (size_t i = 0; i < MEASURES; i++) {
        (void)snprintf(name, sizeof(name), "network.%s.%s", side->name, measures[i].name);
        (void)snprintf(against, sizeof(against), "network.%s.%s",
                       side->against ? side->against : "", measures[i].name);
        report_add(&bench->report, name, &side->samples[i], measures[i].unit,
                   side->against ? against : NULL);
        samples_done(&side->samples[i]);
    }
    subject_stop(side->subject);
}

int bench_network(struct bench *bench)
{
    struct side sides[] = { { .name = "bare", .adapter = bench->bare },
                            { .name = "relay", .against = "bare", .adapter = bench->adapter } };
    const unsigned mebibytes = bench->quick ? 8 : 64, connections = bench->quick ? 50 : 300;
    const int rounds = bench->quick ? 1 : 7;
    uint16_t port = 0;
    pid_t server = server_start(&port);
    int result = server < 0 ? -1 : 0;

    for (size_t i = 0; result == 0 && i < ARRAY_SIZE(sides); i++)
        result = side_open(bench, &sides[i], port);
    for (int round = 0; result == 0 && round < rounds; round++) {
        for (size_t i = 0; result == 0 && i < ARRAY_SIZE(sides); i++)
            result = side_measure(&sides[(i + (size_t)round) % ARRAY_SIZE(sides)], port,
                                  mebibytes, connections);
    }
    for (size_t i = 0; i < ARRAY_SIZE(sides); i++)
        side_report(bench, &sides[i]);
    if (server > 0) {
        (void)kill(server, SIGKILL);
        (void)waitpid(server, NULL, 0);
    }
    return result;
}
