/* test_pack.c - msgpack, with msgpack-c as the witness, and everything that is none. */
#include "pack.h"

#include <errno.h>
#include <string.h>

#include <msgpack.h>

#include "unit.h"

/* In memory of exactly its size, so that a sanitizer sees a read behind it. */
static int read_one(const void *data, size_t size, struct pack_item *ret_item)
{
    uint8_t *copy = malloc(size ? size : 1);
    struct pack_reader reader;
    int result;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, data, size);
    reader = pack_reader(copy, size);
    result = pack_read(&reader, ret_item);
    if (result == 0)
        ck_assert(reader.at <= reader.end);
    free(copy);
    return result;
}

static const int64_t integers[] = { 0,         1,         0x7F,    0x80,       0xFF,
                                    0x100,     0xFFFF,    0x10000, UINT32_MAX, 0x100000000,
                                    INT64_MAX, -1,        -0x20,   -0x21,      INT8_MIN,
                                    -0x81,     INT16_MIN, -0x8001, INT32_MIN,  -0x80000001LL,
                                    INT64_MIN };

START_TEST(test_integers_written)
{
    for (size_t i = 0; i < ARRAY_SIZE(integers); i++) {
        struct buf ours = { 0 };
        msgpack_sbuffer theirs;
        msgpack_packer packer;

        msgpack_sbuffer_init(&theirs);
        msgpack_packer_init(&packer, &theirs, msgpack_sbuffer_write);
        msgpack_pack_int64(&packer, integers[i]);
        ck_assert_int_eq(pack_int(&ours, integers[i]), 0);
        ck_assert_uint_eq(ours.size, theirs.size);
        ck_assert_mem_eq(ours.data, theirs.data, theirs.size);
        buf_done(&ours);
        msgpack_sbuffer_destroy(&theirs);
    }
}
END_TEST

START_TEST(test_integers_read)
{
    for (size_t i = 0; i < ARRAY_SIZE(integers); i++) {
        struct buf buf = { 0 };
        struct pack_item item;

        ck_assert_int_eq(pack_int(&buf, integers[i]), 0);
        ck_assert_int_eq(read_one(buf.data, buf.size, &item), 0);
        ck_assert_int_eq(item.kind, integers[i] < 0 ? PACK_INT : PACK_UINT);
        if (integers[i] < 0)
            ck_assert_int_eq(item.integer, integers[i]);
        else
            ck_assert_uint_eq(item.number, (uint64_t)integers[i]);
        buf_done(&buf);
    }
}
END_TEST

START_TEST(test_unsigned)
{
    /* Every width may hold a small number, and a positive one may be written as signed. */
    static const struct {
        const char *data;
        size_t size;
        uint64_t value;
    } rows[] = {
        { "\xcc\x05", 2, 5 },
        { "\xcd\x00\x05", 3, 5 },
        { "\xce\x00\x00\x00\x05", 5, 5 },
        { "\xcf\x00\x00\x00\x00\x00\x00\x00\x05", 9, 5 },
        { "\xd0\x05", 2, 5 },
        { "\xd3\x00\x00\x00\x00\x00\x00\x00\x05", 9, 5 },
        { "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9, UINT64_MAX },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct pack_item item;

        ck_assert_int_eq(read_one(rows[i].data, rows[i].size, &item), 0);
        ck_assert_int_eq(item.kind, PACK_UINT);
        ck_assert_uint_eq(item.number, rows[i].value);
        ck_assert_int_eq(read_one(rows[i].data, rows[i].size - 1, &item), -EPROTO);
    }
}
END_TEST

static void put_all(struct buf *to, const char *text, size_t size)
{
    ck_assert_int_eq(pack_array(to, 5), 0);
    ck_assert_int_eq(pack_nil(to), 0);
    ck_assert_int_eq(pack_bool(to, true), 0);
    ck_assert_int_eq(pack_text(to, text, size), 0);
    ck_assert_int_eq(pack_bytes(to, text, size), 0);
    ck_assert_int_eq(pack_map(to, 1), 0);
    ck_assert_int_eq(pack_uint(to, UINT64_MAX), 0);
    ck_assert_int_eq(pack_bool(to, false), 0);
}

static void check_with_witness(const struct buf *buf, const char *text, size_t size)
{
    msgpack_unpacked unpacked;
    msgpack_object_array array;
    size_t offset = 0;

    msgpack_unpacked_init(&unpacked);
    ck_assert_int_eq(
        msgpack_unpack_next(&unpacked, (const char *)buf->data, buf->size, &offset),
        MSGPACK_UNPACK_SUCCESS);
    ck_assert_uint_eq(offset, buf->size);
    array = unpacked.data.via.array;
    ck_assert_uint_eq(array.size, 5);
    ck_assert_int_eq(array.ptr[0].type, MSGPACK_OBJECT_NIL);
    ck_assert(array.ptr[1].via.boolean);
    ck_assert_int_eq(array.ptr[2].type, MSGPACK_OBJECT_STR);
    ck_assert_uint_eq(array.ptr[2].via.str.size, size);
    if (size > 0)
        ck_assert_mem_eq(array.ptr[2].via.str.ptr, text, size);
    ck_assert_int_eq(array.ptr[3].type, MSGPACK_OBJECT_BIN);
    ck_assert_uint_eq(array.ptr[3].via.bin.size, size);
    ck_assert_uint_eq(array.ptr[4].via.map.ptr[0].key.via.u64, UINT64_MAX);
    msgpack_unpacked_destroy(&unpacked);
}

START_TEST(test_text_sizes)
{
    static const size_t sizes[] = { 0, 1, 31, 32, 255, 256, 65535, 65536 };

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct buf buf = { 0 };
        struct pack_reader reader;
        struct pack_item item;
        char *text = malloc(sizes[i] + 1);

        memset(text, 'x', sizes[i] + 1);
        put_all(&buf, text, sizes[i]);
        check_with_witness(&buf, text, sizes[i]);
        reader = pack_reader(buf.data, buf.size);
        ck_assert_int_eq(pack_read(&reader, &item), 0);
        ck_assert_int_eq(item.kind, PACK_ARRAY);
        ck_assert_uint_eq(item.count, 5);
        ck_assert(pack_at_nil(&reader));
        ck_assert_int_eq(pack_skip(&reader), 0);
        ck_assert_int_eq(pack_read(&reader, &item), 0);
        ck_assert_int_eq(item.kind, PACK_BOOL);
        ck_assert_int_eq(pack_read(&reader, &item), 0);
        ck_assert_int_eq(item.kind, PACK_TEXT);
        ck_assert_uint_eq(item.span.size, sizes[i]);
        ck_assert_int_eq(pack_read(&reader, &item), 0);
        ck_assert_int_eq(item.kind, PACK_BYTES);
        ck_assert_int_eq(pack_skip(&reader), 0);
        ck_assert_ptr_eq(reader.at, reader.end);
        buf_done(&buf);
        free(text);
    }
}
END_TEST

START_TEST(test_many_elements)
{
    static const uint32_t counts[] = { 15, 16, 65535, 65536 };

    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        struct buf buf = { 0 };
        struct pack_reader reader;
        int result = pack_array(&buf, counts[i]);

        for (uint32_t j = 0; j < counts[i] && result == 0; j++)
            result = pack_map(&buf, 0);
        ck_assert_int_eq(result, 0);
        reader = pack_reader(buf.data, buf.size);
        ck_assert_int_eq(pack_skip(&reader), 0);
        ck_assert_ptr_eq(reader.at, reader.end);
        reader = pack_reader(buf.data, buf.size - 1);
        ck_assert_int_eq(pack_skip(&reader), -EPROTO);
        buf_done(&buf);
    }
}
END_TEST

/* Each first byte, with what follows cut at each length: an item or -EPROTO, nothing else. */
START_TEST(test_every_head)
{
    uint8_t data[40] = { 0 };

    for (unsigned first = 0; first < 256; first++) {
        data[0] = (uint8_t)first;
        for (size_t size = 0; size <= sizeof(data); size++) {
            struct pack_item item;
            int result = read_one(data, size, &item);

            ck_assert(result == -EPROTO || (result == 0 && item.kind < PACK_KIND_MAX));
            if (size == 0 || first == 0xc1)
                ck_assert_int_eq(result, -EPROTO);
            /* Zeros are a whole item behind every head but the reserved one. */
            if (size == sizeof(data) && first != 0xc1)
                ck_assert_msg(result == 0, "head %02x", first);
        }
    }
}
END_TEST

START_TEST(test_refused)
{
    static const struct {
        const char *data;
        size_t size;
    } rows[] = {
        { "\xdd\x08\x00\x00\x00", 5 },         /* 2^27 elements */
        { "\xdf\x80\x00\x00\x00\x01\x01", 7 }, /* 2^31 pairs */
        { "\x81\x01", 2 },                     /* half a pair */
        { "\xc6\xff\xff\xff\xff\x00", 6 },     /* 4 GiB of bytes */
        { "\xc9\xff\xff\xff\xff\x00", 6 },     /* the type's byte must not overflow */
        { "\xdb\x00\x00\x00\x02\x61", 6 },     /* text behind the end */
        { "\xa2\xc3\x28", 3 },                 /* no UTF-8 */
        { "\xc1", 1 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct pack_item item;

        ck_assert_int_eq(read_one(rows[i].data, rows[i].size, &item), -EPROTO);
    }
}
END_TEST

START_TEST(test_depth)
{
    uint8_t data[PACK_DEPTH_MAX + 2];
    struct pack_reader reader;

    memset(data, 0x91, sizeof(data)); /* lists of one */
    data[PACK_DEPTH_MAX - 1] = 0xc0;
    reader = pack_reader(data, PACK_DEPTH_MAX);
    ck_assert_int_eq(pack_skip(&reader), 0);
    data[PACK_DEPTH_MAX - 1] = 0x91;
    data[PACK_DEPTH_MAX] = 0xc0;
    reader = pack_reader(data, PACK_DEPTH_MAX + 1);
    ck_assert_int_eq(pack_skip(&reader), -EPROTO);
}
END_TEST

UNIT_MAIN("pack", test_integers_written, test_integers_read, test_unsigned, test_text_sizes,
          test_many_elements, test_every_head, test_refused, test_depth)
