/* envelope_encode.c - writing the messages of envelope.h. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "envelope.h"
#include "pack.h"

/* The first failure sticks; what is written afterwards changes nothing. */
struct writer {
    struct buf *to;
    int result;
};

static void put(struct writer *writer, int result)
{
    if (writer->result == 0)
        writer->result = result;
}

static void put_text(struct writer *writer, struct span text)
{
    put(writer, pack_text(writer->to, text.data, text.size));
}

static void put_name(struct writer *writer, const char *text)
{
    put(writer, pack_text(writer->to, text, strlen(text)));
}

/* An absent text leaves its pair out. */
static void put_pair(struct writer *writer, const char *key, struct span value)
{
    if (!value.data)
        return;
    put_name(writer, key);
    put_text(writer, value);
}

static void put_contract(struct writer *writer, const struct envelope *envelope)
{
    put_name(writer, "contract");
    put(writer, pack_map(writer->to, 2));
    put_name(writer, "major");
    put(writer, pack_uint(writer->to, envelope->contract.major));
    put_name(writer, "minor");
    put(writer, pack_uint(writer->to, envelope->contract.minor));
}

static void put_hello(struct writer *writer, const struct envelope *envelope)
{
    uint32_t count = !!envelope->role.data + !!envelope->name.data + !!envelope->version.data +
                     !!envelope->instance.data + envelope->has_contract + 1;

    put(writer, pack_map(writer->to, count));
    put_pair(writer, "role", envelope->role);
    put_pair(writer, "name", envelope->name);
    put_pair(writer, "version", envelope->version);
    if (envelope->has_contract)
        put_contract(writer, envelope);
    put_name(writer, "features");
    put(writer, pack_array(writer->to, envelope->feature_count));
    for (unsigned i = 0; i < envelope->feature_count; i++)
        put_text(writer, envelope->features[i]);
    put_pair(writer, "instance", envelope->instance);
}

static void put_welcome(struct writer *writer, const struct envelope *envelope)
{
    uint32_t count = !!envelope->version.data + !!envelope->docs_base.data + 3;

    put(writer, pack_map(writer->to, count));
    put_pair(writer, "router_version", envelope->version);
    put_contract(writer, envelope);
    put_pair(writer, "docs_base", envelope->docs_base);
    put_name(writer, "max_message");
    put(writer, pack_uint(writer->to, envelope->max_message_bytes));
    put_name(writer, "credit");
    put(writer, pack_uint(writer->to, envelope->credit));
}

static void put_fault(struct writer *writer, const struct envelope *envelope)
{
    if (!envelope->code.data) {
        put(writer, pack_nil(writer->to));
        return;
    }
    put(writer, pack_map(writer->to, 1 + !!envelope->message.data));
    put_pair(writer, "code", envelope->code);
    put_pair(writer, "message", envelope->message);
}

static void put_call(struct writer *writer, const struct envelope *envelope)
{
    put_text(writer, envelope->operation);
    if (envelope->deadline_ms == ENVELOPE_NO_DEADLINE)
        put(writer, pack_nil(writer->to));
    else
        put(writer, pack_uint(writer->to, envelope->deadline_ms));
    put(writer, pack_bytes(writer->to, envelope->body.data, envelope->body.size));
    if (envelope->traceparent.data) {
        put(writer, pack_map(writer->to, 1));
        put_pair(writer, "traceparent", envelope->traceparent);
    }
}

static void put_open(struct writer *writer, const struct envelope *envelope)
{
    put_text(writer, envelope->channel_id);
    put_text(writer, envelope->access_key);
    put_name(writer, envelope->write ? "write" : "read");
}

/* Elements of the whole array. */
static uint32_t element_count(const struct envelope *envelope)
{
    switch (envelope->kind) {
    case ENVELOPE_CALL:
        return envelope->traceparent.data ? 6 : 5;
    case ENVELOPE_OPEN:
        return 5;
    case ENVELOPE_CANCEL:
    case ENVELOPE_PING:
    case ENVELOPE_PONG:
        return 2;
    default:
        return 3;
    }
}

static void put_elements(struct writer *writer, const struct envelope *envelope)
{
    switch (envelope->kind) {
    case ENVELOPE_HELLO:
        put_hello(writer, envelope);
        break;
    case ENVELOPE_WELCOME:
        put_welcome(writer, envelope);
        break;
    case ENVELOPE_REFUSED:
    case ENVELOPE_CLOSE:
        put_fault(writer, envelope);
        break;
    case ENVELOPE_CALL:
        put_call(writer, envelope);
        break;
    case ENVELOPE_REPLY:
    case ENVELOPE_ERROR:
    case ENVELOPE_EVENT:
    case ENVELOPE_DATA:
        put(writer, pack_bytes(writer->to, envelope->body.data, envelope->body.size));
        break;
    case ENVELOPE_OPEN:
        put_open(writer, envelope);
        break;
    case ENVELOPE_CREDIT:
        put(writer, pack_uint(writer->to, envelope->credit));
        break;
    case ENVELOPE_CANCEL:
    case ENVELOPE_PING:
    case ENVELOPE_PONG:
    case ENVELOPE_KIND_MAX:
        break;
    }
}

static size_t start_write(uint8_t *to, enum envelope_kind kind, uint64_t id, uint32_t count)
{
    static_assert(ENVELOPE_KIND_MAX <= 0x80, "a kind is one byte");

    to[0] = (uint8_t)(0x90 | count);
    to[1] = (uint8_t)kind;
    return 2 + pack_uint64_head(to + 2, id);
}

int envelope_encode(const struct envelope *envelope, struct buf *to)
{
    struct writer writer = { .to = to };
    uint8_t start[ENVELOPE_HEAD_MAX];
    size_t old_size = to->size;
    uint32_t count = element_count(envelope);

    put(&writer,
        buf_append(to, start, start_write(start, envelope->kind, envelope->id, count)));
    put_elements(&writer, envelope);
    if (writer.result < 0)
        to->size = old_size;
    return writer.result;
}

size_t envelope_head(enum envelope_kind kind, uint64_t id, size_t body_size,
                     uint8_t ret_head[ENVELOPE_HEAD_MAX])
{
    size_t size = start_write(ret_head, kind, id, 3);

    assert(body_size <= UINT32_MAX);
    return size + pack_bytes_head(ret_head + size, (uint32_t)body_size);
}
