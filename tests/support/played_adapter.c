/* played_adapter.c - see played_adapter.h. */
#include "played_adapter.h"

#include <errno.h>

#define GREETING_TIMEOUT_MS 20000

struct played_adapter {
    struct native_client *client;
    struct played_adapter_options options;
    unsigned calls;
    unsigned cancels;
};

static void on_call(void *ctx, struct native_client *client, const struct envelope *message)
{
    struct played_adapter *adapter = ctx;

    adapter->client = client; /* the first call may come with the welcome */
    if (message->kind == ENVELOPE_CANCEL) {
        adapter->cancels++;
        return;
    }
    adapter->calls++;
    if (adapter->options.call)
        adapter->options.call(adapter->options.ctx, adapter, message);
    else
        played_adapter_reply(adapter, message->id, message->body);
}

static struct envelope hello_of(const struct played_adapter_options *options)
{
    struct envelope hello = {
        .kind = ENVELOPE_HELLO,
        .role = span_of_text("adapter"),
        .name = span_of_text(options->name),
        .version = span_of_text(options->version ? options->version : "1"),
        .instance = span_of_text("played"),
        .has_contract = !options->without_contract,
        .contract = options->contract,
        .feature_count = (unsigned)options->feature_count,
    };

    for (size_t i = 0; i < options->feature_count; i++)
        hello.features[i] = span_of_text(options->features[i]);
    return hello;
}

int played_adapter_new(struct loop *loop, const char *url,
                       const struct played_adapter_options *options,
                       struct played_adapter **ret_adapter)
{
    struct envelope hello = hello_of(options);
    struct played_adapter *adapter = calloc(1, sizeof(*adapter));
    int result;

    if (!adapter)
        return -ENOMEM;
    adapter->options = *options;
    result = native_client_new_with(
        url,
        &(struct native_client_options){
            .loop = loop, .hello = &hello, .on_call = on_call, .ctx = adapter },
        GREETING_TIMEOUT_MS, &adapter->client);
    if (result < 0) {
        free(adapter);
        return result;
    }
    *ret_adapter = adapter;
    return 0;
}

void played_adapter_free(struct played_adapter *adapter)
{
    if (!adapter)
        return;
    native_client_free(adapter->client);
    free(adapter);
}

bool played_adapter_parked(const struct played_adapter *adapter)
{
    return native_client_refused(adapter->client);
}

unsigned played_adapter_calls(const struct played_adapter *adapter)
{
    return adapter->calls;
}

unsigned played_adapter_cancels(const struct played_adapter *adapter)
{
    return adapter->cancels;
}

struct native_client *played_adapter_client(struct played_adapter *adapter)
{
    return adapter->client;
}

/* A connection that is gone meanwhile is what some tests are about. */
static void answer(struct played_adapter *adapter, enum envelope_kind kind, uint64_t id,
                   struct span body)
{
    struct envelope message = { .kind = kind, .id = id, .body = body };

    (void)native_client_send(adapter->client, &message); /* see above */
}

void played_adapter_reply(struct played_adapter *adapter, uint64_t id, struct span body)
{
    answer(adapter, ENVELOPE_REPLY, id, body);
}

void played_adapter_error(struct played_adapter *adapter, uint64_t id, struct span body)
{
    answer(adapter, ENVELOPE_ERROR, id, body);
}
