/* envelope.c - see envelope.h: reading messages. envelope_encode.c writes them. */
#include "envelope.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "pack.h"

/* Which element comes after the id, by kind. A '?' in the comment: may be left out. */
enum element {
    ELEMENT_END, /* no more are known; further ones are skipped */
    ELEMENT_HELLO,
    ELEMENT_BODY,
    ELEMENT_OPERATION,
    ELEMENT_DEADLINE,
    ELEMENT_CALL_EXTRA, /* ? */
    ELEMENT_CHANNEL_ID,
    ELEMENT_ACCESS_KEY,
    ELEMENT_DIRECTION,
    ELEMENT_CREDIT,
    ELEMENT_FAULT, /* nil or {code, message} */
    ELEMENT_MAX
};

#define ELEMENTS_MAX 4

static const uint8_t layouts[][ELEMENTS_MAX] = {
    [ENVELOPE_HELLO] = { ELEMENT_HELLO },
    [ENVELOPE_WELCOME] = { ELEMENT_HELLO },
    [ENVELOPE_REFUSED] = { ELEMENT_FAULT },
    [ENVELOPE_CALL] = { ELEMENT_OPERATION, ELEMENT_DEADLINE, ELEMENT_BODY, ELEMENT_CALL_EXTRA },
    [ENVELOPE_REPLY] = { ELEMENT_BODY },
    [ENVELOPE_ERROR] = { ELEMENT_BODY },
    [ENVELOPE_EVENT] = { ELEMENT_BODY },
    [ENVELOPE_CANCEL] = { ELEMENT_END },
    [ENVELOPE_OPEN] = { ELEMENT_CHANNEL_ID, ELEMENT_ACCESS_KEY, ELEMENT_DIRECTION },
    [ENVELOPE_DATA] = { ELEMENT_BODY },
    [ENVELOPE_CREDIT] = { ELEMENT_CREDIT },
    [ENVELOPE_CLOSE] = { ELEMENT_FAULT },
    [ENVELOPE_PING] = { ELEMENT_END },
    [ENVELOPE_PONG] = { ELEMENT_END },
};
static_assert(ARRAY_SIZE(layouts) == ENVELOPE_KIND_MAX, "a layout for each kind");

static int read_kind(struct pack_reader *reader, enum pack_kind kind,
                     struct pack_item *ret_item)
{
    return pack_read(reader, ret_item) == 0 && ret_item->kind == kind ? 0 : -EPROTO;
}

static int read_span(struct pack_reader *reader, enum pack_kind kind, struct span *ret_span)
{
    struct pack_item item;

    if (read_kind(reader, kind, &item) < 0)
        return -EPROTO;
    *ret_span = item.span;
    return 0;
}

static int read_uint(struct pack_reader *reader, uint64_t *ret_value)
{
    struct pack_item item;

    if (read_kind(reader, PACK_UINT, &item) < 0)
        return -EPROTO;
    *ret_value = item.number;
    return 0;
}

static int read_u32(struct pack_reader *reader, uint32_t *ret_value)
{
    uint64_t value;

    if (read_uint(reader, &value) < 0 || value > UINT32_MAX)
        return -EPROTO;
    *ret_value = (uint32_t)value;
    return 0;
}

/* Reads the value under KEY, or skips it. */
typedef int (*read_pair_fn)(struct pack_reader *reader, struct span key,
                            struct envelope *envelope);

static int read_pairs(struct pack_reader *reader, uint32_t count, read_pair_fn read_pair,
                      struct envelope *envelope)
{
    for (uint32_t i = 0; i < count; i++) {
        struct span key;

        if (read_span(reader, PACK_TEXT, &key) < 0 || read_pair(reader, key, envelope) < 0)
            return -EPROTO;
    }
    return 0;
}

static int read_map(struct pack_reader *reader, read_pair_fn read_pair,
                    struct envelope *envelope)
{
    struct pack_item item;

    if (read_kind(reader, PACK_MAP, &item) < 0)
        return -EPROTO;
    return read_pairs(reader, item.count, read_pair, envelope);
}

enum { HAS_MAJOR = 1, HAS_MINOR = 2 };

static int read_contract(struct pack_reader *reader, struct envelope *envelope)
{
    struct pack_item item;
    unsigned found = 0;

    if (read_kind(reader, PACK_MAP, &item) < 0)
        return -EPROTO;
    for (uint32_t i = 0; i < item.count; i++) {
        struct span key;
        int result;

        if (read_span(reader, PACK_TEXT, &key) < 0)
            return -EPROTO;
        if (span_equals(key, "major")) {
            result = read_u32(reader, &envelope->contract.major);
            found |= HAS_MAJOR;
        } else if (span_equals(key, "minor")) {
            result = read_u32(reader, &envelope->contract.minor);
            found |= HAS_MINOR;
        } else {
            result = pack_skip(reader);
        }
        if (result < 0)
            return -EPROTO;
    }
    envelope->has_contract = true;
    return found == (HAS_MAJOR | HAS_MINOR) ? 0 : -EPROTO;
}

static int read_features(struct pack_reader *reader, struct envelope *envelope)
{
    struct pack_item item;

    if (read_kind(reader, PACK_ARRAY, &item) < 0 || item.count > ENVELOPE_FEATURES_MAX)
        return -EPROTO;
    envelope->feature_count = item.count;
    for (uint32_t i = 0; i < item.count; i++) {
        if (read_span(reader, PACK_TEXT, &envelope->features[i]) < 0)
            return -EPROTO;
    }
    return 0;
}

static const struct hello_text {
    const char *key;
    size_t offset;
} hello_texts[] = {
    { "role", offsetof(struct envelope, role) },
    { "name", offsetof(struct envelope, name) },
    { "version", offsetof(struct envelope, version) },
    { "router_version", offsetof(struct envelope, version) },
    { "instance", offsetof(struct envelope, instance) },
    { "docs_base", offsetof(struct envelope, docs_base) },
};

static int read_hello_pair(struct pack_reader *reader, struct span key,
                           struct envelope *envelope)
{
    for (size_t i = 0; i < ARRAY_SIZE(hello_texts); i++) {
        if (span_equals(key, hello_texts[i].key))
            return read_span(reader, PACK_TEXT,
                             (struct span *)((char *)envelope + hello_texts[i].offset));
    }
    if (span_equals(key, "contract"))
        return read_contract(reader, envelope);
    if (span_equals(key, "features"))
        return read_features(reader, envelope);
    if (span_equals(key, "max_message"))
        return read_uint(reader, &envelope->max_message_bytes);
    if (span_equals(key, "credit"))
        return read_uint(reader, &envelope->credit);
    return pack_skip(reader);
}

static int read_fault_pair(struct pack_reader *reader, struct span key,
                           struct envelope *envelope)
{
    if (span_equals(key, "code"))
        return read_span(reader, PACK_TEXT, &envelope->code);
    if (span_equals(key, "message"))
        return read_span(reader, PACK_TEXT, &envelope->message);
    return pack_skip(reader);
}

static int read_fault(struct pack_reader *reader, struct envelope *envelope)
{
    struct pack_item item;

    if (pack_read(reader, &item) < 0)
        return -EPROTO;
    if (item.kind == PACK_NIL)
        return envelope->kind == ENVELOPE_CLOSE ? 0 : -EPROTO;
    if (item.kind != PACK_MAP || read_pairs(reader, item.count, read_fault_pair, envelope) < 0)
        return -EPROTO;
    return envelope->code.data ? 0 : -EPROTO;
}

static int read_extra_pair(struct pack_reader *reader, struct span key,
                           struct envelope *envelope)
{
    if (span_equals(key, "traceparent"))
        return read_span(reader, PACK_TEXT, &envelope->traceparent);
    return pack_skip(reader);
}

static int read_deadline(struct pack_reader *reader, struct envelope *envelope)
{
    struct pack_item item;

    if (pack_read(reader, &item) < 0 || (item.kind != PACK_NIL && item.kind != PACK_UINT))
        return -EPROTO;
    envelope->deadline_ms = item.kind == PACK_NIL ? ENVELOPE_NO_DEADLINE : item.number;
    return 0;
}

static int read_direction(struct pack_reader *reader, struct envelope *envelope)
{
    struct span direction;

    if (read_span(reader, PACK_TEXT, &direction) < 0)
        return -EPROTO;
    envelope->write = span_equals(direction, "write");
    return envelope->write || span_equals(direction, "read") ? 0 : -EPROTO;
}

static int read_body(struct pack_reader *reader, struct envelope *envelope)
{
    if (read_span(reader, PACK_BYTES, &envelope->body) < 0)
        return -EPROTO;
    if (envelope->kind != ENVELOPE_DATA)
        return 0;
    return envelope->body.size > 0 && envelope->body.size <= ENVELOPE_DATA_MAX_BYTES ? 0
                                                                                     : -EPROTO;
}

static int read_element(struct pack_reader *reader, enum element element,
                        struct envelope *envelope)
{
    switch (element) {
    case ELEMENT_HELLO:
        return read_map(reader, read_hello_pair, envelope);
    case ELEMENT_BODY:
        return read_body(reader, envelope);
    case ELEMENT_OPERATION:
        return read_span(reader, PACK_TEXT, &envelope->operation);
    case ELEMENT_DEADLINE:
        return read_deadline(reader, envelope);
    case ELEMENT_CALL_EXTRA:
        return read_map(reader, read_extra_pair, envelope);
    case ELEMENT_CHANNEL_ID:
        return read_span(reader, PACK_TEXT, &envelope->channel_id);
    case ELEMENT_ACCESS_KEY:
        return read_span(reader, PACK_TEXT, &envelope->access_key);
    case ELEMENT_DIRECTION:
        return read_direction(reader, envelope);
    case ELEMENT_CREDIT:
        return read_uint(reader, &envelope->credit);
    case ELEMENT_FAULT:
        return read_fault(reader, envelope);
    default:
        return pack_skip(reader);
    }
}

static const char *const element_reasons[] = {
    [ELEMENT_END] = "malformed element",
    [ELEMENT_HELLO] = "malformed hello or welcome",
    [ELEMENT_BODY] = "body is no bin, or DATA is empty or over 64 KiB",
    [ELEMENT_OPERATION] = "operation is no text",
    [ELEMENT_DEADLINE] = "deadline is neither nil nor an integer",
    [ELEMENT_CALL_EXTRA] = "malformed map behind the body",
    [ELEMENT_CHANNEL_ID] = "channel id is no text",
    [ELEMENT_ACCESS_KEY] = "access key is no text",
    [ELEMENT_DIRECTION] = "direction is neither read nor write",
    [ELEMENT_CREDIT] = "credit is no integer",
    [ELEMENT_FAULT] = "malformed code and message",
};
static_assert(ARRAY_SIZE(element_reasons) == ELEMENT_MAX, "a reason for each element");

static int fail(int error, const char *reason, const char **ret_reason)
{
    *ret_reason = reason;
    return error;
}

/* The array's head, the kind and the id. */
static int read_start(struct pack_reader *reader, uint32_t *ret_count, uint64_t *ret_kind,
                      uint64_t *ret_id)
{
    struct pack_item item;

    if (read_kind(reader, PACK_ARRAY, &item) < 0 || item.count < 2)
        return -EPROTO;
    *ret_count = item.count;
    return read_uint(reader, ret_kind) < 0 || read_uint(reader, ret_id) < 0 ? -EPROTO : 0;
}

static int read_elements(struct pack_reader *reader, uint32_t count, struct envelope *envelope,
                         const char **ret_reason)
{
    const uint8_t *layout = layouts[envelope->kind];
    uint32_t known = 0;

    while (known < ELEMENTS_MAX && layout[known] != ELEMENT_END)
        known++;
    for (uint32_t i = 0; i < count || i < known; i++) {
        enum element element = i < known ? layout[i] : ELEMENT_END;

        if (i == count && element == ELEMENT_CALL_EXTRA)
            break;
        if (i >= count)
            return fail(-EPROTO, "elements are missing", ret_reason);
        if (read_element(reader, element, envelope) < 0)
            return fail(-EPROTO, element_reasons[element], ret_reason);
    }
    if (reader->at != reader->end)
        return fail(-EPROTO, "bytes behind the message", ret_reason);
    return 0;
}

int envelope_decode(const uint8_t *data, size_t size, struct envelope *ret_envelope,
                    const char **ret_reason)
{
    struct pack_reader reader = pack_reader(data, size);
    uint64_t kind, id;
    uint32_t count;

    if (read_start(&reader, &count, &kind, &id) < 0)
        return fail(-EPROTO, "no array of a kind and an id", ret_reason);
    if (kind >= ENVELOPE_KIND_MAX)
        return fail(-ENOTSUP, "unknown kind", ret_reason);
    memset(ret_envelope, 0, offsetof(struct envelope, features));
    ret_envelope->kind = (enum envelope_kind)kind;
    ret_envelope->id = id;
    ret_envelope->deadline_ms = ENVELOPE_NO_DEADLINE;
    return read_elements(&reader, count - 2, ret_envelope, ret_reason);
}

int envelope_peek(const uint8_t *data, size_t size, enum envelope_kind *ret_kind,
                  uint64_t *ret_id)
{
    struct pack_reader reader = pack_reader(data, size);
    uint64_t kind, id;
    uint32_t count;

    if (read_start(&reader, &count, &kind, &id) < 0)
        return -EPROTO;
    if (kind >= ENVELOPE_KIND_MAX)
        return -ENOTSUP;
    *ret_kind = (enum envelope_kind)kind;
    *ret_id = id;
    return 0;
}

int envelope_set_id(uint8_t *data, size_t size, uint64_t id)
{
    struct pack_reader reader = pack_reader(data, size);
    struct pack_item item;
    uint64_t kind;
    uint8_t *at;

    if (read_kind(&reader, PACK_ARRAY, &item) < 0 || item.count < 2 ||
        read_uint(&reader, &kind) < 0)
        return -EPROTO;
    at = data + (reader.at - data);
    if (reader.end - reader.at < PACK_HEAD_MAX || at[0] != 0xcf)
        return -EPROTO;
    (void)pack_uint64_head(at, id); /* its size is that of what it replaces */
    return 0;
}
