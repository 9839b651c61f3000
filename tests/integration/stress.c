/* stress.c - exec and file streams under load, against a real adapter (contract 5.2, 9):
 *
 *   stress ADAPTER [execs=N] [output_mib=N] [stream_mib=N] [growth_mib=N] [create_ms=N]
 *
 * Short execs that leave orphans lose no byte and no exit code; output of any size does not
 * stall; stdin arrives whole or is refused by name; files go both ways while router, adapter
 * and guest agent stay small. Prints one TAP line a check. */

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base64.h"
#include "proc.h"
#include "stress_memory.h"
#include "subject.h"

#define WAIT_MS 600000u
#define IN_FLIGHT 4 /* max_concurrent_exec_per_sandbox */
#define MIB (1024u * 1024)
#define CREATES 15

struct stress {
    struct native_client *client;
    struct subject *subject;
    char sandbox[64];
    unsigned checks;
    unsigned failures;
    unsigned execs;
    unsigned output_mib;
    unsigned stream_mib;
    unsigned growth_mib; /* of router, adapter and agent during the streams; 0: not judged */
    unsigned create_ms;  /* the quickest of some must be below; 0: not judged */
};

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void ok(struct stress *stress, bool right, const char *text)
{
    printf("%sok %u - %s\n", right ? "" : "not ", ++stress->checks, text);
    stress->failures += !right;
    (void)fflush(stdout); /* for whoever watches */
}

/* Calls. */

static struct native_call *start(struct stress *stress, const char *function, const char *body)
{
    struct native_call *call = NULL;
    if (native_call_start(stress->client, function, body, strlen(body), &call) < 0)
        return NULL;
    return call;
}

/* The answer's body, whichever it is; NULL: none came. */
static json_t *await(struct native_call *own_call, bool *ret_reply)
{
    _cleanup_(native_call_freep)
    struct native_call *call = own_call;
    size_t size;
    if (!call || native_call_wait(call, WAIT_MS) < 0)
        return NULL;
    const char *text = native_call_body(call, &size);
    *ret_reply = native_call_ok(call);
    return json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

static json_t *ask(struct stress *stress, const char *function, const char *body)
{
    bool reply = false;
    json_t *value = await(start(stress, function, body), &reply);
    if (reply)
        return value;
    const char *message = json_string_value(json_object_get(value, "message"));
    printf("# %s: %s\n", function, message ? message : "no answer");
    json_decref(value);
    return NULL;
}

static const char *text_at(const json_t *value, const char *key)
{
    const char *text = json_string_value(json_object_get(value, key));
    return text ? text : "";
}

/* Runs a shell line in the sandbox; its standard output, "" on any failure. */
static char *shell(struct stress *stress, const char *line)
{
    json_t *request = json_pack("{s:s, s:[s, s, s]}", "sandbox_id", stress->sandbox, "argv",
                                "/bin/sh", "-c", line);
    char *body = json_dumps(request, JSON_COMPACT);
    json_t *reply = ask(stress, "sandbox::exec", body);
    char *out = strdup(text_at(reply, "stdout"));
    free(body);
    json_decref(request);
    json_decref(reply);
    return out;
}

/* Short execs: each leaves two orphans, one that has ended and one that lives on a little. */

static struct native_call *start_short(struct stress *stress, unsigned number)
{
    char body[512];
    snprintf(body, sizeof(body),
             "{\"sandbox_id\":\"%s\",\"argv\":[\"/bin/sh\",\"-c\","
             "\"echo out %u; echo err %u >&2; (sleep 0.05 &) ; (true &) ; exit %u\"]}",
             stress->sandbox, number, number, number % 126);
    return start(stress, "sandbox::exec", body);
}

static bool is_short_right(const json_t *reply, unsigned number)
{
    char out[32], err[32];
    snprintf(out, sizeof(out), "out %u\n", number);
    snprintf(err, sizeof(err), "err %u\n", number);
    return strcmp(text_at(reply, "stdout"), out) == 0 &&
           strcmp(text_at(reply, "stderr"), err) == 0 &&
           json_integer_value(json_object_get(reply, "exit_code")) == (json_int_t)number % 126;
}

static void short_execs(struct stress *stress)
{
    struct native_call *calls[IN_FLIGHT] = { 0 };
    unsigned wrong = 0;
    uint64_t began_ms = now_ms();
    for (unsigned i = 0; i < stress->execs + IN_FLIGHT; i++) {
        unsigned slot = i % IN_FLIGHT;
        bool reply = false;
        json_t *value = calls[slot] ? await(calls[slot], &reply) : NULL;
        if (i >= IN_FLIGHT && (!reply || !is_short_right(value, i - IN_FLIGHT))) {
            char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
            printf("# exec %u: %.300s\n", i - IN_FLIGHT, text ? text : "no answer");
            free(text);
            wrong++;
        }
        json_decref(value);
        calls[slot] = i < stress->execs ? start_short(stress, i) : NULL;
    }
    printf("# %u execs in %llu ms\n", stress->execs, (unsigned long long)(now_ms() - began_ms));
    ok(stress, wrong == 0, "short execs lose no output byte and no exit code");
    char *zombies = shell(stress, "sleep 0.3; cat /proc/[0-9]*/stat | grep -c ') Z '");
    ok(stress, strcmp(zombies, "0\n") == 0, "all orphans are reaped");
    free(zombies);
}

/* Output. */

static void large_output(struct stress *stress, const char *redirection, const char *key)
{
    char body[512], text[96];
    unsigned long long bytes = (unsigned long long)stress->output_mib * MIB;
    snprintf(body, sizeof(body),
             "{\"sandbox_id\":\"%s\",\"argv\":[\"/bin/sh\",\"-c\","
             "\"head -c %llu /dev/zero | tr '\\\\0' x %s\"]}",
             stress->sandbox, bytes, redirection);
    json_t *reply = ask(stress, "sandbox::exec", body);
    snprintf(text, sizeof(text), "%u MiB on %s do not stall", stress->output_mib, key);
    ok(stress,
       json_string_length(json_object_get(reply, key)) == MIB &&
           json_integer_value(json_object_get(reply, "exit_code")) == 0 &&
           json_is_true(json_object_get(reply, "success")),
       text);
    json_decref(reply);
}

/* Both pipes at once, and the other one last: whoever reads one after the other hangs. */
static void both_outputs(struct stress *stress)
{
    char body[512];
    snprintf(body, sizeof(body),
             "{\"sandbox_id\":\"%s\",\"argv\":[\"/bin/sh\",\"-c\","
             "\"head -c %u /dev/zero >&2 & head -c %u /dev/zero; wait; exit 7\"]}",
             stress->sandbox, stress->output_mib / 2 * MIB, stress->output_mib / 2 * MIB);
    json_t *reply = ask(stress, "sandbox::exec", body);
    ok(stress,
       json_is_true(json_object_get(reply, "stdout_truncated")) &&
           json_is_true(json_object_get(reply, "stderr_truncated")) &&
           json_integer_value(json_object_get(reply, "exit_code")) == 7,
       "both streams at once do not stall");
    json_decref(reply);
}

/* Standard input. What is beyond a message: test_large_request.c. */

static char *stdin_body(struct stress *stress, size_t size)
{
    _cleanup_free_ char *bytes = malloc(size);
    _cleanup_(buf_done)
    struct buf body = { 0 };
    size_t body_size;
    if (!bytes)
        return NULL;
    memset(bytes, 'i', size);
    int ret = buf_printf(&body, "{\"sandbox_id\":\"%s\",\"cmd\":\"wc -c\",\"stdin\":\"",
                         stress->sandbox);
    if (ret == 0)
        ret = base64_encode(&body, bytes, size);
    if (ret == 0)
        ret = buf_append(&body, "\"}", sizeof("\"}"));
    return ret == 0 ? (char *)buf_take(&body, &body_size) : NULL;
}

static void standard_input(struct stress *stress)
{
    bool reply = false;
    char *whole = stdin_body(stress, 2 * MIB), *more = stdin_body(stress, 2 * MIB + 1);
    json_t *value = ask(stress, "sandbox::exec", whole);
    ok(stress, strtoul(text_at(value, "stdout"), NULL, 10) == 2 * MIB,
       "2 MiB of stdin arrive whole");
    json_decref(value);
    value = await(start(stress, "sandbox::exec", more), &reply);
    ok(stress,
       !reply && strcmp(text_at(value, "code"), "S001") == 0 &&
           strstr(text_at(value, "message"), "2097152"),
       "one byte more is refused with the limit's value");
    json_decref(value);
    free(whole);
    free(more);
}

/* Files. */

static struct native_stream *attach(struct stress *stress, const json_t *ref, bool write)
{
    struct native_stream *stream = NULL;
    (void)native_stream_open(stress->client, text_at(ref, "channel_id"),
                             text_at(ref, "access_key"), write, &stream); /* NULL then */
    return stream;
}

static void fill(uint8_t *to, size_t size, uint64_t offset)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)(((offset + i) * 0x9e3779b97f4a7c15u) >> 40);
}

static bool upload(struct stress *stress, uint64_t bytes)
{
    uint8_t chunk[65536];
    bool reply = false;
    json_t *refs = ask(stress, "engine::channels::create", "{}");
    json_t *request = json_pack("{s:s, s:s, s:O}", "sandbox_id", stress->sandbox, "path",
                                "/root/big", "content", json_object_get(refs, "reader"));
    char *body = json_dumps(request, JSON_COMPACT);
    struct native_call *call = body ? start(stress, "sandbox::fs::write", body) : NULL;
    struct native_stream *stream = attach(stress, json_object_get(refs, "writer"), true);
    int ret = stream ? 0 : -1;
    for (uint64_t sent = 0; ret == 0 && sent < bytes; sent += sizeof(chunk)) {
        fill(chunk, sizeof(chunk), sent);
        ret = native_stream_write(stream, chunk, sizeof(chunk), WAIT_MS);
    }
    if (ret == 0)
        ret = native_stream_close(stream);
    json_t *value = await(call, &reply);
    bool right = ret == 0 && reply &&
                 json_integer_value(json_object_get(value, "bytes_written")) ==
                     (json_int_t)bytes;
    if (!right)
        printf("# sending: %d; %s %s\n", ret, text_at(value, "code"),
               text_at(value, "message"));
    native_stream_free(stream);
    json_decref(value);
    free(body);
    json_decref(request);
    json_decref(refs);
    return right;
}

static bool download(struct stress *stress, uint64_t bytes)
{
    uint8_t chunk[65536], expected[65536];
    char body[256];
    uint64_t got = 0;
    ssize_t count = -1;
    bool right = true;
    snprintf(body, sizeof(body), "{\"sandbox_id\":\"%s\",\"path\":\"/root/big\"}",
             stress->sandbox);
    json_t *reply = ask(stress, "sandbox::fs::read", body);
    struct native_stream *stream = attach(stress, json_object_get(reply, "content"), false);
    while (stream && (count = native_stream_read(stream, chunk, sizeof(chunk), WAIT_MS)) > 0) {
        fill(expected, (size_t)count, got);
        right = right && memcmp(chunk, expected, (size_t)count) == 0;
        got += (uint64_t)count;
    }
    native_stream_free(stream);
    json_decref(reply);
    return right && count == 0 && got == bytes;
}

static void files(struct stress *stress)
{
    uint64_t bytes = (uint64_t)stress->stream_mib * MIB;
    struct stress_memory memory;
    char text[128];
    bool measured = stress_memory_begin(subject_router_pid(stress->subject), &memory);
    uint64_t began_ms = now_ms();
    snprintf(text, sizeof(text), "%u MiB go up", stress->stream_mib);
    ok(stress, upload(stress, bytes), text);
    snprintf(text, sizeof(text), "%u MiB come down as they were", stress->stream_mib);
    ok(stress, download(stress, bytes), text);
    printf("# up and down in %llu ms\n", (unsigned long long)(now_ms() - began_ms));
    long growth_kib = measured ? stress_memory_growth_kib(&memory, stdout) : -1;
    if (stress->growth_mib > 0)
        ok(stress, measured && growth_kib < (long)stress->growth_mib * 1024,
           "router, adapter and what runs below it stay small meanwhile");
}

/* Create. */

static void creates(struct stress *stress)
{
    uint64_t quickest_ms = UINT64_MAX;
    for (unsigned i = 0; i < CREATES; i++) {
        char body[128];
        uint64_t began_ms = now_ms();
        json_t *reply = ask(stress, "sandbox::create", "{\"image\":\"python\"}");
        uint64_t took_ms = now_ms() - began_ms;
        if (took_ms < quickest_ms)
            quickest_ms = took_ms;
        snprintf(body, sizeof(body), "{\"sandbox_id\":\"%s\"}", text_at(reply, "sandbox_id"));
        json_decref(reply);
        json_decref(ask(stress, "sandbox::stop", body));
    }
    printf("# the quickest of %u creates took %llu ms\n", CREATES,
           (unsigned long long)quickest_ms);
    ok(stress, quickest_ms < stress->create_ms, "a sandbox is there in milliseconds");
}

static bool take_argument(struct stress *stress, const char *argument)
{
    return sscanf(argument, "execs=%u", &stress->execs) == 1 ||
           sscanf(argument, "output_mib=%u", &stress->output_mib) == 1 ||
           sscanf(argument, "stream_mib=%u", &stress->stream_mib) == 1 ||
           sscanf(argument, "growth_mib=%u", &stress->growth_mib) == 1 ||
           sscanf(argument, "create_ms=%u", &stress->create_ms) == 1;
}

static bool begin(struct stress *stress, const char *adapter)
{
    char router[4096], settings[256], error[2048];
    const char *folder = getenv("SANDBOX_BIN");
    snprintf(router, sizeof(router), "%s/sandbox-router", folder ? folder : ".");
    snprintf(settings, sizeof(settings),
             "    image_allowlist: [python]\n    max_disk_mb: %u\n    default_memory_mb: 256\n",
             stress->stream_mib * 2 + 512);
    const struct subject_options options = { .router_program = router,
                                             .adapter = adapter,
                                             .settings = settings };
    if (subject_start(&options, &stress->subject, error, sizeof(error)) < 0) {
        printf("Bail out! %s\n", error);
        return false;
    }
    stress->client = subject_client(stress->subject);
    json_t *reply = ask(stress, "sandbox::create",
                        "{\"image\":\"python\",\"idle_timeout_secs\":3600}");
    snprintf(stress->sandbox, sizeof(stress->sandbox), "%s", text_at(reply, "sandbox_id"));
    json_decref(reply);
    return stress->sandbox[0] != '\0';
}

int main(int argc, char **argv)
{
    struct stress stress = { .execs = 1000, .output_mib = 100, .stream_mib = 1024 };
    bool right = argc >= 2;
    for (int i = 2; i < argc; i++)
        right = right && take_argument(&stress, argv[i]);
    if (!right) {
        fputs("usage: stress ADAPTER [execs=N] [output_mib=N] [stream_mib=N] [growth_mib=N] "
              "[create_ms=N]\n",
              stderr);
        return 2;
    }
    if (!begin(&stress, argv[1])) {
        subject_stop(stress.subject);
        return 1;
    }
    short_execs(&stress);
    large_output(&stress, "", "stdout");
    large_output(&stress, ">&2", "stderr");
    both_outputs(&stress);
    standard_input(&stress);
    if (stress.stream_mib > 0)
        files(&stress);
    if (stress.create_ms > 0)
        creates(&stress);
    subject_stop(stress.subject);
    printf("1..%u\n", stress.checks);
    return stress.failures > 0;
}
