/* fixture.c - see fixture.h. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

#include "idempotency.h"
#include "serve.h"

struct fixture fixture;

/* The back end. */

static int backend_open(struct loop *loop, const struct settings *settings,
                        struct backend **ret_backend, struct sandbox_error *err)
{
    *ret_backend = (struct backend *)&fixture;
    return 0;
}

static void backend_reload(struct backend *backend, const struct settings *settings)
{
    fixture.reloads++;
}

static void backend_close(struct backend *backend)
{
    fixture.request_count = 0;
}

static void backend_info(const struct backend *backend, struct backend_info *ret_info)
{
    *ret_info = (struct backend_info){ .name = "sandbox-test",
                                       .version = "7.8.9",
                                       .acceleration = "none" };
}

static const char *backend_installer(const struct backend *backend)
{
    static char path[128];

    (void)snprintf(path, sizeof(path), "%s/installer", fixture.directory);
    return path;
}

static const char *backend_image_flavor(const struct backend *backend)
{
    return "test";
}

static int backend_machine_start(struct backend *backend, const struct machine_spec *spec,
                                 const struct machine_events *events, void *ctx,
                                 struct machine **ret_machine, struct sandbox_error *err)
{
    if (fixture.machines)
        return fixture.machines->machine_start(backend, spec, events, ctx, ret_machine, err);
    return sandbox_error_set(err, S300, "no machines here");
}

static int backend_machine_kill(struct machine *machine, struct sandbox_error *err)
{
    return fixture.machines->machine_kill(machine, err);
}

static void backend_machine_ready(struct machine *machine)
{
    fixture.machines->machine_ready(machine);
}

static void backend_machine_settled(struct machine *machine)
{
    fixture.machines->machine_settled(machine);
}

static void backend_machine_wanted(struct machine *machine)
{
    fixture.machines->machine_wanted(machine);
}

static int64_t backend_machine_last_payload(const struct machine *machine)
{
    return fixture.machines->machine_last_payload(machine);
}

static const char *backend_scratch_directory(const struct backend *backend)
{
    return fixture.scratch_directory;
}

static uint64_t backend_machine_disk_bytes(const struct machine *machine)
{
    return fixture.disk_bytes;
}

static void backend_machine_free(struct machine *machine)
{
    fixture.machines->machine_free(machine);
}

static bool backend_own_operation(struct backend *backend, const char *operation,
                                  struct request *request)
{
    return fixture.own_operation && fixture.own_operation(&fixture, operation, request);
}

static const struct fault *backend_fault(struct backend *backend)
{
    return fixture.has_fault ? &fixture.fault : NULL;
}

const struct backend_ops fixture_ops = {
    .open = backend_open,
    .reload = backend_reload,
    .close = backend_close,
    .info = backend_info,
    .installer = backend_installer,
    .image_flavor = backend_image_flavor,
    .machine_start = backend_machine_start,
    .machine_kill = backend_machine_kill,
    .machine_ready = backend_machine_ready,
    .machine_settled = backend_machine_settled,
    .machine_wanted = backend_machine_wanted,
    .machine_last_payload = backend_machine_last_payload,
    .scratch_directory = backend_scratch_directory,
    .machine_disk_bytes = backend_machine_disk_bytes,
    .machine_free = backend_machine_free,
    .own_operation = backend_own_operation,
    .features = fixture.features,
    .fault = backend_fault,
};

/* The router's end. */

static void on_message(void *ctx, uint8_t *data, size_t size)
{
    struct message *message = malloc(sizeof(*message) + size);
    const char *reason = NULL;

    ck_assert_ptr_nonnull(message);
    message->size = size;
    memcpy(message->bytes, data, size);
    ck_assert_msg(envelope_decode(message->bytes, size, &message->envelope, &reason) == 0,
                  "the adapter sent a bad message: %s", reason);
    list_append(&fixture.messages, &message->node);
}

static void on_ready(void *ctx)
{
}

static void on_closed(void *ctx, int error, const char *reason)
{
    sp_free(take_ptr(fixture.link));
}

static const struct sp_events link_events = {
    .ready = on_ready,
    .message = on_message,
    .closed = on_closed,
};

static void on_accepted(void *ctx, struct stream *own_stream)
{
    ck_assert_ptr_null(fixture.link);
    ck_assert_int_eq(sp_new(fixture.loop, own_stream, SP_MAPPING_IPC, 16 << 20, 5000,
                            &link_events, NULL, &fixture.link),
                     0);
    fixture.links++;
}

/* Life. */

void fixture_write_settings(const char *extra)
{
    FILE *file = fopen(fixture.settings_path, "w");

    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "sandbox:\n"
            "  adapter: sandbox-test\n"
            "  runtime_dir: %s\n"
            "  settings:\n"
            "    cache_dir: %s/cache\n"
            "    state_dir: %s/state\n"
            "%s",
            fixture.directory, fixture.directory, fixture.directory, extra);
    ck_assert_int_eq(fclose(file), 0);
}

void fixture_prepare(const char *extra)
{
    list_init(&fixture.messages);
    folder_make(fixture.directory);
    (void)snprintf(fixture.settings_path, sizeof(fixture.settings_path), "%s/settings.yaml",
                   fixture.directory);
    (void)snprintf(fixture.router_url, sizeof(fixture.router_url), "ipc://%s/router.sock",
                   fixture.directory);
    fixture_write_settings(extra);
    ck_assert_int_eq(loop_new(&fixture.loop), 0);
}

void fixture_start_adapter(void)
{
    char error[ADAPTER_ERROR_MAX];
    struct adapter_options options = { .ops = &fixture_ops,
                                       .config_path = fixture.settings_path };

    ck_assert_msg(adapter_new(fixture.loop, &options, &fixture.adapter, error) == 0,
                  "adapter_new: %s", error);
}

void fixture_welcome(void)
{
    struct message *hello;

    if (!fixture.listener)
        ck_assert_int_eq(stream_listen(fixture.loop, fixture.router_url, NULL, on_accepted,
                                       NULL, &fixture.listener),
                         0);
    hello = fixture_next(ENVELOPE_HELLO);
    free(hello);
    fixture_send(&(struct envelope){ .kind = ENVELOPE_WELCOME,
                                     .version = span_of_text("1.2.3"),
                                     .has_contract = true,
                                     .contract = { 1, 2 },
                                     .docs_base = span_of_text("https://docs.test/#"),
                                     .max_message_bytes = 16 << 20,
                                     .credit = ENVELOPE_WINDOW_BYTES });
    TURN_UNTIL(fixture.loop, serve_link(adapter_serve(fixture.adapter)) != 0);
}

void fixture_open(const char *extra)
{
    fixture_prepare(extra);
    fixture_start_adapter();
    fixture_welcome();
}

void fixture_close(void)
{
    struct list *node;

    adapter_free(take_ptr(fixture.adapter));
    stream_listener_free(take_ptr(fixture.listener));
    sp_free(take_ptr(fixture.link));
    loop_free(take_ptr(fixture.loop));
    while ((node = list_pop(&fixture.messages)))
        free(LIST_ENTRY(node, struct message, node));
    folder_remove(fixture.directory);
}

/* Messages. */

void fixture_send(const struct envelope *message)
{
    struct buf bytes = { 0 };

    ck_assert_ptr_nonnull(fixture.link);
    ck_assert_int_eq(envelope_encode(message, &bytes), 0);
    ck_assert_int_eq(sp_send(fixture.link, bytes.data, bytes.size), 0);
    buf_done(&bytes);
}

void fixture_call(uint64_t id, const char *operation, const char *body)
{
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CALL,
                                     .id = id,
                                     .operation = span_of_text(operation),
                                     .deadline_ms = ENVELOPE_NO_DEADLINE,
                                     .body = span_of_text(body) });
}

static struct message *find(bool (*wanted)(const struct envelope *envelope, uint64_t what),
                            uint64_t what)
{
    LIST_FOREACH(node, &fixture.messages)
    {
        struct message *message = LIST_ENTRY(node, struct message, node);

        if (wanted(&message->envelope, what)) {
            list_remove(node);
            return message;
        }
    }
    return NULL;
}

static bool is_kind(const struct envelope *envelope, uint64_t kind)
{
    return envelope->kind == kind;
}

static bool answers(const struct envelope *envelope, uint64_t id)
{
    return envelope->id == id &&
           (envelope->kind == ENVELOPE_REPLY || envelope->kind == ENVELOPE_ERROR);
}

struct message *fixture_next(enum envelope_kind kind)
{
    struct message *message;

    TURN_UNTIL(fixture.loop, (message = find(is_kind, kind)));
    return message;
}

struct message *fixture_answer(uint64_t id)
{
    struct message *message;

    TURN_UNTIL(fixture.loop, (message = find(answers, id)));
    return message;
}

void fixture_expect_reply(uint64_t id, const char *body)
{
    struct message *message = fixture_answer(id);

    ck_assert_msg(message->envelope.kind == ENVELOPE_REPLY &&
                      span_equals(message->envelope.body, body),
                  "expected the reply %s, got %.*s", body, (int)message->envelope.body.size,
                  message->envelope.body.data);
    free(message);
}

void fixture_expect_error(uint64_t id, const char *code, const char *text)
{
    struct message *message = fixture_answer(id);
    const struct span *body = &message->envelope.body;
    char wanted[32];

    (void)snprintf(wanted, sizeof(wanted), "\"code\":\"%s\"", code);
    ck_assert_msg(message->envelope.kind == ENVELOPE_ERROR &&
                      memmem(body->data, body->size, wanted, strlen(wanted)) &&
                      memmem(body->data, body->size, text, strlen(text)),
                  "expected %s with %s, got %.*s", code, text, (int)body->size, body->data);
    free(message);
}

void fixture_expect_none(enum envelope_kind kind)
{
    ck_assert_ptr_null(find(is_kind, kind));
}

void fixture_drop_link(void)
{
    sp_free(take_ptr(fixture.link));
}

/* Requests. */

bool fixture_keep(struct fixture *self, const char *operation, struct request *request)
{
    if (strcmp(operation, "test::key") == 0 && !idempotency_admit(request))
        return true;
    ck_assert_uint_lt(self->request_count, ARRAY_SIZE(self->requests));
    self->requests[self->request_count++] = request;
    return true;
}

void fixture_reply(unsigned index, const char *json)
{
    request_reply_json(take_ptr(fixture.requests[index]), json, strlen(json));
}

void fixture_fail(unsigned index, enum sandbox_code code, const char *message)
{
    struct sandbox_error err = { 0 };

    sandbox_error_set(&err, code, "%s", message);
    request_fail(take_ptr(fixture.requests[index]), &err);
}

void fixture_script(const char *name, const char *text)
{
    folder_script(fixture.directory, name, text);
}
