/* fault.c - see fault.h. */
#include "fault.h"

#include "adapter.h"
#include "serve.h"

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
