/* output.c - see output.h. */
#include "output.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "error.h"
#include "json_scan.h"

/* Formatting. It recurses as deep as JSON_DEPTH_MAX. */

struct member {
    char *key; /* as sorted: its text, or the raw key where that has no text */
    size_t key_size;
    struct span raw_key;
    struct span value;
    size_t order;
};

struct members {
    struct member *items;
    size_t count;
};

static void members_done(struct members *members)
{
    for (size_t i = 0; i < members->count; i++)
        free(members->items[i].key);
    free(members->items);
}

static int member_compare(const void *left, const void *right)
{
    const struct member *a = left, *b = right;
    size_t size = a->key_size < b->key_size ? a->key_size : b->key_size;
    int order = memcmp(a->key, b->key, size);

    if (order == 0 && a->key_size != b->key_size)
        order = a->key_size < b->key_size ? -1 : 1;
    return order != 0 ? order : a->order < b->order ? -1 : 1;
}

static size_t count_members(struct span object)
{
    struct json_iterator iterator = json_iterate(object);
    struct span key, value;
    size_t count = 0;

    while (json_next(&iterator, &key, &value))
        count++;
    return count;
}

static int read_key(struct member *member)
{
    struct buf text = { 0 };
    int result = json_string_decode(member->raw_key, &text);

    if (result == -EILSEQ) {
        buf_clear(&text);
        result = buf_append(&text, member->raw_key.data, member->raw_key.size);
    }
    if (result == 0)
        member->key = (char *)buf_take(&text, &member->key_size);
    buf_done(&text);
    return result == 0 && !member->key ? -ENOMEM : result;
}

static int read_members(struct span object, struct members *ret_members)
{
    struct json_iterator iterator = json_iterate(object);
    size_t count = count_members(object);
    struct member *items = calloc(count + 1, sizeof(*items));
    int result = items ? 0 : -ENOMEM;

    *ret_members = (struct members){ .items = items };
    while (result == 0 && json_next(&iterator, &items[ret_members->count].raw_key,
                                    &items[ret_members->count].value)) {
        items[ret_members->count].order = ret_members->count;
        result = read_key(&items[ret_members->count++]);
    }
    if (result == 0)
        qsort(items, count, sizeof(*items), member_compare);
    return result;
}

static bool same_key(const struct member *a, const struct member *b)
{
    return a->key_size == b->key_size && memcmp(a->key, b->key, a->key_size) == 0;
}

static int put_line(struct buf *to, unsigned depth)
{
    int result = buf_append_byte(to, '\n');

    while (depth-- > 0 && result == 0)
        result = buf_append_text(to, "  ");
    return result;
}

/* One spelling for each string, but for those that are no text (half a surrogate pair). */
static int put_string(struct span string, struct buf *to)
{
    struct buf text = { 0 };
    int result = json_string_decode(string, &text);

    if (result == 0)
        result = json_append_string(to, (const char *)text.data, text.size);
    else if (result == -EILSEQ)
        result = buf_append(to, string.data, string.size);
    buf_done(&text);
    return result;
}

static int put_value(struct span value, unsigned depth, struct buf *to);

static int put_member(const struct member *member, bool first, unsigned depth, struct buf *to)
{
    int result = first ? 0 : buf_append_byte(to, ',');

    if (result == 0)
        result = put_line(to, depth);
    if (result == 0)
        result = put_string(member->raw_key, to);
    if (result == 0)
        result = buf_append_text(to, ": ");
    return result == 0 ? put_value(member->value, depth, to) : result;
}

/* Of a repeated key the last counts. */
static int put_object(struct span object, unsigned depth, struct buf *to)
{
    struct members members;
    int result = read_members(object, &members);
    bool first = true;

    if (result == 0)
        result = buf_append_byte(to, '{');
    for (size_t i = 0; i < members.count && result == 0; i++) {
        if (i + 1 < members.count && same_key(&members.items[i], &members.items[i + 1]))
            continue;
        result = put_member(&members.items[i], first, depth + 1, to);
        first = false;
    }
    if (result == 0 && !first)
        result = put_line(to, depth);
    if (result == 0)
        result = buf_append_byte(to, '}');
    members_done(&members);
    return result;
}

static int put_array(struct span array, unsigned depth, struct buf *to)
{
    struct json_iterator iterator = json_iterate(array);
    struct span key, value;
    int result = buf_append_byte(to, '[');
    bool first = true;

    while (result == 0 && json_next(&iterator, &key, &value)) {
        result = first ? 0 : buf_append_byte(to, ',');
        first = false;
        if (result == 0)
            result = put_line(to, depth + 1);
        if (result == 0)
            result = put_value(value, depth + 1, to);
    }
    if (result == 0 && !first)
        result = put_line(to, depth);
    return result == 0 ? buf_append_byte(to, ']') : result;
}

static int put_value(struct span value, unsigned depth, struct buf *to)
{
    switch (json_kind(value)) {
    case JSON_OBJECT:
        return put_object(value, depth, to);
    case JSON_ARRAY:
        return put_array(value, depth, to);
    case JSON_STRING:
        return put_string(value, to);
    default:
        return buf_append(to, value.data, value.size);
    }
}

int output_format(struct span value, struct buf *to)
{
    int result = put_value(value, 0, to);

    return result == 0 ? buf_append_byte(to, '\n') : result;
}

/* Writing. */

int output_write(int fd, const void *data, size_t size)
{
    const char *at = data;

    while (size > 0) {
        ssize_t written = write(fd, at, size);

        if (written < 0 && errno == EAGAIN) {
            struct pollfd wait = { .fd = fd, .events = POLLOUT };

            (void)poll(&wait, 1, -1); /* the next write tells what became of it */
            continue;
        }
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        at += written;
        size -= (size_t)written;
    }
    return 0;
}

/* Errors. */

int output_member_text(struct span object, const char *name, struct buf *to)
{
    int result = json_string_decode(json_get(object, name), to);

    return result == -EINVAL || result == -EILSEQ ? 0 : result;
}

static bool is_envelope(struct span text, struct span *ret_envelope)
{
    return json_scan(text.data, text.size, ret_envelope, NULL) == 0 &&
           json_kind(*ret_envelope) == JSON_OBJECT &&
           json_get(*ret_envelope, "code").data != NULL;
}

static int put_plain(struct span error, struct buf *to)
{
    struct buf code = { 0 }, message = { 0 };
    int result = output_member_text(error, "code", &code);

    if (result == 0)
        result = output_member_text(error, "message", &message);
    if (result == 0)
        result = buf_append_text(to, "{\"code\":");
    if (result == 0)
        result = json_append_string(to, (const char *)code.data, code.size);
    if (result == 0)
        result = buf_append_text(to, ",\"message\":");
    if (result == 0)
        result = json_append_string(to, (const char *)message.data, message.size);
    if (result == 0)
        result = buf_append_byte(to, '}');
    buf_done(&code);
    buf_done(&message);
    return result;
}

int output_envelope(struct span error, struct buf *to)
{
    struct buf message = { 0 };
    struct span envelope;
    int result = output_member_text(error, "message", &message);

    if (result == 0 &&
        is_envelope((struct span){ (const char *)message.data, message.size }, &envelope))
        result = buf_append(to, envelope.data, envelope.size);
    else if (result == 0)
        result = put_plain(error, to);
    buf_done(&message);
    return result;
}
