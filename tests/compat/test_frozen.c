/* test_frozen.c - what was published stays (contract 15): the bytes that we send are those of
 * the current minor, the messages and replies of every minor are still understood. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "envelope.h"
#include "frozen.h"
#include "json_scan.h"
#include "unit.h"

static const unsigned published[] = { 0, 1, 2 };
#define LATER_MINOR                                                                            \
    99u /* as one that is yet to come: with keys and elements that we do not know */

#define SPAN(text)                                                                             \
    {                                                                                          \
        (text), sizeof(text) - 1                                                               \
    }
#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

/* What each line of wire-1.<minor>.txt means. Of a hello before 1.2 the features are absent. */
static const struct meaning {
    const char *name;
    struct envelope envelope;
} meanings[] = {
    { "hello_adapter",
      { .kind = ENVELOPE_HELLO,
        .role = SPAN("adapter"),
        .name = SPAN("sandbox-qemu"),
        .version = SPAN("0.1.0"),
        .instance = SPAN("i-1"),
        .has_contract = true,
        .feature_count = 2,
        .features = { SPAN("idempotency"), SPAN("worker") } } },
    { "hello_caller",
      { .kind = ENVELOPE_HELLO,
        .role = SPAN("caller"),
        .name = SPAN("iii"),
        .version = SPAN("0.1.0"),
        .instance = SPAN("i-2"),
        .has_contract = true } },
    { "welcome",
      { .kind = ENVELOPE_WELCOME,
        .version = SPAN("0.1.0"),
        .has_contract = true,
        .docs_base = SPAN("https://iii.dev/docs/creating-workers/sandboxes#"),
        .max_message_bytes = 16777216,
        .credit = 262144 } },
    { "refused",
      { .kind = ENVELOPE_REFUSED,
        .code = SPAN("S302"),
        .message = SPAN("upgrade the adapter") } },
    { "call",
      { .kind = ENVELOPE_CALL,
        .id = 0x100000007,
        .operation = SPAN("fs::ls"),
        .deadline_ms = ENVELOPE_NO_DEADLINE,
        .body = SPAN("{\"path\":\"/\"}") } },
    { "call_deadline",
      { .kind = ENVELOPE_CALL,
        .id = 8,
        .operation = SPAN("list"),
        .deadline_ms = 30000,
        .body = SPAN("{}") } },
    { "call_traced",
      { .kind = ENVELOPE_CALL,
        .id = 9,
        .operation = SPAN("exec"),
        .deadline_ms = ENVELOPE_NO_DEADLINE,
        .body = SPAN("{}"),
        .traceparent = SPAN(TRACE) } },
    { "reply",
      { .kind = ENVELOPE_REPLY, .id = 0x100000007, .body = SPAN("{\"entries\":[]}") } },
    { "error", { .kind = ENVELOPE_ERROR, .id = 8, .body = SPAN("{\"code\":\"S002\"}") } },
    { "event", { .kind = ENVELOPE_EVENT, .id = 9, .body = SPAN("{\"progress\":0.5}") } },
    { "cancel", { .kind = ENVELOPE_CANCEL, .id = 9 } },
    { "open_read",
      { .kind = ENVELOPE_OPEN,
        .id = 1,
        .channel_id = SPAN("6fd1"),
        .access_key = SPAN("28ca") } },
    { "open_write",
      { .kind = ENVELOPE_OPEN,
        .id = 2,
        .channel_id = SPAN("6fd1"),
        .access_key = SPAN("28ca"),
        .write = true } },
    { "data", { .kind = ENVELOPE_DATA, .id = 2, .body = SPAN("\x00\x01\xff") } },
    { "credit", { .kind = ENVELOPE_CREDIT, .id = 2, .credit = 262144 } },
    { "close_clean", { .kind = ENVELOPE_CLOSE, .id = 2 } },
    { "close_aborted",
      { .kind = ENVELOPE_CLOSE,
        .id = 2,
        .code = SPAN("S218"),
        .message = SPAN("the reader left") } },
    { "ping", { .kind = ENVELOPE_PING, .id = 5 } },
    { "pong", { .kind = ENVELOPE_PONG, .id = 5 } },
};

static struct envelope meaning_of(const char *name, unsigned minor)
{
    for (size_t i = 0; i < ARRAY_SIZE(meanings); i++) {
        struct envelope envelope = meanings[i].envelope;

        if (strcmp(meanings[i].name, name) != 0)
            continue;
        if (envelope.has_contract)
            envelope.contract = (struct contract_version){ 1, minor };
        if (minor < 2)
            envelope.feature_count = 0;
        return envelope;
    }
    ck_abort_msg("no meaning is known of %s", name);
}

static void check_span(const char *name, const char *what, struct span got, struct span wanted)
{
    ck_assert_msg(got.size == wanted.size && (got.data != NULL) == (wanted.data != NULL) &&
                      (got.size == 0 || memcmp(got.data, wanted.data, got.size) == 0),
                  "%s: %s is now %.*s", name, what, (int)got.size, got.data ? got.data : "-");
}

static void check_envelope(const char *name, const struct envelope *got,
                           const struct envelope *wanted)
{
    ck_assert_msg(got->kind == wanted->kind && got->id == wanted->id, "%s: kind, id", name);
    check_span(name, "body", got->body, wanted->body);
    check_span(name, "operation", got->operation, wanted->operation);
    check_span(name, "traceparent", got->traceparent, wanted->traceparent);
    check_span(name, "channel", got->channel_id, wanted->channel_id);
    check_span(name, "key", got->access_key, wanted->access_key);
    check_span(name, "code", got->code, wanted->code);
    check_span(name, "message", got->message, wanted->message);
    check_span(name, "role", got->role, wanted->role);
    check_span(name, "name", got->name, wanted->name);
    check_span(name, "version", got->version, wanted->version);
    check_span(name, "instance", got->instance, wanted->instance);
    check_span(name, "docs_base", got->docs_base, wanted->docs_base);
    ck_assert_msg(got->kind != ENVELOPE_CALL || got->deadline_ms == wanted->deadline_ms,
                  "%s: deadline", name);
    ck_assert_msg(got->credit == wanted->credit, "%s: credit", name);
    ck_assert_msg(got->write == wanted->write, "%s: direction", name);
    ck_assert_msg(got->max_message_bytes == wanted->max_message_bytes, "%s: max", name);
    ck_assert_msg(got->has_contract == wanted->has_contract &&
                      got->contract.major == wanted->contract.major &&
                      got->contract.minor == wanted->contract.minor,
                  "%s: contract", name);
    ck_assert_msg(got->feature_count == wanted->feature_count, "%s: features", name);
    for (unsigned i = 0; i < wanted->feature_count; i++)
        check_span(name, "feature", got->features[i], wanted->features[i]);
}

static size_t from_hex(const char *hex, uint8_t *bytes, size_t room)
{
    size_t size = strlen(hex) / 2;

    ck_assert_uint_le(size, room);
    for (size_t i = 0; i < size; i++)
        ck_assert_int_eq(sscanf(hex + 2 * i, "%2hhx", &bytes[i]), 1);
    return size;
}

/* A frame of the file: NAME, a space, hex digits. */
static void check_frame(char *line, unsigned minor)
{
    char *hex = strchr(line, ' ');
    uint8_t bytes[1024];
    struct envelope got, wanted;
    const char *reason = "";
    struct buf encoded = { 0 };

    ck_assert_ptr_nonnull(hex);
    *hex++ = '\0';
    wanted = meaning_of(line, minor);
    size_t size = from_hex(hex, bytes, sizeof(bytes));
    ck_assert_msg(envelope_decode(bytes, size, &got, &reason) == 0,
                  "%s of 1.%u is no longer read: %s", line, minor, reason);
    check_envelope(line, &got, &wanted);
    if (minor != CONTRACT_MINOR)
        return;
    ck_assert_int_eq(envelope_encode(&wanted, &encoded), 0);
    ck_assert_msg(encoded.size == size && memcmp(encoded.data, bytes, size) == 0,
                  "%s is sent as other bytes now", line);
    buf_done(&encoded);
}

static void check_wire(unsigned minor)
{
    char name[64];
    unsigned frames = 0;

    (void)snprintf(name, sizeof(name), "wire-1.%u.txt", minor);
    char *text = frozen_load(name);
    char *line, *rest = text;
    while ((line = frozen_next_line(&rest)) != NULL) {
        check_frame(line, minor);
        frames++;
    }
    ck_assert_uint_eq(frames, ARRAY_SIZE(meanings));
    free(text);
}

START_TEST(test_wire)
{
    for (size_t i = 0; i < ARRAY_SIZE(published); i++)
        check_wire(published[i]);
    check_wire(LATER_MINOR);
}
END_TEST

/* Recorded replies against the tables of today. */

static enum json_kind kind_of(const struct field *field)
{
    switch (field->kind) {
    case FIELD_BOOL:
        return JSON_BOOL;
    case FIELD_U32:
    case FIELD_U64:
    case FIELD_I32:
    case FIELD_I64:
        return JSON_NUMBER;
    case FIELD_TEXTS:
    case FIELD_OBJECTS:
        return JSON_ARRAY;
    case FIELD_STREAM:
    case FIELD_OBJECT:
        return JSON_OBJECT;
    default:
        return JSON_STRING;
    }
}

static void check_object(const struct type *type, struct span object, unsigned minor);

static void check_value(const struct type *type, const struct field *field, struct span value,
                        unsigned minor)
{
    struct json_iterator items;
    struct span item;

    if (field->presence == FIELD_NULLABLE && json_kind(value) == JSON_NULL)
        return;
    ck_assert_msg(json_kind(value) == kind_of(field), "%s.%s has another type since 1.%u",
                  type->name, field->name, minor);
    if (field->kind == FIELD_OBJECT)
        check_object(field->type, value, minor);
    if (field->kind != FIELD_OBJECTS)
        return;
    items = json_iterate(value);
    while (json_next(&items, &(struct span){ 0 }, &item))
        check_object(field->type, item, minor);
}

static const struct field *field_of(const struct type *type, struct span key)
{
    for (size_t i = 0; i < type->field_count; i++) {
        if (json_string_equals(key, type->fields[i].name))
            return &type->fields[i];
    }
    return NULL;
}

static void check_object(const struct type *type, struct span object, unsigned minor)
{
    struct json_iterator members = json_iterate(object);
    struct span key, value;

    while (json_next(&members, &key, &value)) {
        const struct field *field = field_of(type, key);

        ck_assert_msg(field != NULL && field->since <= minor,
                      "%s: the key %.*s of 1.%u is gone or renamed", type->name, (int)key.size,
                      key.data, minor);
        check_value(type, field, value, minor);
    }
    for (size_t i = 0; i < type->field_count; i++) {
        const struct field *field = &type->fields[i];
        bool wanted = field->since <= minor &&
                      (field->presence == FIELD_REQUIRED || field->presence == FIELD_NULLABLE);

        ck_assert_msg(!wanted || json_get(object, field->name).data,
                      "%s.%s was not in 1.%u: it cannot be required of that minor", type->name,
                      field->name, minor);
    }
}

static void check_error(struct span error)
{
    static const char *const keys[] = { "type", "code",      "message", "docs_url",
                                        "fix",  "retryable", "fix_note" };

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        ck_assert_ptr_nonnull(json_get(error, keys[i]).data);
}

static void check_reply(const struct frozen_reply *reply, unsigned minor)
{
    const struct type *type = reply->operation->reply;
    struct json_iterator items;
    struct span item;

    if (!(reply->operation->flags & ARRAY_REPLY)) {
        check_object(type, reply->body, minor);
        return;
    }
    items = json_iterate(reply->body);
    while (json_next(&items, &(struct span){ 0 }, &item))
        check_object(type->fields[0].type, item, minor);
}

/* A caller that was built on the tables of today. */
static void check_decodes(const struct frozen_reply *reply)
{
    const struct type *type = reply->operation->reply;
    struct sandbox_error err = { 0 };
    void *value;

    if (reply->operation->flags & ARRAY_REPLY)
        return; /* no struct is read from a bare array */
    value = calloc(1, type->size);
    ck_assert_msg(codec_decode_json(type, reply->body.data, reply->body.size, value, &err) == 0,
                  "%s: %s", reply->operation->name, err.message);
    codec_free(type, value);
    free(value);
}

static void check_replies(unsigned minor)
{
    char name[64];
    bool seen[OP_MAX] = { false };

    (void)snprintf(name, sizeof(name), "replies-1.%u.jsonl", minor);
    char *text = frozen_load(name);
    char *line, *rest = text;
    while ((line = frozen_next_line(&rest)) != NULL) {
        struct frozen_reply reply = frozen_reply_parse(line);

        if (reply.is_error) {
            check_error(reply.body);
            continue;
        }
        seen[reply.operation->id] = true;
        check_reply(&reply, minor);
        if (minor == CONTRACT_MINOR)
            check_decodes(&reply);
    }
    for (size_t i = 0; i < OP_MAX; i++)
        ck_assert_msg(seen[i] || operations[i].since > minor, "1.%u: no reply of %s", minor,
                      operations[i].name);
    free(text);
}

START_TEST(test_replies)
{
    for (size_t i = 0; i < ARRAY_SIZE(published); i++)
        check_replies(published[i]);
    ck_assert_uint_eq(published[ARRAY_SIZE(published) - 1], CONTRACT_MINOR);
}
END_TEST

UNIT_MAIN("compat.frozen", test_wire, test_replies)
