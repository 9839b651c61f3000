/* link_scene.c - see link_scene.h. */
#include "link_scene.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fake_clock.h"

struct loop *loop;
struct fake_guest *guest;
struct agent_link *link_;
struct seen seen;

static void on_greeted(void *ctx, const struct guest_hello *hello)
{
    seen.greeted++;
}

static void on_ready(void *ctx)
{
    seen.ready++;
}

static void on_settled(void *ctx)
{
    seen.settled++;
}

static void on_silent(void *ctx)
{
    seen.silent++;
}

static void on_awake(void *ctx)
{
    seen.awake++;
}

static void on_closed(void *ctx, const char *reason)
{
    seen.closed++;
    (void)snprintf(seen.reason, sizeof(seen.reason), "%s", reason);
}

static const struct agent_link_events link_events = { .greeted = on_greeted,
                                                      .ready = on_ready,
                                                      .settled = on_settled,
                                                      .silent = on_silent,
                                                      .awake = on_awake,
                                                      .closed = on_closed };

void open_link(void)
{
    int fd;

    ck_assert_int_eq(loop_new(&loop), 0);
    guest = fake_guest_new(loop, &fd);
    ck_assert_int_eq(agent_link_new(loop, fd, &link_events, NULL, &link_), 0);
}

void open_ready(void)
{
    open_ready_minor(0);
}

static void configure_greeted(void)
{
    const struct guest_configure configure = { .seed = "", .hostname = "", .machine_id = "" };

    TURN_UNTIL(loop, seen.greeted == 1);
    agent_link_configure(link_, &configure);
    TURN_UNTIL(loop, seen.ready == 1);
}

void open_ready_minor(uint32_t minor)
{
    open_link();
    fake_guest_hello_minor(guest, 1, minor);
    configure_greeted();
}

void open_ready_mailbox(uint32_t slots, uint32_t slot_bytes, bool host_has_it)
{
    open_link();
    guest->mailbox_fd = mailbox_memory_new();
    ck_assert_int_ge(guest->mailbox_fd, 0);
    if (host_has_it)
        agent_link_set_mailbox(link_, dup(guest->mailbox_fd));
    fake_guest_hello_mailbox(guest, slots, slot_bytes);
    configure_greeted();
}

void close_link(void)
{
    if (guest->mailbox_fd >= 0)
        (void)close(guest->mailbox_fd);
    agent_link_free(link_);
    fake_guest_free(guest);
    loop_free(loop);
    fake_clock_reset();
}

void expect_closed(const char *reason)
{
    TURN_UNTIL(loop, seen.closed == 1);
    ck_assert_msg(strstr(seen.reason, reason) != NULL, "closed for: %s", seen.reason);
    close_link();
}

static void on_head(void *ctx, const void *head)
{
    ((struct call *)ctx)->heads++;
}

static void on_data(void *ctx, unsigned stream, const uint8_t *data, size_t size)
{
    struct call *call = ctx;

    ck_assert_int_eq(buf_append(&call->data[stream], data, size), 0);
    if (call->free_in_data)
        agent_link_free(take_ptr(*call->free_in_data));
    else if (!call->keeps_credit)
        agent_call_grant(call->call, stream, size);
}

static void on_end(void *ctx, unsigned stream, const char *abort_reason)
{
    ((struct call *)ctx)->ends[stream]++;
}

static void on_writable(void *ctx, unsigned stream)
{
    ((struct call *)ctx)->writables++;
}

static void on_ended(void *ctx, const void *reply, struct sandbox_error *err, bool lost)
{
    struct call *call = ctx;

    ck_assert((reply == NULL) != (err == NULL));
    call->ended++;
    call->call = NULL;
    call->lost = lost;
    call->replied = reply != NULL;
    if (err)
        call->code = err->code;
    if (err)
        (void)snprintf(call->message, sizeof(call->message), "%.250s", err->message);
    if (call->free_at_end)
        agent_link_free(take_ptr(*call->free_at_end));
}

const struct agent_call_events call_events = {
    .head = on_head, .data = on_data, .end = on_end, .writable = on_writable, .ended = on_ended
};

void begin(struct call *call, enum guest_operation_id operation)
{
    char *words[] = { "a" };
    const struct guest_exec exec = { .argv = { 1, words }, .has_stdin = true };
    const struct fs_read_request read = { .sandbox_id = "", .path = "/" };
    const struct fs_write_request file = { .sandbox_id = "", .path = "/", .mode = "0" };
    struct sandbox_error err = { 0 };
    const void *request = operation == GUEST_exec      ? (const void *)&exec
                          : operation == GUEST_fs_read ? (const void *)&read
                                                       : (const void *)&file;

    ck_assert_int_eq(
        agent_call(link_, operation, request, &call_events, call, &call->call, &err), 0);
}

void call_done(struct call *call)
{
    for (unsigned i = 0; i < AGENT_STREAMS; i++)
        buf_done(&call->data[i]);
}
