/* pack.h - msgpack: an item at a time, read without trust.
 *
 * The reader allocates nothing and never looks past its end; a count or a length that the rest
 * of the message cannot hold is refused when its head is read, so no caller can be made to
 * allocate for it. Writers give 0, -ENOMEM or -ENOBUFS. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "span.h"

enum pack_kind {
    PACK_NIL,
    PACK_BOOL,  /* flag */
    PACK_UINT,  /* number: every integer >= 0, however it is written */
    PACK_INT,   /* integer: < 0 */
    PACK_FLOAT, /* read over; its value is not kept */
    PACK_TEXT,  /* span: valid UTF-8 */
    PACK_BYTES, /* span */
    PACK_EXT,   /* span */
    PACK_ARRAY, /* count elements follow */
    PACK_MAP,   /* count pairs follow */
    PACK_KIND_MAX
};

struct pack_item {
    enum pack_kind kind;
    bool flag;
    uint64_t number;
    int64_t integer;
    struct span span;
    uint32_t count;
};

struct pack_reader {
    const uint8_t *at;
    const uint8_t *end;
};

static inline struct pack_reader pack_reader(const uint8_t *data, size_t size)
{
    return (struct pack_reader){ .at = data, .end = data + size };
}

/* The next item; of an array or a map its head alone. 0 or -EPROTO, *ret_item is then
 * undefined. */
int pack_read(struct pack_reader *reader, struct pack_item *ret_item);

/* Whether the next item is nil; it is not read. */
static inline bool pack_at_nil(const struct pack_reader *reader)
{
    return reader->at < reader->end && *reader->at == 0xc0;
}

#define PACK_DEPTH_MAX 32
/* Reads over one item with all that is in it. 0, or -EPROTO (also deeper than PACK_DEPTH_MAX).
 */
int pack_skip(struct pack_reader *reader);

int pack_nil(struct buf *to);
int pack_bool(struct buf *to, bool value);
int pack_uint(struct buf *to, uint64_t value);
int pack_int(struct buf *to, int64_t value);
int pack_text(struct buf *to, const char *text, size_t size); /* TEXT is UTF-8 */
int pack_bytes(struct buf *to, const void *data, size_t size);
int pack_array(struct buf *to, uint32_t count);
int pack_map(struct buf *to, uint32_t count);

#define PACK_HEAD_MAX 9
/* Always in nine bytes, so that it can be rewritten in place. */
size_t pack_uint64_head(uint8_t ret_head[PACK_HEAD_MAX], uint64_t value);
/* The same of what stands before SIZE bytes, in five. */
size_t pack_bytes32_head(uint8_t ret_head[PACK_HEAD_MAX], uint32_t size);
/* What stands before SIZE bytes. */
size_t pack_bytes_head(uint8_t ret_head[PACK_HEAD_MAX], uint32_t size);
