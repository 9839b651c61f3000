/* worker.c - the worker operations (contract 12), which belong to the back end.
 *
 * dispatch.c lets them come this far only when the back end has the feature `worker`. */
#include "adapter.h"
#include "handlers.h"

static void hand_over(struct request *request)
{
    struct adapter *adapter = request_adapter(request);
    const char *name = request_operation_name(request);
    struct sandbox_error err = { 0 };

    if (adapter_ops(adapter)->own_operation(adapter_backend(adapter), name, request))
        return;
    sandbox_error_set(&err, S304, "adapter %s does not implement %s", adapter_name(adapter),
                      name);
    request_fail(request, &err);
}

void handle_worker_prepare(struct request *request)
{
    hand_over(request);
}

void handle_worker_start(struct request *request)
{
    hand_over(request);
}

void handle_worker_status(struct request *request)
{
    hand_over(request);
}

void handle_worker_stop(struct request *request)
{
    hand_over(request);
}

void handle_worker_list(struct request *request)
{
    hand_over(request);
}

void handle_worker_logs(struct request *request)
{
    hand_over(request);
}
