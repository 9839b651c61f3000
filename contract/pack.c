/* pack.c - see pack.h. */
#include "pack.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "utf8.h"

/* How the bytes behind the first one are read. */
enum shape {
    SHAPE_RESERVED, /* 0xc1 */
    SHAPE_NIL,
    SHAPE_FALSE,
    SHAPE_TRUE,
    SHAPE_FLOAT, /* argument: WIDTH bytes that are not looked at */
    SHAPE_UINT,  /* argument: the number */
    SHAPE_INT,   /* argument: the number, sign-extended */
    SHAPE_TEXT,  /* argument: size in bytes; so for the rest */
    SHAPE_BYTES,
    SHAPE_EXT,
    SHAPE_FIXEXT, /* no argument: WIDTH is the size */
    SHAPE_ARRAY,
    SHAPE_MAP,
};

/* First bytes 0xc0 to 0xdf; all others hold their argument themselves. */
static const struct head_row {
    uint8_t shape;
    uint8_t width;
} head_rows[] = {
    [0x00] = { SHAPE_NIL, 0 },     [0x01] = { SHAPE_RESERVED, 0 }, [0x02] = { SHAPE_FALSE, 0 },
    [0x03] = { SHAPE_TRUE, 0 },    [0x04] = { SHAPE_BYTES, 1 },    [0x05] = { SHAPE_BYTES, 2 },
    [0x06] = { SHAPE_BYTES, 4 },   [0x07] = { SHAPE_EXT, 1 },      [0x08] = { SHAPE_EXT, 2 },
    [0x09] = { SHAPE_EXT, 4 },     [0x0a] = { SHAPE_FLOAT, 4 },    [0x0b] = { SHAPE_FLOAT, 8 },
    [0x0c] = { SHAPE_UINT, 1 },    [0x0d] = { SHAPE_UINT, 2 },     [0x0e] = { SHAPE_UINT, 4 },
    [0x0f] = { SHAPE_UINT, 8 },    [0x10] = { SHAPE_INT, 1 },      [0x11] = { SHAPE_INT, 2 },
    [0x12] = { SHAPE_INT, 4 },     [0x13] = { SHAPE_INT, 8 },      [0x14] = { SHAPE_FIXEXT, 1 },
    [0x15] = { SHAPE_FIXEXT, 2 },  [0x16] = { SHAPE_FIXEXT, 4 },   [0x17] = { SHAPE_FIXEXT, 8 },
    [0x18] = { SHAPE_FIXEXT, 16 }, [0x19] = { SHAPE_TEXT, 1 },     [0x1a] = { SHAPE_TEXT, 2 },
    [0x1b] = { SHAPE_TEXT, 4 },    [0x1c] = { SHAPE_ARRAY, 2 },    [0x1d] = { SHAPE_ARRAY, 4 },
    [0x1e] = { SHAPE_MAP, 2 },     [0x1f] = { SHAPE_MAP, 4 },
};
static_assert(ARRAY_SIZE(head_rows) == 0x20, "a row for each first byte");

static size_t left(const struct pack_reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

/* WIDTH bytes, big endian; 0 for none. */
static int read_argument(struct pack_reader *reader, unsigned width, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (left(reader) < width)
        return -EPROTO;
    for (unsigned i = 0; i < width; i++)
        value = value << 8 | *reader->at++;
    *ret_value = value;
    return 0;
}

static int64_t sign_extend(uint64_t value, unsigned width)
{
    unsigned unused = 64 - 8 * width;

    return (int64_t)(value << unused) >> unused;
}

static int read_span(struct pack_reader *reader, uint64_t size, struct span *ret_span)
{
    if (size > left(reader))
        return -EPROTO;
    *ret_span = (struct span){ (const char *)reader->at, (size_t)size };
    reader->at += size;
    return 0;
}

static int read_text(struct pack_reader *reader, uint64_t size, struct pack_item *ret_item)
{
    ret_item->kind = PACK_TEXT;
    if (read_span(reader, size, &ret_item->span) < 0)
        return -EPROTO;
    return utf8_valid(ret_item->span.data, ret_item->span.size) ? 0 : -EPROTO;
}

static int read_bytes(struct pack_reader *reader, enum pack_kind kind, uint64_t size,
                      struct pack_item *ret_item)
{
    ret_item->kind = kind;
    return read_span(reader, size, &ret_item->span);
}

/* Each element takes at least one byte, each pair two. */
static int read_count(struct pack_reader *reader, enum pack_kind kind, uint64_t count,
                      struct pack_item *ret_item)
{
    ret_item->kind = kind;
    ret_item->count = (uint32_t)count;
    return count * (kind == PACK_MAP ? 2 : 1) <= left(reader) ? 0 : -EPROTO;
}

static int read_number(int64_t value, struct pack_item *ret_item)
{
    ret_item->kind = value < 0 ? PACK_INT : PACK_UINT;
    ret_item->integer = value;
    ret_item->number = (uint64_t)value;
    return 0;
}

static int read_shape(struct pack_reader *reader, const struct head_row *row,
                      struct pack_item *ret_item)
{
    uint64_t argument = 0;

    if (row->shape != SHAPE_FIXEXT && read_argument(reader, row->width, &argument) < 0)
        return -EPROTO;
    switch (row->shape) {
    case SHAPE_NIL:
        ret_item->kind = PACK_NIL;
        return 0;
    case SHAPE_FALSE:
    case SHAPE_TRUE:
        ret_item->kind = PACK_BOOL;
        ret_item->flag = row->shape == SHAPE_TRUE;
        return 0;
    case SHAPE_FLOAT:
        ret_item->kind = PACK_FLOAT;
        return 0;
    case SHAPE_UINT:
        ret_item->kind = PACK_UINT;
        ret_item->number = argument;
        return 0;
    case SHAPE_INT:
        return read_number(sign_extend(argument, row->width), ret_item);
    case SHAPE_TEXT:
        return read_text(reader, argument, ret_item);
    case SHAPE_BYTES:
        return read_bytes(reader, PACK_BYTES, argument, ret_item);
    case SHAPE_EXT: /* the type's byte is not counted in the size */
        return read_bytes(reader, PACK_EXT, argument + 1, ret_item);
    case SHAPE_FIXEXT:
        return read_bytes(reader, PACK_EXT, row->width + 1u, ret_item);
    case SHAPE_ARRAY:
        return read_count(reader, PACK_ARRAY, argument, ret_item);
    case SHAPE_MAP:
        return read_count(reader, PACK_MAP, argument, ret_item);
    default:
        return -EPROTO;
    }
}

int pack_read(struct pack_reader *reader, struct pack_item *ret_item)
{
    uint8_t first;

    if (reader->at == reader->end)
        return -EPROTO;
    first = *reader->at++;
    if (first < 0x80)
        return read_number(first, ret_item);
    if (first < 0x90)
        return read_count(reader, PACK_MAP, first & 0x0F, ret_item);
    if (first < 0xa0)
        return read_count(reader, PACK_ARRAY, first & 0x0F, ret_item);
    if (first < 0xc0)
        return read_text(reader, first & 0x1F, ret_item);
    if (first >= 0xe0)
        return read_number((int8_t)first, ret_item);
    return read_shape(reader, &head_rows[first - 0xc0], ret_item);
}

int pack_skip(struct pack_reader *reader)
{
    uint64_t pending[PACK_DEPTH_MAX]; /* items left to read, by depth */
    unsigned depth = 0;

    pending[0] = 1;
    for (;;) {
        struct pack_item item;

        while (pending[depth] == 0) {
            if (depth == 0)
                return 0;
            depth--;
        }
        pending[depth]--;
        if (pack_read(reader, &item) < 0)
            return -EPROTO;
        if (item.kind != PACK_ARRAY && item.kind != PACK_MAP)
            continue;
        if (++depth == PACK_DEPTH_MAX)
            return -EPROTO;
        pending[depth] = (uint64_t)item.count * (item.kind == PACK_MAP ? 2 : 1);
    }
}

/* FIRST and WIDTH bytes of VALUE behind it. */
static size_t head_write(uint8_t *to, uint8_t first, uint64_t value, unsigned width)
{
    to[0] = first;
    for (unsigned i = 0; i < width; i++)
        to[1 + i] = (uint8_t)(value >> 8 * (width - 1 - i));
    return 1 + width;
}

static int append_head(struct buf *to, uint8_t first, uint64_t value, unsigned width)
{
    uint8_t head[PACK_HEAD_MAX];

    return buf_append(to, head, head_write(head, first, value, width));
}

int pack_nil(struct buf *to)
{
    return buf_append_byte(to, 0xc0);
}

int pack_bool(struct buf *to, bool value)
{
    return buf_append_byte(to, value ? 0xc3 : 0xc2);
}

int pack_uint(struct buf *to, uint64_t value)
{
    if (value < 0x80)
        return buf_append_byte(to, (uint8_t)value);
    if (value <= UINT8_MAX)
        return append_head(to, 0xcc, value, 1);
    if (value <= UINT16_MAX)
        return append_head(to, 0xcd, value, 2);
    if (value <= UINT32_MAX)
        return append_head(to, 0xce, value, 4);
    return append_head(to, 0xcf, value, 8);
}

int pack_int(struct buf *to, int64_t value)
{
    if (value >= 0)
        return pack_uint(to, (uint64_t)value);
    if (value >= -0x20)
        return buf_append_byte(to, (uint8_t)value);
    if (value >= INT8_MIN)
        return append_head(to, 0xd0, (uint64_t)value, 1);
    if (value >= INT16_MIN)
        return append_head(to, 0xd1, (uint64_t)value, 2);
    if (value >= INT32_MIN)
        return append_head(to, 0xd2, (uint64_t)value, 4);
    return append_head(to, 0xd3, (uint64_t)value, 8);
}

int pack_text(struct buf *to, const char *text, size_t size)
{
    int result;

    if (size < 0x20)
        result = buf_append_byte(to, (uint8_t)(0xa0 | size));
    else if (size <= UINT8_MAX)
        result = append_head(to, 0xd9, size, 1);
    else if (size <= UINT16_MAX)
        result = append_head(to, 0xda, size, 2);
    else if (size <= UINT32_MAX)
        result = append_head(to, 0xdb, size, 4);
    else
        result = -ENOBUFS;
    return result == 0 ? buf_append(to, text, size) : result;
}

size_t pack_bytes32_head(uint8_t ret_head[PACK_HEAD_MAX], uint32_t size)
{
    return head_write(ret_head, 0xc6, size, 4);
}

size_t pack_bytes_head(uint8_t ret_head[PACK_HEAD_MAX], uint32_t size)
{
    if (size <= UINT8_MAX)
        return head_write(ret_head, 0xc4, size, 1);
    if (size <= UINT16_MAX)
        return head_write(ret_head, 0xc5, size, 2);
    return pack_bytes32_head(ret_head, size);
}

int pack_bytes(struct buf *to, const void *data, size_t size)
{
    uint8_t head[PACK_HEAD_MAX];
    int result;

    if (size > UINT32_MAX)
        return -ENOBUFS;
    result = buf_append(to, head, pack_bytes_head(head, (uint32_t)size));
    return result == 0 ? buf_append(to, data, size) : result;
}

int pack_array(struct buf *to, uint32_t count)
{
    if (count < 0x10)
        return buf_append_byte(to, (uint8_t)(0x90 | count));
    return count <= UINT16_MAX ? append_head(to, 0xdc, count, 2)
                               : append_head(to, 0xdd, count, 4);
}

int pack_map(struct buf *to, uint32_t count)
{
    if (count < 0x10)
        return buf_append_byte(to, (uint8_t)(0x80 | count));
    return count <= UINT16_MAX ? append_head(to, 0xde, count, 2)
                               : append_head(to, 0xdf, count, 4);
}

size_t pack_uint64_head(uint8_t ret_head[PACK_HEAD_MAX], uint64_t value)
{
    return head_write(ret_head, 0xcf, value, 8);
}
