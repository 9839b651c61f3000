/* fault.c - see fault.h. */
#include "fault.h"

#include <time.h>

#include "adapter.h"
#include "serve.h"

int fault_new_id(const struct adapter *adapter, char ret_id[UUID_TEXT_BYTES])
{
    const struct fault *fault = adapter_fault(adapter);

    if (fault && fault->identify && fault->identify(fault->ctx, ret_id))
        return 0;
    return uuid_random(ret_id);
}

int64_t fault_wall_seconds(const struct adapter *adapter)
{
    const struct fault *fault = adapter_fault(adapter);
    int64_t seconds;

    if (fault && fault->clock && fault->clock(fault->ctx, &seconds))
        return seconds;
    return (int64_t)time(NULL);
}

void fault_go_on(struct request *request)
{
    request_go_on(request);
}

void fault_answer(struct request *request)
{
    request_send_held(request);
}

void fault_send_raw(struct adapter *adapter, const void *data, size_t size)
{
    serve_send_raw(adapter_serve(adapter), data, size);
}

void fault_disconnect(struct adapter *adapter)
{
    serve_disconnect(adapter_serve(adapter));
}
