/* faults.c - what each fault does to the calls that it fits (script.h says which). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "adapter.h"
#include "json_scan.h"
#include "log.h"
#include "mock.h"
#include "older.h"
#include "uuid.h"

#define OWN_OPERATION "fault"
#define RECONNECT_MS 50
#define DETERMINISTIC_START 1700000000 /* of the wall clock */

/* A call that waits, or that is to be dropped when its hook has returned. */
struct held_call {
    struct list node;
    struct backend *backend;
    struct request *request;
    struct loop_timer *timer;
    void (*after)(struct request *request);
};

static void held_free(struct held_call *held)
{
    list_remove(&held->node);
    loop_timer_free(held->timer);
    free(held);
}

static void held_passed(void *ctx)
{
    struct held_call *held = ctx;
    struct request *request = held->request;
    void (*after)(struct request * request) = held->after;

    held_free(held);
    after(request);
}

/* Calls AFTER in so many milliseconds; 0: as soon as the loop turns. False: no memory. */
static bool hold(struct backend *backend, struct request *request, uint64_t ms,
                 void (*after)(struct request *request))
{
    struct held_call *held = calloc(1, sizeof(*held));

    if (!held)
        return false;
    *held = (struct held_call){ .backend = backend, .request = request, .after = after };
    list_append(&backend->held, &held->node);
    if (loop_timer_new(backend->loop, held_passed, held, &held->timer) < 0) {
        held_free(held);
        return false;
    }
    loop_timer_arm(held->timer, ms);
    return true;
}

static void die(void)
{
    log_event(LOG_WARN, "fault_die", log_int("pid", getpid()));
    (void)kill(getpid(), SIGKILL); /* as a crash would, with nothing tidied up */
}

static void write_to_stderr(uint64_t bytes)
{
    static const char line[] =
        "a line of the fault `stderr`, to see that whoever reads this keeps up .............\n";

    while (bytes > 0) {
        const size_t size = bytes < sizeof(line) - 1 ? (size_t)bytes : sizeof(line) - 1;

        if (write(STDERR_FILENO, line, size) < 0)
            return;
        bytes -= size;
    }
}

/* Hooks. */

/* False: no string, or one that does not fit. */
static bool text_of(struct span value, char *to, size_t size)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    bool fits;

    if (!value.data || json_string_decode(value, &text) < 0)
        return false;
    fits = text.size < size;
    if (fits)
        (void)snprintf(to, size, "%s", buf_text(&text));
    return fits;
}

static void fault_error(struct request *request, const struct rule *rule)
{
    struct sandbox_error err = { 0 };

    (void)sandbox_error_set(&err, rule->code, "%s", rule->message);
    sandbox_error_set_outcome(&err, rule->outcome);
    request_fail(request, &err);
}

/* The runtime asks the guest to end before it has the machine killed. A machine that cannot be
 * killed does not hear that either. */
static void freeze_for_stop(struct backend *backend, struct request *request)
{
    char text[64], id[UUID_TEXT_BYTES];
    struct span value;
    const char *json;
    size_t size;

    json = request_json(request, &size);
    if (json_scan(json, size, &value, NULL) == 0 && json_kind(value) == JSON_OBJECT &&
        text_of(json_get(value, "sandbox_id"), text, sizeof(text)) && uuid_parse(text, id) == 0)
        mock_machine_freeze(backend, id);
}

static bool fault_called(void *ctx, struct request *request, const char *operation)
{
    struct backend *backend = ctx;
    struct rule rule;

    if (strcmp(operation, OWN_OPERATION) == 0)
        return false;
    if (strcmp(operation, "stop") == 0 &&
        script_waits(&backend->script, FAULT_REFUSE_STOP, operation))
        freeze_for_stop(backend, request);
    if (script_find(&backend->script, FAULT_DIE, FAULT_BEFORE, operation, &rule))
        die();
    if (script_find(&backend->script, FAULT_DISCONNECT, FAULT_BEFORE, operation, &rule)) {
        fault_disconnect(request_adapter(request));
        request_drop(request);
        return true;
    }
    if (script_find(&backend->script, FAULT_SILENT, FAULT_BEFORE, operation, &rule)) {
        request_drop(request);
        return true;
    }
    if (script_find(&backend->script, FAULT_ERROR, FAULT_BEFORE, operation, &rule)) {
        fault_error(request, &rule);
        return true;
    }
    if (script_find(&backend->script, FAULT_SLOW, FAULT_BEFORE, operation, &rule))
        return hold(backend, request, rule.ms, fault_go_on);
    return false;
}

static void send_garbage(struct request *request)
{
    static const uint8_t garbage[] = { 0xc1, 0xff, 0x00, 'n', 'o', 't', ' ', 'm', 's', 'g' };

    fault_send_raw(request_adapter(request), garbage, sizeof(garbage));
}

/* Rewrites the answer as the version that is played would give it. */
static void translate(const struct backend *backend, const char *operation, struct buf *body)
{
    struct buf translated = { 0 };

    if (backend->minor >= CONTRACT_MINOR && !backend->extra_keys)
        return;
    if (older_answer(operation_find(operation, strlen(operation)), (const char *)body->data,
                     body->size, backend->minor, backend->extra_keys, &translated) < 0) {
        buf_done(&translated);
        return;
    }
    buf_done(body);
    *body = translated;
}

static bool fault_answering(void *ctx, struct request *request, const char *operation,
                            struct buf *body)
{
    struct backend *backend = ctx;
    struct rule rule;

    if (strcmp(operation, OWN_OPERATION) == 0)
        return false;
    translate(backend, operation, body);
    if (script_find(&backend->script, FAULT_DIE, FAULT_AFTER, operation, &rule))
        die();
    if (script_find(&backend->script, FAULT_GARBAGE, FAULT_AFTER, operation, &rule)) {
        send_garbage(request);
        return hold(backend, request, 0, request_drop);
    }
    if (script_find(&backend->script, FAULT_DISCONNECT, FAULT_AFTER, operation, &rule)) {
        fault_disconnect(request_adapter(request));
        return hold(backend, request, 0, request_drop);
    }
    if (script_find(&backend->script, FAULT_SILENT, FAULT_AFTER, operation, &rule))
        return hold(backend, request, 0, request_drop);
    if (script_find(&backend->script, FAULT_SLOW, FAULT_AFTER, operation, &rule))
        return hold(backend, request, rule.ms, fault_answer);
    return false;
}

static void fault_hello(void *ctx, struct envelope *hello)
{
    struct backend *backend = ctx;

    hello->contract = (struct contract_version){ backend->major, backend->minor };
    if (backend->minor < CONTRACT_MINOR)
        hello->feature_count = 0;
    if (backend->extra_keys && hello->feature_count < ENVELOPE_FEATURES_MAX)
        hello->features[hello->feature_count++] = span_of_text("x-future");
}

static bool fault_quiet(void *ctx)
{
    struct backend *backend = ctx;

    return loop_now_ms(backend->loop) < backend->mute_until_ms;
}

static bool fault_received(void *ctx, enum envelope_kind kind)
{
    return fault_quiet(ctx);
}

/* Deterministic: the first sandbox is always 00000000-0000-4000-8000-000000000001. */
static bool fault_identify(void *ctx, char ret_id[UUID_TEXT_BYTES])
{
    struct backend *backend = ctx;

    if (!backend->deterministic)
        return false;
    (void)snprintf(ret_id, UUID_TEXT_BYTES, "00000000-0000-4000-8000-%012llx",
                   (unsigned long long)++backend->ids & 0xffffffffffffull);
    return true;
}

static bool fault_clock(void *ctx, int64_t *ret_seconds)
{
    struct backend *backend = ctx;

    if (!backend->deterministic)
        return false;
    *ret_seconds = DETERMINISTIC_START + (int64_t)backend->ids;
    return true;
}

/* Rules. */

static void play_version(struct backend *backend, uint32_t major, uint32_t minor,
                         bool extra_keys)
{
    backend->major = major;
    backend->minor = minor;
    backend->extra_keys = extra_keys;
}

static void clear(struct backend *backend)
{
    script_clear(&backend->script);
    play_version(backend, CONTRACT_MAJOR, CONTRACT_MINOR, false);
    backend->mute_until_ms = 0;
    backend->deterministic = false;
    backend->ids = 0;
}

/* 0 or -errno. What takes effect at once is not put into the list. */
static int rule_apply(struct backend *backend, const struct rule *rule)
{
    log_event(LOG_INFO, "fault", log_text("kind", fault_name(rule->kind)),
              log_text("op", rule->operation));
    switch (rule->kind) {
    case FAULT_CLEAR:
        clear(backend);
        return 0;
    case FAULT_CONTRACT:
        play_version(backend, rule->major, rule->minor, rule->extra_keys);
        return 0;
    case FAULT_DETERMINISTIC:
        backend->deterministic = true;
        return 0;
    case FAULT_MUTE:
        backend->mute_until_ms = loop_now_ms(backend->loop) + rule->ms;
        return 0;
    case FAULT_STDERR:
        write_to_stderr(rule->bytes);
        return 0;
    default:
        return script_add(&backend->script, rule);
    }
}

int mock_faults_add(struct backend *backend, const char *json, size_t size,
                    struct sandbox_error *err)
{
    char why[SCRIPT_WHY_BYTES] = "no JSON object";
    struct rule rule = { 0 };
    struct span value;
    int result;

    if (json_scan(json, size, &value, NULL) < 0 || rule_parse(value, &rule, why) < 0)
        return sandbox_error_set(err, S001, "fault: %s", why);
    result = rule_apply(backend, &rule);
    if (result == -ENOSPC)
        return sandbox_error_set(err, S400, "at most %u faults may wait", SCRIPT_RULES_MAX);
    return result < 0 ? sandbox_error_set(err, S300, "fault: %s", strerror(-result)) : 0;
}

/* A new version shows with the next HELLO. The answer is given time to get away first. */
static void reconnect(void *ctx)
{
    struct backend *backend = ctx;

    fault_disconnect(backend->adapter);
}

void mock_faults_serve(struct backend *backend, struct request *request)
{
    const uint32_t major = backend->major, minor = backend->minor;
    struct sandbox_error err = { 0 };
    char reply[64];
    const char *json;
    size_t size;

    backend->adapter = request_adapter(request);
    json = request_json(request, &size);
    if (mock_faults_add(backend, json, size, &err) < 0) {
        request_fail(request, &err);
        return;
    }
    (void)snprintf(reply, sizeof(reply), "{\"waiting\":%zu}", backend->script.count);
    request_reply_json(request, reply, strlen(reply));
    if (major != backend->major || minor != backend->minor)
        loop_timer_arm(backend->reconnect, RECONNECT_MS);
}

int mock_faults_init(struct backend *backend)
{
    list_init(&backend->held);
    script_init(&backend->script);
    clear(backend);
    backend->hooks = (struct fault){
        .hello = fault_hello,
        .received = fault_received,
        .quiet = fault_quiet,
        .called = fault_called,
        .answering = fault_answering,
        .identify = fault_identify,
        .clock = fault_clock,
        .ctx = backend,
    };
    return loop_timer_new(backend->loop, reconnect, backend, &backend->reconnect);
}

void mock_faults_done(struct backend *backend)
{
    LIST_FOREACH(node, &backend->held)
    held_free(LIST_ENTRY(node, struct held_call, node));
    script_clear(&backend->script);
    loop_timer_free(take_ptr(backend->reconnect));
}
