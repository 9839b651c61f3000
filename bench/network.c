/* network.c - bytes and connections between a guest and this machine's loopback: a sandbox,
 * the same with a relay that adds nothing to libslirp (bare.c), and a QEMU with its own
 * user-mode network, which is the same libslirp without us. All are under way at once and
 * measured in turn. */
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

#include "bare_guest.h"

#define MEASURES 3
#define GATEWAY "10.0.2.2"
#define EXEC_TIMEOUT_MS 300000
#define TEMPLATE_KEPT_MS 3000 /* it is written in the background */
#define TEXT_BYTES 1024

enum side_id { SIDE_USER, SIDE_BARE, SIDE_SANDBOX, SIDE_MAX };

static const struct {
    const char *prefix; /* of its rows */
    bool compared;      /* with the first one */
} sides[] = {
    [SIDE_USER] = { "network.user", false },
    [SIDE_BARE] = { "network.bare", true },
    [SIDE_SANDBOX] = { "network", true },
};
_Static_assert(ARRAY_SIZE(sides) == SIDE_MAX, "names of all");

/* One machine and what was measured with it. None of the three: left out. */
struct side {
    struct subject *subject; /* SIDE_BARE, SIDE_SANDBOX */
    char id[64];
    struct bare *bare; /* SIDE_USER */
    struct bare_guest *guest;
    struct samples samples[MEASURES];
};

static const struct {
    const char *name, *unit;
} measures[MEASURES] = { { "down", "MiB/s" }, { "up", "MiB/s" }, { "connections", "1/s" } };

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

/* A sandbox. */
static int side_create(struct bench *bench, const char *adapter, uint16_t port,
                       struct side *side)
{
    _cleanup_(buf_done)
    struct buf reply = { 0 };
    char section[128], body[256];

    (void)snprintf(section, sizeof(section), "  qemu: {pool_size: 0, host_ports: [%u]}\n",
                   port);
    (void)snprintf(body, sizeof(body), "{\"image\":\"%s\",\"network\":true}", bench->image);
    if (bench_subject(bench, adapter, section, &side->subject) < 0 ||
        bench_call(subject_client(side->subject), "sandbox::create", body, NULL, &reply) < 0)
        return -1;
    return bench_text(&reply, "sandbox_id", side->id, sizeof(side->id));
}

/* Out of the template of a sandbox with a network, which is kept by then. */
static int side_restore(struct bench *bench, struct native_client *client, struct side *side)
{
    double ms;

    bench_settle(client, TEMPLATE_KEPT_MS);
    if (!bare_possible(bench, BARE_NETWORK))
        return 0;
    if (bare_start(bench, BARE_NETWORK, &ms, &side->bare) < 0)
        return -1;
    return bare_guest_new(side->bare, &side->guest);
}

static int sides_open(struct bench *bench, uint16_t port, struct side *all)
{
    struct side *sandbox = &all[SIDE_SANDBOX];

    if (access(bench->bare, X_OK) == 0) { /* where it was built */
        if (side_create(bench, bench->bare, port, &all[SIDE_BARE]) < 0)
            return -1;
    }
    if (side_create(bench, bench->adapter, port, sandbox) < 0)
        return -1;
    return side_restore(bench, subject_client(sandbox->subject), &all[SIDE_USER]);
}

#define PROGRAM_WORDS 8

static int run_in_guest(struct bare_guest *guest, const char *const argv[PROGRAM_WORDS],
                        char text[TEXT_BYTES])
{
    _cleanup_(buf_done)
    struct buf output = { 0 };

    if (bare_guest_run(guest, argv, &output) < 0)
        return -1;
    (void)snprintf(text, TEXT_BYTES, "%s", buf_text(&output));
    return 0;
}

static int run_in_sandbox(const struct side *side, const char *const argv[PROGRAM_WORDS],
                          char text[TEXT_BYTES])
{
    _cleanup_(buf_done)
    struct buf reply = { 0 };
    _cleanup_free_ char *body = NULL;
    json_t *words = json_array(), *request;

    for (size_t i = 0; argv[i]; i++)
        (void)json_array_append_new(words, json_string(argv[i])); /* a short one fails there */
    request = json_pack("{s:s, s:o, s:i}", "sandbox_id", side->id, "argv", words, "timeout_ms",
                        EXEC_TIMEOUT_MS);
    body = request ? json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    if (!body ||
        bench_call(subject_client(side->subject), "sandbox::exec", body, NULL, &reply) < 0)
        return -1;
    return bench_text(&reply, "stdout", text, TEXT_BYTES);
}

static int side_measure(struct side *side, uint16_t port, unsigned mebibytes,
                        unsigned connections)
{
    char numbers[3][16], text[TEXT_BYTES], *next = text;
    const char *const argv[PROGRAM_WORDS] = { "python3",  "-c",       program,    GATEWAY,
                                              numbers[0], numbers[1], numbers[2], NULL };
    int result = 0;

    (void)snprintf(numbers[0], sizeof(numbers[0]), "%u", port);
    (void)snprintf(numbers[1], sizeof(numbers[1]), "%u", mebibytes);
    (void)snprintf(numbers[2], sizeof(numbers[2]), "%u", connections);
    if (!side->guest && !side->subject)
        return 0;
    result = side->guest ? run_in_guest(side->guest, argv, text)
                         : run_in_sandbox(side, argv, text);
    for (size_t i = 0; result == 0 && i < MEASURES; i++) {
        double rate = strtod(next, &next);

        result = rate <= 0 ? -1 : samples_add(&side->samples[i], rate);
    }
    return result;
}

static void side_report(struct bench *bench, enum side_id id, struct side *side)
{
    char name[64], against[64];

    for (size_t i = 0; i < MEASURES; i++) {
        (void)snprintf(name, sizeof(name), "%s.%s", sides[id].prefix, measures[i].name);
        (void)snprintf(against, sizeof(against), "%s.%s", sides[SIDE_USER].prefix,
                       measures[i].name);
        report_add(&bench->report, name, &side->samples[i], measures[i].unit,
                   sides[id].compared ? against : NULL);
        samples_done(&side->samples[i]);
    }
    bare_guest_free(side->guest);
    bare_stop(side->bare);
    subject_stop(side->subject);
}

int bench_network(struct bench *bench)
{
    static struct side all[SIDE_MAX];
    const unsigned mebibytes = bench->quick ? 8 : 64, connections = bench->quick ? 50 : 300;
    const int rounds = bench->quick ? 1 : 7;
    uint16_t port = 0;
    pid_t server = server_start(&port);
    int result = server < 0 ? -1 : sides_open(bench, port, all);

    for (int round = 0; result == 0 && round < rounds; round++) {
        for (size_t i = 0; result == 0 && i < SIDE_MAX; i++)
            result = side_measure(&all[(i + (size_t)round) % SIDE_MAX], port, mebibytes,
                                  connections);
    }
    for (enum side_id id = 0; id < SIDE_MAX; id++)
        side_report(bench, id, &all[id]);
    if (server > 0) {
        (void)kill(server, SIGKILL);
        (void)waitpid(server, NULL, 0);
    }
    return result;
}
