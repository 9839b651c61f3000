/* test_backlog.c - the caps on what waits for clients. */
#include "backlog.h"
#include "turn.h"
#include "unit.h"

struct client {
    struct backlog_member member;
    size_t queued;
    unsigned pauses;
    unsigned resumes;
    unsigned drops;
};

static size_t queued_bytes(void *ctx)
{
    return ((struct client *)ctx)->queued;
}

static void on_pause(void *ctx)
{
    ((struct client *)ctx)->pauses++;
}

static void on_resume(void *ctx)
{
    ((struct client *)ctx)->resumes++;
}

static void on_drop(void *ctx, const char *reason)
{
    struct client *client = ctx;

    client->drops++;
    backlog_leave(&client->member);
}

static const struct backlog_ops ops = {
    .queued_bytes = queued_bytes, .pause = on_pause, .resume = on_resume, .drop = on_drop
};

static void grow(struct client *client, size_t bytes)
{
    client->queued += bytes;
    backlog_grew(&client->member);
}

START_TEST(test_one_connection)
{
    struct client client = { 0 };
    struct backlog backlog;
    struct loop *loop;

    ck_assert_int_eq(loop_new(&loop), 0);
    ck_assert_int_eq(backlog_init(&backlog, loop), 0);
    backlog_join(&backlog, &client.member, &ops, &client);
    grow(&client, BACKLOG_CONNECTION_BYTES);
    turn_for(loop, 5);
    ck_assert_uint_eq(client.pauses, 0); /* at the limit is not over it */
    grow(&client, 1);
    ck_assert_uint_eq(client.pauses, 0); /* not from inside backlog_grew() */
    TURN_UNTIL(loop, client.pauses == 1);
    grow(&client, 1);
    turn_for(loop, 5);
    ck_assert_uint_eq(client.pauses, 1);
    client.queued = BACKLOG_CONNECTION_BYTES / 2; /* it drained; the tick sees it */
    TURN_UNTIL(loop, client.resumes == 1);
    ck_assert_uint_eq(client.drops, 0);
    ck_assert_uint_eq(backlog.total_bytes, client.queued);
    backlog_leave(&client.member);
    backlog_leave(&client.member);
    ck_assert_uint_eq(backlog.total_bytes, 0);
    backlog_done(&backlog);
    loop_free(loop);
}
END_TEST

START_TEST(test_stalled)
{
    struct client stalled = { 0 }, moving = { 0 };
    struct backlog backlog;
    struct loop *loop;

    ck_assert_int_eq(loop_new(&loop), 0);
    ck_assert_int_eq(backlog_init(&backlog, loop), 0);
    backlog_join(&backlog, &stalled.member, &ops, &stalled);
    backlog_join(&backlog, &moving.member, &ops, &moving);
    grow(&stalled, BACKLOG_CONNECTION_BYTES + 100);
    grow(&moving, BACKLOG_CONNECTION_BYTES + 100);
    TURN_UNTIL(loop, stalled.pauses == 1 && moving.pauses == 1);
    stalled.member.moved_ms -= BACKLOG_STALL_MS; /* so much time has passed */
    moving.member.moved_ms -= BACKLOG_STALL_MS;
    moving.queued -= 1;
    TURN_UNTIL(loop, stalled.drops == 1);
    ck_assert_uint_eq(moving.drops, 0);
    backlog_leave(&moving.member);
    backlog_done(&backlog);
    loop_free(loop);
}
END_TEST

START_TEST(test_all_together)
{
    enum { CLIENTS = 40 };
    struct client clients[CLIENTS] = { 0 };
    struct backlog backlog;
    struct loop *loop;
    size_t each = BACKLOG_TOTAL_BYTES / CLIENTS;
    unsigned drops = 0;

    ck_assert_uint_lt(each, BACKLOG_CONNECTION_BYTES);
    ck_assert_int_eq(loop_new(&loop), 0);
    ck_assert_int_eq(backlog_init(&backlog, loop), 0);
    for (unsigned i = 0; i < CLIENTS; i++) {
        backlog_join(&backlog, &clients[i].member, &ops, &clients[i]);
        grow(&clients[i], i == 7 ? each + CLIENTS : each);
    }
    TURN_UNTIL(loop, clients[7].drops == 1); /* the fullest, and it alone */
    for (unsigned i = 0; i < CLIENTS; i++)
        drops += clients[i].drops;
    ck_assert_uint_eq(drops, 1);
    ck_assert_uint_le(backlog.total_bytes, BACKLOG_TOTAL_BYTES);
    for (unsigned i = 0; i < CLIENTS; i++)
        backlog_leave(&clients[i].member);
    backlog_done(&backlog);
    loop_free(loop);
}
END_TEST

UNIT_MAIN("router.backlog", test_one_connection, test_stalled, test_all_together)
