/* played_adapter_main.c - the played adapter as a process of its own, to be killed, stopped and
 * supervised: played-adapter NAME, with $SANDBOX_ROUTER. It dials again when it loses the
 * router.
 *
 * list answers {"pid", "execs"}; an exec with "hold" in its body is never answered, those with
 * "slow" one by one, SLOW_MS apart; run with "chatter" says many lines first; all else is
 * echoed. After SIGTERM it stays connected for LINGER_MS and answers no more: as adapters do
 * that clean up before they go. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "played_adapter.h"

#define CHATTER_LINES 5000
#define SLOW_MS 20
#define SLOW_MAX 256
#define LINGER_MS 200

struct program {
    struct loop *loop;
    struct played_adapter *adapter;
    struct loop_timer *slow;
    struct loop_timer *linger;
    struct loop_signal *terminate;
    uint64_t slow_ids[SLOW_MAX]; /* the oldest first */
    size_t slow_count;
    unsigned execs;
    bool ending;
    bool over;
};

static bool body_has(const struct envelope *call, const char *text)
{
    return memmem(call->body.data, call->body.size, text, strlen(text)) != NULL;
}

static void on_slow(void *ctx)
{
    struct program *program = ctx;

    played_adapter_reply(program->adapter, program->slow_ids[0],
                         span_of_text("{\"slow\":true}"));
    program->slow_count--;
    memmove(program->slow_ids, program->slow_ids + 1,
            program->slow_count * sizeof(program->slow_ids[0]));
    if (program->slow_count > 0)
        loop_timer_arm(program->slow, SLOW_MS);
}

static void on_terminate(void *ctx, int signal_number)
{
    struct program *program = ctx;

    program->ending = true;
    loop_timer_arm(program->linger, LINGER_MS);
}

static void on_lingered(void *ctx)
{
    struct program *program = ctx;

    program->over = true;
}

static void answer_list(const struct program *program, uint64_t id)
{
    char text[96];

    (void)snprintf(text, sizeof(text), "{\"pid\":%d,\"execs\":%u}", getpid(), program->execs);
    played_adapter_reply(program->adapter, id, span_of_text(text));
}

static void answer_exec(struct program *program, const struct envelope *call)
{
    program->execs++;
    if (body_has(call, "hold"))
        return;
    if (!body_has(call, "slow")) {
        played_adapter_reply(program->adapter, call->id, call->body);
        return;
    }
    if (program->slow_count == 0)
        loop_timer_arm(program->slow, SLOW_MS);
    if (program->slow_count < SLOW_MAX)
        program->slow_ids[program->slow_count++] = call->id;
}

static void on_call(void *ctx, struct played_adapter *adapter, const struct envelope *call)
{
    struct program *program = ctx;

    program->adapter = adapter;
    if (program->ending)
        return;
    if (span_equals(call->operation, "list")) {
        answer_list(program, call->id);
        return;
    }
    if (span_equals(call->operation, "exec")) {
        answer_exec(program, call);
        return;
    }
    for (int i = 0; body_has(call, "chatter") && i < CHATTER_LINES; i++)
        (void)fprintf(stderr, "line %d of an adapter that says much\n", i);
    played_adapter_reply(adapter, call->id, call->body);
}

/* One connection, until it is lost. */
static int serve(struct program *program, const char *url, const char *name)
{
    static const char *const features[] = { "idempotency" };
    const struct played_adapter_options options = {
        .name = name,
        .contract = { CONTRACT_MAJOR, CONTRACT_MINOR },
        .features = features,
        .feature_count = ARRAY_SIZE(features),
        .call = on_call,
        .ctx = program,
    };
    struct played_adapter *adapter;
    int result = played_adapter_new(program->loop, url, &options, &adapter);

    if (result < 0)
        return result;
    while (result == 0 && !program->over && !native_client_lost(played_adapter_client(adapter)))
        result = loop_turn(program->loop, -1);
    loop_timer_disarm(program->slow);
    program->slow_count = 0;
    played_adapter_free(adapter);
    return result;
}

int main(int argc, char **argv)
{
    struct program program = { 0 };
    const char *url = getenv("SANDBOX_ROUTER");
    int result;

    if (argc != 2 || !url || loop_new(&program.loop) < 0 ||
        loop_timer_new(program.loop, on_slow, &program, &program.slow) < 0 ||
        loop_timer_new(program.loop, on_lingered, &program, &program.linger) < 0 ||
        loop_signal_new(program.loop, SIGTERM, on_terminate, &program, &program.terminate) < 0)
        return 2;
    do
        result = serve(&program, url, argv[1]);
    while (result == 0 && !program.ending);
    loop_signal_free(program.terminate);
    loop_timer_free(program.linger);
    loop_timer_free(program.slow);
    loop_free(program.loop);
    return program.ending ? 0 : 1;
}
