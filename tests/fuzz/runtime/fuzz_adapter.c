/* fuzz_adapter.c - a whole adapter under a hostile router: any messages in any order.
 *
 * The link is played here (sp_*, stream_dial), so that there are no threads and no sockets. The
 * input is a list of messages in a short form: see deliver(). */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "adapter.h"
#include "channel.h"
#include "envelope.h"
#include "idempotency.h"
#include "log.h"
#include "request.h"
#include "serve.h"
#include "sp.h"

/* The clock: waits are skipped. */

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

static time_t ahead_s;

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = __real_clock_gettime(clock, time);

    if (clock == CLOCK_MONOTONIC)
        time->tv_sec += ahead_s;
    return result;
}

/* The link. */

struct sp {
    const struct sp_events *events;
    void *ctx;
};

static struct sp link_object;
static bool connected;
static stream_dialed_fn dialed;
static void *dialed_ctx;

int stream_dial(struct loop *loop, const char *url, const struct tls_files *tls,
                uint32_t timeout_ms, stream_dialed_fn done, void *ctx,
                struct stream_dialer **ret_dialer)
{
    dialed = done;
    dialed_ctx = ctx;
    *ret_dialer = NULL;
    return 0;
}

void stream_dialer_free(struct stream_dialer *dialer)
{
}

int sp_new(struct loop *loop, struct stream *own_stream, enum sp_mapping mapping,
           size_t max_message_bytes, uint32_t handshake_timeout_ms,
           const struct sp_events *events, void *ctx, struct sp **ret_sp)
{
    link_object = (struct sp){ .events = events, .ctx = ctx };
    connected = true;
    *ret_sp = &link_object;
    return 0;
}

void sp_free(struct sp *sp)
{
    if (sp)
        connected = false;
}

int sp_sendv(struct sp *sp, const struct iovec *parts, int count)
{
    struct buf whole = { 0 };
    struct envelope envelope;
    const char *reason;

    for (int i = 0; i < count; i++)
        assert(buf_append(&whole, parts[i].iov_base, parts[i].iov_len) == 0);
    assert(envelope_decode(whole.data, whole.size, &envelope, &reason) == 0);
    buf_done(&whole);
    return 0;
}

int sp_send(struct sp *sp, const void *data, size_t size)
{
    return sp_sendv(sp, &(struct iovec){ (void *)data, size }, 1);
}

size_t sp_queued_bytes(const struct sp *sp)
{
    return 0;
}

void sp_set_max_message_bytes(struct sp *sp, size_t max_message_bytes)
{
}

void sp_finish(struct sp *sp, uint32_t linger_ms)
{
}

/* The back end: no machines; `hold::…` keeps requests and their channels. */

#define HELD_MAX 8
static struct request *held[HELD_MAX];
static struct channel *channels[HELD_MAX];

static void on_data(void *ctx, const uint8_t *data, size_t size)
{
    channel_grant(channels[(size_t)ctx], size);
}

static void on_writable(void *ctx)
{
    static const uint8_t bytes[100000];

    (void)channel_write(channels[(size_t)ctx], bytes, sizeof(bytes));
}

static void on_closed(void *ctx, bool clean, const char *reason)
{
    channel_free(take_ptr(channels[(size_t)ctx]));
}

static void on_made(void *ctx, const struct channel_ref *reader, struct sandbox_error *err)
{
    assert(!reader != !err);
}

static const struct channel_events channel_events = { on_data, on_writable, on_closed };

static bool own_operation(struct backend *backend, const char *operation,
                          struct request *request)
{
    struct channel_ref ref = { (char *)"c", (char *)"k", (char *)"read" };
    struct sandbox_error err = { 0 };
    size_t slot = request_id(request) % HELD_MAX;

    if (strncmp(operation, "hold", 4) != 0 || held[slot])
        return false;
    if (operation[4] == 'k' && !idempotency_admit(request))
        return true;
    if (operation[4] == 'r' && !channels[slot])
        (void)channel_open_reader(request_adapter(request), &ref, &channel_events, (void *)slot,
                                  &channels[slot], &err);
    if (operation[4] == 'w' && !channels[slot])
        (void)channel_create_writer(request_adapter(request), &channel_events, (void *)slot,
                                    on_made, &channels[slot], &err);
    sandbox_error_done(&err);
    held[slot] = request;
    return true;
}

static void backend_close(struct backend *backend)
{
}

static int backend_open(struct loop *loop, const struct settings *settings,
                        struct backend **ret_backend, struct sandbox_error *err)
{
    *ret_backend = (struct backend *)held;
    return 0;
}

static void backend_info(const struct backend *backend, struct backend_info *ret_info)
{
    *ret_info = (struct backend_info){ .name = "sandbox-fuzz", .version = "0" };
}

static const char *backend_installer(const struct backend *backend)
{
    return "false";
}

static const char *backend_flavor(const struct backend *backend)
{
    return "fuzz";
}

static int backend_start(struct backend *backend, const struct machine_spec *spec,
                         const struct machine_events *events, void *ctx,
                         struct machine **ret_machine, struct sandbox_error *err)
{
    return sandbox_error_set(err, S300, "no machines here");
}

static const struct backend_ops ops = { .open = backend_open,
                                        .close = backend_close,
                                        .info = backend_info,
                                        .installer = backend_installer,
                                        .image_flavor = backend_flavor,
                                        .machine_start = backend_start,
                                        .own_operation = own_operation };

/* The router. */

static struct loop *loop;
static struct adapter *adapter;

static void turns(void)
{
    for (int i = 0; i < 3; i++)
        assert(loop_turn(loop, 0) == 0);
}

static char directory[] = "/tmp/fuzz-adapter-XXXXXX";

static void stop(void)
{
    char command[128];

    adapter_free(adapter);
    loop_free(loop);
    (void)snprintf(command, sizeof(command), "rm -rf %s", directory);
    assert(system(command) == 0);
}

static void start(void)
{
    char path[128], error[ADAPTER_ERROR_MAX];
    FILE *file;

    assert(mkdtemp(directory));
    (void)snprintf(path, sizeof(path), "%s/settings.yaml", directory);
    file = fopen(path, "w");
    assert(file);
    fprintf(file,
            "sandbox: {adapter: sandbox-fuzz, runtime_dir: %s, settings: {auto_install: false,"
            " image_allowlist: [python], cache_dir: %s, state_dir: %s}}\n",
            directory, directory, directory);
    assert(fclose(file) == 0);
    log_init("fuzz", LOG_FORMAT_KEY_VALUE, LOG_ERROR);
    assert(loop_new(&loop) == 0);
    assert(adapter_new(loop,
                       &(struct adapter_options){
                           .ops = &ops, .config_path = path, .router_url = "ipc:///nowhere" },
                       &adapter, error) == 0);
    assert(atexit(stop) == 0);
}

static void say(const struct envelope *envelope)
{
    struct buf bytes = { 0 };

    assert(envelope_encode(envelope, &bytes) == 0);
    if (connected)
        link_object.events->message(link_object.ctx, bytes.data, bytes.size);
    buf_done(&bytes);
}

static void say_raw(struct span text)
{
    uint8_t *copy = malloc(text.size + 1);

    assert(copy);
    memcpy(copy, text.data, text.size);
    if (connected)
        link_object.events->message(link_object.ctx, copy, text.size);
    free(copy);
}

static void connect_router(void)
{
    ahead_s += 3; /* past any back-off */
    while (!dialed)
        assert(loop_turn(loop, 1000) == 0);
    stream_dialed_fn done = dialed;

    dialed = NULL;
    done(dialed_ctx, 0, NULL);
    link_object.events->ready(link_object.ctx);
}

static void welcome(void)
{
    say(&(struct envelope){ .kind = ENVELOPE_WELCOME,
                            .version = span_of_text("1"),
                            .has_contract = true,
                            .contract = { 1, 2 },
                            .docs_base = span_of_text("#"),
                            .max_message_bytes = 16 << 20,
                            .credit = 1000 });
}

static void end_held(unsigned slot)
{
    struct request *request = take_ptr(held[slot]);

    if (request)
        request_reply_json(request, "{}", 2);
    channel_free(take_ptr(channels[slot]));
}

/* Kinds that are no messages in the short form. */
enum { END_HELD = 30, RAW_MESSAGE = 31, DEED_MAX = 32 };

/* One message: a byte of kind (or deed), a byte of id, a byte of operation,
 * two bytes of size, and a body. */
static size_t deliver(const uint8_t *data, size_t size)
{
    static const char *const names[] = {
        "create",        "exec",
        "list",          "stop",
        "run",           "catalog::list",
        "fs::ls",        "fs::mkdir",
        "fs::rm",        "fs::sed",
        "fs::mv",        "fs::grep",
        "fs::write",     "fs::read",
        "fs::chmod",     "worker::list",
        "adapter::info", "hold",
        "holdk",         "holdr",
        "holdw",         "",
    };
    size_t body = size < 5 ? 0 : (size_t)(data[3] | data[4] << 8);

    if (size < 5)
        return size;
    if (body > size - 5)
        body = size - 5;
    struct span text = { (const char *)data + 5, body };
    struct envelope envelope = { .kind = data[0] % DEED_MAX,
                                 .id = data[1],
                                 .operation = span_of_text(names[data[2] % ARRAY_SIZE(names)]),
                                 .deadline_ms = ENVELOPE_NO_DEADLINE,
                                 .body = text,
                                 .credit = (uint64_t)data[2] * data[2],
                                 .channel_id = text,
                                 .access_key = text,
                                 .code = data[2] & 1 ? text : (struct span){ 0 },
                                 .message = text };

    if (envelope.kind < ENVELOPE_KIND_MAX && envelope.kind > ENVELOPE_REFUSED)
        say(&envelope);
    else if (envelope.kind == RAW_MESSAGE)
        say_raw(text);
    else if (envelope.kind == END_HELD)
        end_held(data[1] % HELD_MAX);
    else
        turns();
    return 5 + body;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!adapter)
        start();
    connect_router();
    welcome();
    while (size > 0 && connected) {
        size_t used = deliver(data, size);

        data += used;
        size -= used;
    }
    turns();
    for (unsigned slot = 0; slot < HELD_MAX; slot++)
        end_held(slot);
    if (connected)
        link_object.events->closed(link_object.ctx, 0, "closed");
    turns();
    assert(requests_count(adapter_requests(adapter)) == 0);
    return 0;
}
