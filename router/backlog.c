/* backlog.c - see backlog.h. */
#include "backlog.h"

#define BACKLOG_TICK_MS 1000u

/* What the member has queued now. */
static void member_refresh(struct backlog_member *member)
{
    size_t bytes = member->ops->queued_bytes(member->ctx);

    if (bytes < member->bytes)
        member->moved_ms = loop_now_ms(member->backlog->loop);
    member->backlog->total_bytes += bytes - member->bytes;
    member->bytes = bytes;
}

static void backlog_check_over(struct backlog *backlog, struct backlog_member *member)
{
    uint64_t now_ms = loop_now_ms(backlog->loop);

    if (!member->over && member->bytes > BACKLOG_CONNECTION_BYTES) {
        member->over = true;
        member->moved_ms = now_ms;
        member->ops->pause(member->ctx);
    } else if (member->over && member->bytes <= BACKLOG_CONNECTION_BYTES / 2) {
        member->over = false;
        member->ops->resume(member->ctx);
    }
    if (!member->over)
        return;
    if (now_ms - member->moved_ms >= BACKLOG_STALL_MS)
        member->ops->drop(member->ctx, "took nothing of what waits for it for too long");
    else if (!loop_timer_armed(backlog->tick))
        loop_timer_arm(backlog->tick, BACKLOG_TICK_MS);
}

static void backlog_drop_fullest(struct backlog *backlog)
{
    struct backlog_member *fullest = NULL;

    LIST_FOREACH(node, &backlog->members)
    {
        struct backlog_member *member = LIST_ENTRY(node, struct backlog_member, node);

        if (!fullest || member->bytes > fullest->bytes)
            fullest = member;
    }
    if (fullest)
        fullest->ops->drop(fullest->ctx, "has the most waiting and all together are too much");
}

/* The next node may be gone after a drop: one that was looked at leaves `members` for the time.
 */
static void on_check(void *ctx)
{
    struct backlog *backlog = ctx;
    struct list todo;
    struct list *node;

    list_init(&todo);
    list_move_all(&todo, &backlog->members);
    while ((node = list_pop(&todo)) != NULL) {
        struct backlog_member *member = LIST_ENTRY(node, struct backlog_member, node);

        list_append(&backlog->members, node);
        member_refresh(member);
        backlog_check_over(backlog, member);
    }
    if (backlog->total_bytes > BACKLOG_TOTAL_BYTES)
        backlog_drop_fullest(backlog);
}

void backlog_grew(struct backlog_member *member)
{
    struct backlog *backlog = member->backlog;

    member_refresh(member);
    if ((member->bytes > BACKLOG_CONNECTION_BYTES && !member->over) ||
        backlog->total_bytes > BACKLOG_TOTAL_BYTES)
        loop_defer(backlog->loop, &backlog->check);
}

void backlog_join(struct backlog *backlog, struct backlog_member *member,
                  const struct backlog_ops *ops, void *ctx)
{
    *member = (struct backlog_member){ .backlog = backlog, .ops = ops, .ctx = ctx };
    list_append(&backlog->members, &member->node);
}

void backlog_leave(struct backlog_member *member)
{
    if (!member->backlog)
        return;
    list_remove(&member->node);
    member->backlog->total_bytes -= member->bytes;
    member->backlog = NULL;
}

int backlog_init(struct backlog *backlog, struct loop *loop)
{
    *backlog = (struct backlog){ .loop = loop };
    list_init(&backlog->members);
    loop_notice_init(&backlog->check, on_check, backlog);
    return loop_timer_new(loop, on_check, backlog, &backlog->tick);
}

void backlog_done(struct backlog *backlog)
{
    if (!backlog->loop)
        return;
    loop_timer_free(backlog->tick);
    loop_notice_cancel(backlog->loop, &backlog->check);
}
