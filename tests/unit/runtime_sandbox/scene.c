/* scene.c - see scene.h. */
#include "scene.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "handlers.h"
#include "sandboxes.h"
#include "sp.h"

static uint64_t last_call = 1000;

void scene_open(const char *extra)
{
    _cleanup_(buf_done)
    struct buf settings = { 0 };

    fake_machines = (struct fake_machines){ 0 };
    ck_assert_int_eq(buf_printf(&settings,
                                "    image_allowlist: [img]\n"
                                "    custom_images: {img: 'rootfs:/nowhere/img'}\n%s",
                                extra),
                     0);
    fixture.machines = &fake_machine_ops;
    fixture_open(buf_text(&settings));
    fixture_script("installer", "while [ \"$1\" != --dir ]; do shift; done\n"
                                "echo '{\"env\":[\"FROM=image\"],\"workdir\":\"/srv\"}' "
                                "> \"$2/config.json\"\n"
                                "echo tree > \"$2/tree\"\n"
                                "echo progress pulling 5 10\n"
                                "echo progress unpacking 0\n"
                                "echo done");
}

static void on_stopped(void *ctx)
{
    *(bool *)ctx = true;
}

void scene_heard(void)
{
    fixture_send(&(struct envelope){ .kind = ENVELOPE_PING });
    free(fixture_next(ENVELOPE_PONG));
}

/* However late nng's threads come: the clock that runs here is not theirs. */
static void keep_router_alive(void)
{
    if (fixture.link)
        scene_heard();
    LIST_FOREACH(node, &fixture.messages)
    {
        struct message *message = LIST_ENTRY(node, struct message, node);

        if (message->envelope.kind != ENVELOPE_PING)
            continue;
        list_remove(node);
        free(message);
    }
}

void scene_pass(uint64_t ms)
{
    while (ms > 0) {
        uint64_t step = ms < 1000 ? ms : 1000;

        fake_clock_pass(fixture.loop, step);
        keep_router_alive();
        ms -= step;
    }
}

void scene_close(void)
{
    bool stopped = false;

    fake_machines.cannot_be_killed = false;
    fake_machines.ignores_kills = false;
    sandboxes_stop_all(adapter_sandboxes(fixture.adapter), on_stopped, &stopped);
    for (unsigned i = 0; i < 100 && !stopped; i++)
        fake_clock_pass(fixture.loop, 100);
    ck_assert(stopped);
    ck_assert_uint_eq(fake_machines.live, 0);
    fixture_close();
    fake_clock_reset();
}

uint64_t scene_call(const char *operation, const char *format, ...)
{
    _cleanup_(buf_done)
    struct buf body = { 0 };
    va_list arguments;

    va_start(arguments, format);
    ck_assert_int_eq(buf_vprintf(&body, format, arguments), 0);
    va_end(arguments);
    fixture_call(++last_call, operation, buf_text(&body));
    return last_call;
}

char *scene_answer(uint64_t call)
{
    struct message *message = fixture_answer(call);
    char *text = strndup(message->envelope.body.data, message->envelope.body.size);

    free(message);
    return text;
}

uint64_t scene_last_call(void)
{
    return last_call;
}

void scene_expect(uint64_t call, const char *code, const char *text)
{
    struct message *message = fixture_answer(call);
    const struct span *body = &message->envelope.body;
    char wanted[32];
    bool fits = message->envelope.kind == ENVELOPE_REPLY;

    if (code) {
        (void)snprintf(wanted, sizeof(wanted), "\"code\":\"%s\"", code);
        fits = message->envelope.kind == ENVELOPE_ERROR &&
               memmem(body->data, body->size, wanted, strlen(wanted));
    }
    ck_assert_msg(fits && memmem(body->data, body->size, text, strlen(text)),
                  "expected %s with %s, got %.*s", code ? code : "a reply", text,
                  (int)body->size, body->data);
    free(message);
}

bool scene_unanswered(uint64_t call)
{
    LIST_FOREACH(node, &fixture.messages)
    {
        const struct envelope *envelope = &LIST_ENTRY(node, struct message, node)->envelope;

        if (envelope->id == call &&
            (envelope->kind == ENVELOPE_REPLY || envelope->kind == ENVELOPE_ERROR))
            return false;
    }
    return true;
}

char *scene_list(void)
{
    return scene_answer(scene_call("list", "{}"));
}

static bool has_status(const char *id, const char *status)
{
    _cleanup_free_ char *list = scene_list();
    const char *entry = strstr(list, id);
    char wanted[64];

    (void)snprintf(wanted, sizeof(wanted), "\"status\":\"%s\"", status);
    return entry && strncmp(strstr(entry, "\"status\""), wanted, strlen(wanted)) == 0;
}

void scene_await_status(const char *id, const char *status)
{
    TURN_UNTIL(fixture.loop, has_status(id, status));
}

void scene_cancel(uint64_t call)
{
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CANCEL, .id = call });
}

struct machine *scene_create(const char *members, char *ret_id)
{
    static const char key[] = "\"sandbox_id\":\"";
    unsigned index = fake_machines.count;
    uint64_t call = scene_call("create", "{\"image\":\"img\"%s}", members);
    _cleanup_free_ char *answer = scene_answer(call);
    const char *id = strstr(answer, key);

    ck_assert_msg(id != NULL, "create answered %s", answer);
    (void)snprintf(ret_id, UUID_TEXT_BYTES, "%.36s", id + strlen(key));
    return fake_machine(index);
}
