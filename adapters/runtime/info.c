/* info.c - see info.h. */
#include "info.h"

#include <assert.h>
#include <string.h>

#include "codec.h"
#include "fault.h"
#include "handlers.h"

#define FEATURES_SINCE_MINOR 2u

static const char *const runtime_features[] = { "idempotency", "exec_stream", NULL };

void info_announce(const struct adapter *adapter, struct envelope *hello)
{
    const struct fault *fault = adapter_fault(adapter);
    const char *const *lists[] = { runtime_features, adapter_ops(adapter)->features };
    struct backend_info info = { 0 };

    adapter_ops(adapter)->info(adapter_backend(adapter), &info);
    hello->name = span_of_text(info.name);
    hello->version = span_of_text(info.version);
    hello->has_contract = true;
    hello->contract = (struct contract_version){ CONTRACT_MAJOR, CONTRACT_MINOR };
    hello->feature_count = 0;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        for (const char *const *feature = lists[i]; feature && *feature; feature++) {
            assert(hello->feature_count < ENVELOPE_FEATURES_MAX);
            hello->features[hello->feature_count++] = span_of_text(*feature);
        }
    }
    if (fault && fault->hello)
        fault->hello(fault->ctx, hello);
}

bool info_has_feature(const struct adapter *adapter, const char *feature)
{
    struct envelope hello = { 0 };

    info_announce(adapter, &hello);
    for (unsigned i = 0; i < hello.feature_count; i++)
        if (span_equals(hello.features[i], feature))
            return true;
    return false;
}

static int append_span(struct text_list *list, struct span span)
{
    _cleanup_free_ char *text = strndup(span.data, span.size);

    return text ? text_list_append(list, text) : -1;
}

static int fill_reply(const struct adapter *adapter, struct adapter_info_reply *reply)
{
    struct envelope hello = { 0 };
    struct backend_info info = { 0 };

    info_announce(adapter, &hello);
    adapter_ops(adapter)->info(adapter_backend(adapter), &info);
    reply->has_adapter = reply->has_adapter_version = reply->has_contract = true;
    reply->adapter = strndup(hello.name.data, hello.name.size);
    reply->adapter_version = strndup(hello.version.data, hello.version.size);
    reply->contract = (struct contract_pair){ .has_major = true,
                                              .major = hello.contract.major,
                                              .has_minor = true,
                                              .minor = hello.contract.minor };
    if (!reply->adapter || !reply->adapter_version)
        return -1;
    if (hello.contract.minor < FEATURES_SINCE_MINOR)
        return 0; /* an adapter of an older contract, as tests play it */
    reply->has_features = true;
    for (unsigned i = 0; i < hello.feature_count; i++)
        if (append_span(&reply->features, hello.features[i]) < 0)
            return -1;
    reply->has_acceleration = info.acceleration;
    reply->has_isolation = info.isolation;
    reply->acceleration = info.acceleration ? strdup(info.acceleration) : NULL;
    reply->isolation = info.isolation ? strdup(info.isolation) : NULL;
    return (info.acceleration && !reply->acceleration) || (info.isolation && !reply->isolation)
               ? -1
               : 0;
}

void handle_adapter_info(struct request *request)
{
    struct adapter_info_reply reply = { 0 };
    struct sandbox_error err = { 0 };

    if (fill_reply(request_adapter(request), &reply) == 0) {
        request_reply(request, &reply);
    } else {
        sandbox_error_set(&err, S300, "no memory for the reply");
        request_fail(request, &err);
    }
    codec_free(&type_adapter_info_reply, &reply);
}
