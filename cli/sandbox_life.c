/* sandbox_life.c - see sandbox_life.h. */
#include "sandbox_life.h"

#include "output.h"
#include "sandbox_call.h"

static bool is_interrupted(const struct sandbox_life *life)
{
    return life->client->interrupt.caught != 0;
}

/* How long there is after a signal, from now. */
static uint64_t end_ms(struct sandbox_life *life)
{
    if (life->end_ms == 0)
        life->end_ms = client_now_ms(life->client) + SANDBOX_LIFE_END_MS;
    return life->end_ms;
}

static bool is_over(const struct client_call *call)
{
    return call->state == CLIENT_CALL_OVER;
}

/* Says goodbye and takes what still comes. */
static enum client_outcome part(struct sandbox_life *life, const struct client_call *call)
{
    if (!is_over(call))
        client_leave(life->client);
    return is_over(call) ? CLIENT_ANSWERED : CLIENT_INTERRUPTED;
}

static enum client_outcome wait_for_create(struct sandbox_life *life,
                                           const struct client_call *call)
{
    uint64_t deadline_ms = client_now_ms(life->client) + SANDBOX_CREATE_TIMEOUT_MS;
    enum client_outcome outcome = client_wait(life->client, call, deadline_ms, false);

    if (outcome != CLIENT_INTERRUPTED)
        return outcome;
    progress_step(&life->progress, "stopping");
    (void)end_ms(life);
    (void)client_wait(life->client, call, client_now_ms(life->client) + life->patience_ms,
                      true); /* part() looks */
    return part(life, call);
}

static int take_id(struct sandbox_life *life, const struct client_call *call)
{
    int result = output_member_text(sandbox_result(call), "sandbox_id", &life->id);

    if (result < 0 || !buf_text(&life->id))
        return sandbox_complain("no memory");
    return life->id.size > 0 ? EXIT_CODE_DONE
                             : sandbox_complain("the reply of create has no sandbox_id");
}

static int begin(struct sandbox_life *life, struct client_call *call, const char *function,
                 struct payload *payload)
{
    struct client_request request = { .function = function };
    int result = payload_end(payload, &request.payload);

    return result == 0 ? client_call_begin(life->client, call, &request) : result;
}

int sandbox_life_begin(struct sandbox_life *life, struct payload *payload)
{
    struct client_call call = { .progress = progress_event, .progress_ctx = &life->progress };
    enum client_outcome outcome = CLIENT_LOST;
    bool is_ready;
    int code;

    progress_begin(&life->progress, life->client->loop, "creating");
    if (begin(life, &call, "sandbox::create", payload) == 0)
        outcome = wait_for_create(life, &call);
    is_ready = outcome == CLIENT_ANSWERED && !call.is_error && !is_interrupted(life);
    progress_end(&life->progress, is_ready ? life->summary : NULL);
    code = sandbox_outcome(life->client, &call, outcome, "sandbox::create",
                           SANDBOX_CREATE_TIMEOUT_MS);
    if (code == EXIT_CODE_DONE)
        code = take_id(life, &call);
    client_call_done(&call);
    if (!is_interrupted(life))
        return code;
    if (code == EXIT_CODE_DONE)
        sandbox_life_end(life);
    return 128 + life->client->interrupt.caught;
}

/* As long as it takes, or until all must be over. */
static enum client_outcome wait_for_stop(struct sandbox_life *life,
                                         const struct client_call *call)
{
    uint64_t deadline_ms = client_now_ms(life->client) + SANDBOX_CALL_TIMEOUT_MS;

    if (!is_interrupted(life)) {
        enum client_outcome outcome = client_wait(life->client, call, deadline_ms, false);

        if (outcome != CLIENT_INTERRUPTED)
            return outcome;
    }
    return client_wait(life->client, call, end_ms(life), true);
}

void sandbox_life_end(struct sandbox_life *life)
{
    struct client_call call = { 0 };
    struct payload payload = { 0 };
    enum client_outcome outcome = CLIENT_LOST;

    if (life->client->lost)
        client_reset(life->client);
    payload_text(&payload, "sandbox_id", buf_text(&life->id));
    payload_bool(&payload, "wait", true);
    if (begin(life, &call, "sandbox::stop", &payload) == 0)
        outcome = wait_for_stop(life, &call);
    if (sandbox_outcome(life->client, &call, outcome, "sandbox::stop",
                        SANDBOX_CALL_TIMEOUT_MS) != EXIT_CODE_DONE)
        (void)sandbox_complain("sandbox %s may still run: stopping it failed",
                               buf_text(&life->id));
    client_call_done(&call);
    payload_done(&payload);
}

void sandbox_life_done(struct sandbox_life *life)
{
    buf_done(&life->id);
}
