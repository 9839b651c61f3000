/* test_envelope.c - each message there and back, and all that is none. */
#include "envelope.h"

#include <errno.h>
#include <string.h>

#include "pack.h"
#include "unit.h"

#define SPAN(text)                                                                             \
    {                                                                                          \
        .data = (text), .size = sizeof(text) - 1                                               \
    }

static const struct envelope samples[] = {
    { .kind = ENVELOPE_HELLO,
      .id = 0,
      .role = SPAN("adapter"),
      .name = SPAN("sandbox-mock"),
      .version = SPAN("0.1.0"),
      .instance = SPAN("i-1"),
      .has_contract = true,
      .contract = { 1, 2 },
      .feature_count = 2,
      .features = { SPAN("idempotency"), SPAN("worker") } },
    { .kind = ENVELOPE_HELLO, .role = SPAN("caller"), .name = SPAN("x") },
    { .kind = ENVELOPE_WELCOME,
      .version = SPAN("0.1.0"),
      .has_contract = true,
      .contract = { 1, 2 },
      .docs_base = SPAN("https://x#"),
      .max_message_bytes = 16777216,
      .credit = ENVELOPE_WINDOW_BYTES },
    { .kind = ENVELOPE_REFUSED, .code = SPAN("S302"), .message = SPAN("upgrade") },
    { .kind = ENVELOPE_CALL,
      .id = UINT64_MAX,
      .operation = SPAN("fs::ls"),
      .deadline_ms = 5000,
      .body = SPAN("{\"a\":1}") },
    { .kind = ENVELOPE_CALL,
      .id = 7,
      .operation = SPAN("exec"),
      .deadline_ms = ENVELOPE_NO_DEADLINE,
      .body = SPAN("{}"),
      .traceparent = SPAN("00-aa-bb-01") },
    { .kind = ENVELOPE_REPLY, .id = 1, .body = SPAN("[]") },
    { .kind = ENVELOPE_ERROR, .id = 2, .body = SPAN("{\"code\":\"S001\"}") },
    { .kind = ENVELOPE_EVENT, .id = 3, .body = SPAN("{}") },
    { .kind = ENVELOPE_CANCEL, .id = 4 },
    { .kind = ENVELOPE_OPEN,
      .id = 5,
      .channel_id = SPAN("c"),
      .access_key = SPAN("k"),
      .write = true },
    { .kind = ENVELOPE_OPEN, .id = 5, .channel_id = SPAN("c"), .access_key = SPAN("k") },
    { .kind = ENVELOPE_DATA, .id = 6, .body = SPAN("a\0b") },
    { .kind = ENVELOPE_CREDIT, .id = 6, .credit = 65536 },
    { .kind = ENVELOPE_CLOSE, .id = 6 },
    { .kind = ENVELOPE_CLOSE, .id = 6, .code = SPAN("S218"), .message = SPAN("silent") },
    { .kind = ENVELOPE_PING, .id = 8 },
    { .kind = ENVELOPE_PONG, .id = 8 },
};

static int decode_copy(const void *data, size_t size, uint8_t **ret_copy,
                       struct envelope *ret_envelope)
{
    const char *reason = NULL;
    int result;

    *ret_copy = malloc(size ? size : 1);
    ck_assert_ptr_nonnull(*ret_copy);
    memcpy(*ret_copy, data, size);
    result = envelope_decode(*ret_copy, size, ret_envelope, &reason);
    if (result < 0)
        ck_assert_msg(reason && reason[0], "no reason");
    return result;
}

static int decode_result(const void *data, size_t size)
{
    struct envelope envelope;
    uint8_t *copy;
    int result = decode_copy(data, size, &copy, &envelope);

    free(copy);
    return result;
}

static void check_span(struct span found, struct span wanted)
{
    ck_assert_uint_eq(found.size, wanted.size);
    ck_assert_int_eq(!!found.data, !!wanted.data);
    if (wanted.size > 0)
        ck_assert_mem_eq(found.data, wanted.data, wanted.size);
}

static void check_same(const struct envelope *found, const struct envelope *wanted)
{
    ck_assert_int_eq(found->kind, wanted->kind);
    ck_assert_uint_eq(found->id, wanted->id);
    check_span(found->body, wanted->body);
    check_span(found->operation, wanted->operation);
    check_span(found->traceparent, wanted->traceparent);
    check_span(found->channel_id, wanted->channel_id);
    check_span(found->access_key, wanted->access_key);
    check_span(found->code, wanted->code);
    check_span(found->message, wanted->message);
    check_span(found->role, wanted->role);
    check_span(found->name, wanted->name);
    check_span(found->version, wanted->version);
    check_span(found->instance, wanted->instance);
    check_span(found->docs_base, wanted->docs_base);
    ck_assert_int_eq(found->write, wanted->write);
    ck_assert_int_eq(found->has_contract, wanted->has_contract);
    ck_assert_uint_eq(found->contract.major, wanted->contract.major);
    ck_assert_uint_eq(found->contract.minor, wanted->contract.minor);
    ck_assert_uint_eq(found->max_message_bytes, wanted->max_message_bytes);
    ck_assert_uint_eq(found->credit, wanted->credit);
    ck_assert_uint_eq(found->feature_count, wanted->feature_count);
    for (unsigned i = 0; i < wanted->feature_count; i++)
        check_span(found->features[i], wanted->features[i]);
    if (wanted->kind == ENVELOPE_CALL)
        ck_assert_uint_eq(found->deadline_ms, wanted->deadline_ms);
}

START_TEST(test_round_trip)
{
    bool seen[ENVELOPE_KIND_MAX] = { false };

    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        struct buf buf = { 0 };
        struct envelope envelope;
        enum envelope_kind kind;
        uint8_t *copy;
        uint64_t id;

        ck_assert_int_eq(envelope_encode(&samples[i], &buf), 0);
        ck_assert_int_eq(decode_copy(buf.data, buf.size, &copy, &envelope), 0);
        check_same(&envelope, &samples[i]);
        ck_assert_int_eq(envelope_peek(copy, buf.size, &kind, &id), 0);
        ck_assert_int_eq(kind, samples[i].kind);
        ck_assert_uint_eq(id, samples[i].id);
        seen[kind] = true;
        free(copy);
        buf_done(&buf);
    }
    for (size_t i = 0; i < ENVELOPE_KIND_MAX; i++)
        ck_assert_msg(seen[i], "no sample of kind %zu", i);
}
END_TEST

/* A message cut anywhere, or with a byte behind it, is none. */
START_TEST(test_cut)
{
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        struct buf buf = { 0 };

        ck_assert_int_eq(envelope_encode(&samples[i], &buf), 0);
        for (size_t size = 0; size < buf.size; size++)
            ck_assert_int_eq(decode_result(buf.data, size), -EPROTO);
        ck_assert_int_eq(buf_append_byte(&buf, 0), 0);
        ck_assert_int_eq(decode_result(buf.data, buf.size), -EPROTO);
        buf_done(&buf);
    }
}
END_TEST

START_TEST(test_set_id)
{
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        struct buf buf = { 0 };
        struct envelope expected = samples[i], envelope;
        uint8_t *copy;

        ck_assert_int_eq(envelope_encode(&samples[i], &buf), 0);
        ck_assert_int_eq(envelope_set_id(buf.data, buf.size, 0x123456789abcdef0), 0);
        expected.id = 0x123456789abcdef0;
        ck_assert_int_eq(decode_copy(buf.data, buf.size, &copy, &envelope), 0);
        check_same(&envelope, &expected);
        free(copy);
        ck_assert_int_eq(envelope_set_id(buf.data, 10, 1), -EPROTO);
        buf_done(&buf);
    }
    /* A short id has no room. */
    ck_assert_int_eq(
        envelope_set_id((uint8_t[]){ 0x92, 12, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, 12, 1), -EPROTO);
}
END_TEST

START_TEST(test_head)
{
    static const size_t sizes[] = { 1, 255, 256, 65535, 65536 };

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct envelope envelope = { .kind = ENVELOPE_REPLY, .id = 77 };
        uint8_t head[ENVELOPE_HEAD_MAX];
        size_t head_size = envelope_head(ENVELOPE_REPLY, 77, sizes[i], head);
        char *body = calloc(1, sizes[i]);
        struct buf buf = { 0 };

        envelope.body = (struct span){ body, sizes[i] };
        ck_assert_int_eq(envelope_encode(&envelope, &buf), 0);
        ck_assert_uint_eq(buf.size, head_size + sizes[i]);
        ck_assert_mem_eq(buf.data, head, head_size);
        free(body);
        buf_done(&buf);
    }
}
END_TEST

#define ID "\xcf\0\0\0\0\0\0\0\1"

/* What a later minor, or a plain msgpack library, may send. */
START_TEST(test_lenient)
{
    static const struct {
        const char *data;
        size_t size;
    } rows[] = {
        { "\x92\x0c\x01", 3 },                     /* a short id */
        { "\x93\x0c" ID "\x81\xa1x\x91\xc0", 16 }, /* a further element */
        { "\x94\x0b" ID "\x82\xa4"
          "code\xa4S218\xa4more\x01\xa0",
          29 }, /* an unknown key, an element */
        { "\x96\x03" ID "\xa1x\xc0\xc4\x00\x81\xa4"
          "call\xa1"
          "c",
          24 }, /* a map without traceparent */
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        ck_assert_msg(decode_result(rows[i].data, rows[i].size) == 0, "row %zu", i);
}
END_TEST

START_TEST(test_refused)
{
    static const struct {
        const char *data;
        size_t size;
        int result;
    } rows[] = {
        { "", 0, -EPROTO },
        { "\x91\x0c", 2, -EPROTO },      /* no id */
        { "\x92\xa0" ID, 11, -EPROTO },  /* kind is text */
        { "\x92\x0c\xff", 3, -EPROTO },  /* id below 0 */
        { "\x92\x0e" ID, 11, -ENOTSUP }, /* unknown kind */
        { "\x92\xcf\xff\xff\xff\xff\xff\xff\xff\xff" ID, 19, -ENOTSUP },
        { "\x93\x04" ID "\xa2{}", 14, -EPROTO },            /* body is text */
        { "\x93\x09" ID "\xc4\x00", 13, -EPROTO },          /* DATA is empty */
        { "\x92\x04" ID, 11, -EPROTO },                     /* no body */
        { "\x94\x03" ID "\xa1x\xc0", 14, -EPROTO },         /* no body */
        { "\x95\x03" ID "\xa1x\xff\xc4\x00", 16, -EPROTO }, /* deadline below 0 */
        { "\x95\x08" ID "\xa1"
          "c\xa1"
          "k\xa1x",
          17, -EPROTO },                           /* no direction */
        { "\x93\x02" ID "\xc0", 12, -EPROTO },     /* refused without a reason */
        { "\x93\x0b" ID "\x80", 12, -EPROTO },     /* closed without a code */
        { "\x93\x0a" ID "\xd0\xff", 13, -EPROTO }, /* credit below 0 */
        { "\x93\x00" ID "\x81\xa8"
          "contract\x81\xa5major\x01",
          29, -EPROTO }, /* no minor */
        { "\x93\x00" ID "\x81\xa8"
          "contract\xa1x",
          23, -EPROTO },
        { "\x93\x00" ID "\x81\xa4name\x05", 18, -EPROTO },
        { "\xdd\x08\x00\x00\x00", 5, -EPROTO },
        { "\x93\x0c" ID "\xdd\x08\x00\x00\x00", 16, -EPROTO },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        ck_assert_msg(decode_result(rows[i].data, rows[i].size) == rows[i].result, "row %zu",
                      i);
}
END_TEST

START_TEST(test_data_size)
{
    struct envelope envelope = { .kind = ENVELOPE_DATA, .id = 1 };
    char *body = calloc(1, ENVELOPE_DATA_MAX_BYTES + 1);
    struct buf buf = { 0 };

    envelope.body = (struct span){ body, ENVELOPE_DATA_MAX_BYTES };
    ck_assert_int_eq(envelope_encode(&envelope, &buf), 0);
    ck_assert_int_eq(decode_result(buf.data, buf.size), 0);
    buf_clear(&buf);
    envelope.body.size++;
    ck_assert_int_eq(envelope_encode(&envelope, &buf), 0);
    ck_assert_int_eq(decode_result(buf.data, buf.size), -EPROTO);
    buf_done(&buf);
    free(body);
}
END_TEST

START_TEST(test_features_max)
{
    struct buf buf = { 0 };

    ck_assert_int_eq(buf_append(&buf,
                                "\x93\x00" ID "\x81\xa8"
                                "features",
                                21),
                     0);
    ck_assert_int_eq(pack_array(&buf, ENVELOPE_FEATURES_MAX + 1), 0);
    for (unsigned i = 0; i <= ENVELOPE_FEATURES_MAX; i++)
        ck_assert_int_eq(pack_text(&buf, "f", 1), 0);
    ck_assert_int_eq(decode_result(buf.data, buf.size), -EPROTO);
    buf_done(&buf);
}
END_TEST

/* What was in the buffer stays, and stays alone. */
START_TEST(test_encode_limit)
{
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        struct buf whole = { 0 };
        struct buf buf = { 0 };

        ck_assert_int_eq(envelope_encode(&samples[i], &whole), 0);
        ck_assert_int_eq(buf_append_text(&buf, "before"), 0);
        buf.limit = 6 + whole.size - 1;
        ck_assert_int_eq(envelope_encode(&samples[i], &buf), -ENOBUFS);
        ck_assert_str_eq(buf_text(&buf), "before");
        buf_done(&buf);
        buf_done(&whole);
    }
}
END_TEST

UNIT_MAIN("envelope", test_round_trip, test_cut, test_set_id, test_head, test_lenient,
          test_refused, test_data_size, test_features_max, test_encode_limit)
