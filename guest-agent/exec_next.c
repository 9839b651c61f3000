/* exec_next.c - execs are made ahead: pipes, timers and places in the loop take an emulated
 * guest as long as a frame and its answer do, and no request waits for them. */
#include <errno.h>

#include "exec_state.h"

void exec_free(struct exec *exec)
{
    if (!exec)
        return;
    tree_release(exec->tree);
    loop_timer_free(exec->deadline);
    loop_timer_free(exec->drain);
    for (int i = 0; i < EXEC_OUTPUTS; i++)
        exec_output_done(&exec->outputs[i]);
    exec_input_done(&exec->input);
    free(exec->program);
    free(exec->workdir);
    free(exec);
}

static int exec_init(struct exec *exec, struct serve *serve)
{
    int result = 0;

    exec->call.serve = serve;
    exec->input.fd = -1;
    for (unsigned i = 0; i < EXEC_OUTPUTS; i++)
        exec->outputs[i].fd = exec->outputs[i].their_fd = -1;
    for (unsigned i = 0; result == 0 && i < EXEC_OUTPUTS; i++)
        result = exec_output_init(&exec->outputs[i], exec, i + 1);
    if (result == 0)
        result = loop_timer_new(serve->loop, exec_drained, exec, &exec->drain);
    if (result == 0)
        result = loop_timer_new(serve->loop, exec_deadline_passed, exec, &exec->deadline);
    return result;
}

static int exec_new(struct serve *serve, struct exec **ret_exec)
{
    struct exec *exec = calloc(1, sizeof(*exec));
    int result = exec ? exec_init(exec, serve) : -ENOMEM;

    if (result == 0)
        *ret_exec = exec;
    else
        exec_free(exec);
    return result;
}

int exec_take(struct serve *serve, struct exec **ret_exec)
{
    *ret_exec = take_ptr(serve->next_exec);
    return *ret_exec ? 0 : exec_new(serve, ret_exec);
}

void exec_make_next(struct serve *serve)
{
    if (!serve->next_exec)
        (void)exec_new(serve, &serve->next_exec); /* or the next request makes its own */
}
