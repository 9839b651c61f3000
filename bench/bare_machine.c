/* bare_machine.c - see bare_machine.h. */
#include "bare_machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "agent_frame.h"
#include "codec.h"
#include "mailbox.h"
#include "pack.h"
#include "proc.h"
#include "qemu_args.h"
#include "scratch.h"
#include "settings.h"
#include "template_file.h"

#define WAIT_MS 60000
#define PROGRAM "qemu-system-x86_64"
#define TRANSLATION_MB 64
#define PADDING_BYTES (60u * 1024)
#define PADDED_IN_FLIGHT 8u

/* What all of a kind start from. */
static struct source {
    bool looked;
    bool found;
    struct template_parts parts;
    int image_fd;
    char scratch[4096];
} sources[BARE_KIND_MAX];

struct bare {
    const struct source *source;
    pid_t pid;
    int pidfd;
    int qmp_fd;
    int agent_fd;
    int agent_peer_fd; /* QEMU's end, for the HELLO that the template's guest has said before */
    uint64_t next_id;
};

/* The source. */

static int find_cache(char ret_path[4096])
{
    char path[] = "/tmp/bench-settings.XXXXXX", error[SETTINGS_ERROR_MAX];
    static const char text[] = "sandbox: {adapter: sandbox-qemu}\n";
    struct settings *settings = NULL;
    int fd = mkstemp(path), result = -1;
    if (fd >= 0 && write(fd, text, sizeof(text) - 1) == (ssize_t)sizeof(text) - 1)
        result = settings_load(path, &settings, error);
    if (result == 0)
        snprintf(ret_path, 4096, "%s", settings->adapter.cache_dir);
    settings_free(settings);
    closep(&fd);
    (void)unlink(path); /* left in /tmp at worst */
    return result;
}

static int open_image(const char *cache, const char *image)
{
    char path[8192];
    int fd = -1;
    snprintf(path, sizeof(path), "%s/images", cache);
    DIR *folder = opendir(path);
    struct dirent *entry;
    while (fd < 0 && folder && (entry = readdir(folder))) {
        snprintf(path, sizeof(path), "%s/images/%.255s/image.json", cache, entry->d_name);
        json_t *description = json_load_file(path, 0, NULL);
        const char *name = json_string_value(json_object_get(description, "name"));
        if (name && strcmp(name, image) == 0) {
            snprintf(path, sizeof(path), "%s/images/%.255s/root.erofs", cache, entry->d_name);
            fd = open(path, O_RDONLY | O_CLOEXEC);
        }
        json_decref(description);
    }
    if (folder)
        (void)closedir(folder); /* read only */
    return fd;
}

/* The one used last before BEFORE; 0: there is none. */
static time_t next_newest(const char *folder_path, time_t before, char ret_name[128])
{
    DIR *folder = opendir(folder_path);
    struct dirent *entry;
    time_t used = 0;
    while (folder && (entry = readdir(folder))) {
        struct stat status;
        if (strlen(entry->d_name) != 64 ||
            fstatat(dirfd(folder), entry->d_name, &status, 0) < 0 ||
            status.st_mtime >= before || status.st_mtime <= used)
            continue;
        used = status.st_mtime;
        snprintf(ret_name, 128, "%.100s", entry->d_name);
    }
    if (folder)
        (void)closedir(folder); /* read only */
    return used;
}

/* The newest that fits. */
static bool load_template(const char *cache, struct source *source)
{
    const atomic_bool go_on = false;
    char path[4200], name[128];
    const char *reason;
    time_t used = time(NULL) + 1;
    snprintf(path, sizeof(path), "%s/templates", cache);
    while ((used = next_newest(path, used, name)) > 0)
        if (template_file_read(path, name, (uint64_t)BENCH_MEMORY_MB << 20, UINT64_MAX >> 1,
                               source->scratch, &go_on, &source->parts, &reason) == 0)
            return true;
    return false;
}

bool bare_possible(struct bench *bench, enum bare_kind kind)
{
    struct source *source = &sources[kind];
    char cache[4096];
    if (source->looked)
        return source->found;
    *source = (struct source){ .looked = true, .parts = TEMPLATE_NO_PARTS, .image_fd = -1 };
    if (find_cache(cache) < 0)
        return false;
    snprintf(source->scratch, sizeof(source->scratch), "%.4000s/scratch", cache);
    source->image_fd = open_image(cache, bench->image);
    source->found = source->image_fd >= 0 && load_template(cache, source);
    if (!source->found)
        fprintf(stderr, "sandbox-bench: no kept template of %u MiB: no bare rows\n",
                BENCH_MEMORY_MB);
    return source->found;
}

/* The monitor. */

static int qmp_send(const struct bare *bare, const char *text)
{
    return send(bare->qmp_fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text) ? 0
                                                                                         : -1;
}

static int qmp_await(const struct bare *bare, const char *word)
{
    struct pollfd monitor = { .fd = bare->qmp_fd, .events = POLLIN };
    char text[16384];
    size_t size = 0;
    while (size + 1 < sizeof(text) && poll(&monitor, 1, WAIT_MS) == 1) {
        ssize_t got = recv(bare->qmp_fd, text + size, sizeof(text) - 1 - size, 0);
        if (got <= 0)
            return -1;
        size += (size_t)got;
        text[size] = '\0';
        if (strstr(text, word))
            return 0;
    }
    return -1;
}

static int bare_restore(const struct bare *bare)
{
    static const char load[] =
        "{\"execute\":\"qmp_capabilities\"}"
        "{\"execute\":\"migrate-set-capabilities\",\"arguments\":{\"capabilities\":["
        "{\"capability\":\"x-ignore-shared\",\"state\":true},"
        "{\"capability\":\"events\",\"state\":true}]}}"
        "{\"execute\":\"migrate-incoming\",\"arguments\":{\"uri\":\"fd:10\"}}";
    _Static_assert(QEMU_FD_STATE == 10, "the uri names it");
    if (qmp_send(bare, load) < 0 || qmp_await(bare, "\"completed\"") < 0)
        return -1;
    return qmp_send(bare, "{\"execute\":\"cont\"}");
}

/* The process. */

/* The adapter's machine but for the other end of its interface: QEMU's own network. */
static int build_arguments(struct bench *bench, enum bare_kind kind, struct text_list *to)
{
    const struct qemu_args_spec spec = {
        .program = PROGRAM,
        .mode = QEMU_CLONE,
        .shape = { .cpus = 1, .memory_mb = BENCH_MEMORY_MB, .network = kind == BARE_NETWORK },
        .accel = { .kind = strcmp(bench->acceleration, "kvm") == 0 ? ACCEL_KVM : ACCEL_TCG },
        .translation_mb = TRANSLATION_MB,
    };
    int ret = qemu_args_build(&spec, to);
    for (size_t i = 0; ret == 0 && i < to->count; i++) {
        if (strncmp(to->items[i], "dgram,", strlen("dgram,")) != 0)
            continue;
        free(to->items[i]);
        to->items[i] = strdup("user,id=net,ipv6=off");
        ret = to->items[i] ? 0 : -1;
    }
    return ret;
}

static int spawn(struct bare *bare, struct bench *bench, enum bare_kind kind, int qmp_fd,
                 int disk_fd, int state_fd)
{
    _cleanup_close_ int mailbox_fd = mailbox_memory_new(); /* nobody here uses it */
    const struct proc_fd fds[] = {
        { qmp_fd, QEMU_FD_QMP },         { bare->agent_peer_fd, QEMU_FD_AGENT },
        { disk_fd, QEMU_FD_DISK },       { bare->source->image_fd, QEMU_FD_IMAGE },
        { state_fd, QEMU_FD_STATE },     { bare->source->parts.memory_fd, QEMU_FD_MEMORY },
        { mailbox_fd, QEMU_FD_MAILBOX },
    };
    struct text_list arguments = { 0 };
    int ret = build_arguments(bench, kind, &arguments);
    char **argv = ret == 0 ? calloc(arguments.count + 1, sizeof(*argv)) : NULL;
    if (!argv || mailbox_fd < 0) {
        text_list_done(&arguments);
        free(argv);
        return -1;
    }
    memcpy(argv, arguments.items, arguments.count * sizeof(*argv));
    ret = proc_spawn(&(struct proc_spec){ .program = PROGRAM,
                                          .argv = (const char *const *)argv,
                                          .fds = fds,
                                          .fd_count = ARRAY_SIZE(fds),
                                          .die_with_parent = true },
                     &bare->pid, &bare->pidfd);
    text_list_done(&arguments);
    free(argv);
    return ret;
}

static int launch(struct bare *bare, struct bench *bench, enum bare_kind kind)
{
    _cleanup_close_ int qmp_fd = -1, disk_fd = -1, state_fd = -1;
    char state_path[32];
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    bare->qmp_fd = pair[0];
    qmp_fd = pair[1];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    bare->agent_fd = pair[0];
    bare->agent_peer_fd = pair[1];
    snprintf(state_path, sizeof(state_path), "/proc/self/fd/%d", bare->source->parts.state_fd);
    state_fd = open(state_path, O_RDONLY | O_CLOEXEC);
    if (state_fd < 0 ||
        scratch_copy(bare->source->parts.disk_fd, bare->source->scratch, &disk_fd) < 0 ||
        spawn(bare, bench, kind, qmp_fd, disk_fd, state_fd) < 0)
        return -1;
    return bare_restore(bare);
}

int bare_start(struct bench *bench, enum bare_kind kind, double *ret_ms, struct bare **ret_bare)
{
    _cleanup_(bare_stopp)
    struct bare *bare = calloc(1, sizeof(*bare));
    double start = bench_now_ms();
    if (!bare)
        return -1;
    *bare = (struct bare){
        .source = &sources[kind], .pidfd = -1, .qmp_fd = -1, .agent_fd = -1, .agent_peer_fd = -1
    };
    if (launch(bare, bench, kind) < 0 || bare_ping(bare) < 0) {
        fprintf(stderr, "sandbox-bench: a bare machine does not start\n");
        return -1;
    }
    *ret_ms = bench_now_ms() - start;
    *ret_bare = take_ptr(bare);
    return 0;
}

void bare_stop(struct bare *bare)
{
    if (!bare)
        return;
    if (bare->pid > 0) {
        (void)proc_pidfd_signal(bare->pidfd, SIGKILL); /* it may have ended by itself */
        (void)waitpid(bare->pid, NULL, 0);             /* our child */
    }
    closep(&bare->pidfd);
    closep(&bare->qmp_fd);
    closep(&bare->agent_fd);
    closep(&bare->agent_peer_fd);
    free(bare);
}

int bare_take_agent(struct bare *bare)
{
    const struct buf *hello = &bare->source->parts.hello;
    bool told = send(bare->agent_peer_fd, hello->data, hello->size, MSG_NOSIGNAL) ==
                (ssize_t)hello->size;
    closep(&bare->agent_peer_fd);
    return told ? take_fd(&bare->agent_fd) : -1;
}

/* The channel. */

/* A PING; elements behind the second are read over by the agent. */
static int put_ping(struct bare *bare, struct buf *to, size_t padding)
{
    static const uint8_t nothing[PADDING_BYTES];
    uint8_t prefix[AGENT_FRAME_PREFIX_BYTES] = { 0 };
    size_t start = to->size, size;
    if (buf_append(to, prefix, sizeof(prefix)) < 0 || pack_array(to, padding > 0 ? 3 : 2) < 0 ||
        pack_uint(to, AGENT_FRAME_PING) < 0 || pack_uint(to, bare->next_id++) < 0 ||
        (padding > 0 && pack_bytes(to, nothing, padding) < 0))
        return -1;
    size = to->size - start - sizeof(prefix);
    for (size_t i = 0; i < sizeof(prefix); i++)
        to->data[start + i] = (uint8_t)(size >> 8 * i);
    return 0;
}

/* Takes whole frames out of IN; how many of them were PONG. */
static size_t take_pongs(struct buf *in)
{
    size_t at = 0, pongs = 0;
    while (in->size - at >= AGENT_FRAME_PREFIX_BYTES) {
        size_t size = agent_frame_size(in->data + at);
        struct agent_frame frame;
        const char *reason;
        if (in->size - at - AGENT_FRAME_PREFIX_BYTES < size)
            break;
        at += AGENT_FRAME_PREFIX_BYTES;
        pongs += agent_frame_decode(in->data + at, size, &frame, &reason) == 0 &&
                 frame.kind == AGENT_FRAME_PONG;
        at += size;
    }
    buf_consume(in, at);
    return pongs;
}

/* COUNT PINGs of PADDING bytes, IN_FLIGHT at once. 0, or -1. */
static int exchange(struct bare *bare, size_t count, size_t padding, size_t in_flight)
{
    _cleanup_(buf_done)
    struct buf out = { 0 }, in = { 0 };
    size_t begun = 0, done = 0;
    while (done < count) {
        while (begun < count && begun - done < in_flight && out.size < padding * in_flight + 64)
            if (put_ping(bare, &out, padding) < 0 || ++begun == 0)
                return -1;
        struct pollfd port = { .fd = bare->agent_fd,
                               .events = (short)(POLLIN | (out.size > 0 ? POLLOUT : 0)) };
        uint8_t bytes[4096];
        if (poll(&port, 1, WAIT_MS) != 1)
            return -1;
        ssize_t size = port.revents & POLLOUT ? send(bare->agent_fd, out.data, out.size,
                                                     MSG_NOSIGNAL | MSG_DONTWAIT)
                                              : 0;
        if (size > 0)
            buf_consume(&out, (size_t)size);
        size = port.revents & ~POLLOUT ? recv(bare->agent_fd, bytes, sizeof(bytes), 0) : 1;
        if (size <= 0 || (port.revents & ~POLLOUT && buf_append(&in, bytes, (size_t)size) < 0))
            return -1;
        done += take_pongs(&in);
    }
    return 0;
}

double bare_ping(struct bare *bare)
{
    double start = bench_now_ms();
    return exchange(bare, 1, 0, 1) == 0 ? bench_now_ms() - start : -1;
}

double bare_channel(struct bare *bare, size_t total)
{
    double start = bench_now_ms();
    if (exchange(bare, total / PADDING_BYTES, PADDING_BYTES, PADDED_IN_FLIGHT) < 0)
        return 0;
    return (double)(total / PADDING_BYTES * PADDING_BYTES) / 1048576 /
           (bench_now_ms() - start) * 1000;
}
