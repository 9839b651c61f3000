/* websocket.c - see websocket.h. The decoder is two states, head and payload; each frame's head
 * is judged whole before a byte of its payload is taken. The encoder is in websocket_frame.c.
 */
#include "websocket.h"

#include <errno.h>
#include <string.h>

#include "utf8.h"

/* A big message must not keep its memory on a connection that only idles afterwards. */
#define KEPT_BYTES (64u * 1024)

void websocket_init(struct websocket *ws, enum websocket_role role, size_t max_message_bytes)
{
    *ws = (struct websocket){ .role = role, .max_message_bytes = max_message_bytes };
}

void websocket_done(struct websocket *ws)
{
    buf_done(&ws->message);
    ws->state = WEBSOCKET_ENDED;
}

size_t websocket_held_bytes(const struct websocket *ws)
{
    return ws->message.size;
}

static void fail(struct websocket *ws, unsigned code, const char *reason,
                 struct websocket_event *ret_event)
{
    ws->state = WEBSOCKET_ENDED;
    *ret_event = (struct websocket_event){ .kind = WEBSOCKET_EVENT_FAILED,
                                           .code = code,
                                           .reason = reason };
}

/* UTF-8 that comes in pieces; the ranges are those of RFC 3629. */

static bool utf8_begin(struct websocket_utf8 *utf8, uint8_t byte)
{
    if (byte < 0x80)
        return true;
    if (byte < 0xC2 || byte > 0xF4)
        return false;
    utf8->needed = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    utf8->low = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
    utf8->high = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
    return true;
}

static bool utf8_feed(struct websocket_utf8 *utf8, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (utf8->needed == 0) {
            if (!utf8_begin(utf8, data[i]))
                return false;
            continue;
        }
        if (data[i] < utf8->low || data[i] > utf8->high)
            return false;
        utf8->needed--;
        utf8->low = 0x80;
        utf8->high = 0xBF;
    }
    return true;
}

/* The head. */

static size_t head_length_bytes(uint8_t second)
{
    switch (second & 0x7F) {
    case 126:
        return 2;
    case 127:
        return 8;
    default:
        return 0;
    }
}

/* How many bytes the head has, as far as those that are there tell. */
static size_t head_wanted(const struct websocket *ws)
{
    if (ws->head_size < 2)
        return 2;
    return 2 + head_length_bytes(ws->head[1]) + (ws->head[1] & 0x80 ? 4 : 0);
}

static bool head_take(struct websocket *ws, const uint8_t **data, size_t *size)
{
    while (*size > 0 && ws->head_size < head_wanted(ws)) {
        ws->head[ws->head_size++] = *(*data)++;
        (*size)--;
    }
    return ws->head_size == head_wanted(ws);
}

static uint64_t head_length(const struct websocket *ws)
{
    size_t count = head_length_bytes(ws->head[1]);
    uint64_t length = 0;

    if (count == 0)
        return ws->head[1] & 0x7F;
    for (size_t i = 0; i < count; i++)
        length = length << 8 | ws->head[2 + i];
    return length;
}

static bool is_control(enum websocket_opcode opcode)
{
    return opcode >= WEBSOCKET_CLOSE;
}

/* What is wrong with the first two bytes and the length; NULL: nothing. */
static const char *head_fault(const struct websocket *ws, uint64_t length)
{
    unsigned opcode = ws->head[0] & 0x0F;
    size_t count = head_length_bytes(ws->head[1]);
    bool masked = ws->head[1] & 0x80;

    if (ws->head[0] & 0x70)
        return "RSV bit set";
    if ((opcode > WEBSOCKET_BINARY && opcode < WEBSOCKET_CLOSE) || opcode > WEBSOCKET_PONG)
        return "unknown opcode";
    if (masked != (ws->role == WEBSOCKET_SERVER))
        return masked ? "masked frame from a server" : "unmasked frame from a client";
    if ((count == 2 && length < 126) || (count == 8 && length <= UINT16_MAX))
        return "length not in its shortest form";
    if (length >> 63)
        return "length with the top bit set";
    if (is_control(opcode) && !(ws->head[0] & 0x80))
        return "fragmented control frame";
    if (is_control(opcode) && length > WEBSOCKET_CONTROL_MAX_BYTES)
        return "control frame over 125 bytes";
    if (opcode == WEBSOCKET_CONTINUATION && !ws->in_message)
        return "continuation of nothing";
    if (!is_control(opcode) && opcode != WEBSOCKET_CONTINUATION && ws->in_message)
        return "data frame inside a fragmented message";
    return NULL;
}

static void message_begin(struct websocket *ws)
{
    ws->in_message = true;
    ws->message_opcode = ws->opcode;
    ws->message_size = 0;
    ws->utf8 = (struct websocket_utf8){ 0 };
}

static void head_judge(struct websocket *ws, struct websocket_event *ret_event)
{
    uint64_t length = head_length(ws);
    const char *fault = head_fault(ws, length);

    if (fault) {
        fail(ws, WEBSOCKET_CLOSE_PROTOCOL, fault, ret_event);
        return;
    }
    ws->final = ws->head[0] & 0x80;
    ws->opcode = ws->head[0] & 0x0F;
    ws->payload_size = length;
    ws->payload_taken = 0;
    if (ws->role == WEBSOCKET_SERVER)
        memcpy(ws->mask, ws->head + ws->head_size - 4, 4);
    ws->head_size = 0;
    ws->state = WEBSOCKET_PAYLOAD;
    if (is_control(ws->opcode))
        return;
    if (ws->opcode != WEBSOCKET_CONTINUATION)
        message_begin(ws);
    if (length > ws->max_message_bytes - ws->message_size)
        fail(ws, WEBSOCKET_CLOSE_TOO_BIG, "message over the limit", ret_event);
    ws->message_size += length;
}

/* The payload. */

static void unmask(const struct websocket *ws, uint8_t *to, const uint8_t *from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = from[i] ^ ws->mask[(ws->payload_taken + i) & 3];
}

/* Where the next SIZE bytes of the payload go. */
static uint8_t *payload_target(struct websocket *ws, size_t size)
{
    if (is_control(ws->opcode))
        return ws->control + ws->payload_taken;
    if (ws->discards)
        buf_clear(&ws->message);
    return buf_reserve(&ws->message, size);
}

/* Takes what is there of the payload. -ENOMEM, -EILSEQ: text that is not UTF-8. */
static int payload_take(struct websocket *ws, const uint8_t **data, size_t *size)
{
    uint64_t left = ws->payload_size - ws->payload_taken;
    size_t count = left < *size ? (size_t)left : *size;
    uint8_t *target = payload_target(ws, count);

    if (!target)
        return -ENOMEM;
    unmask(ws, target, *data, count);
    ws->payload_taken += count;
    *data += count;
    *size -= count;
    if (is_control(ws->opcode))
        return 0;
    ws->message.size += count;
    if (ws->message_opcode == WEBSOCKET_TEXT && !utf8_feed(&ws->utf8, target, count))
        return -EILSEQ;
    return 0;
}

static void message_end(struct websocket *ws, struct websocket_event *ret_event)
{
    if (ws->message_opcode == WEBSOCKET_TEXT && ws->utf8.needed > 0) {
        fail(ws, WEBSOCKET_CLOSE_INVALID_TEXT, "text not UTF-8", ret_event);
        return;
    }
    *ret_event = (struct websocket_event){
        .kind = WEBSOCKET_EVENT_MESSAGE,
        .is_text = ws->message_opcode == WEBSOCKET_TEXT,
        .data = ws->message.data,
        .size = ws->discards ? 0 : ws->message.size,
    };
    ws->in_message = false;
}

static void close_end(struct websocket *ws, struct websocket_event *ret_event)
{
    unsigned code = WEBSOCKET_CLOSE_NONE;
    size_t size = ws->payload_size;

    if (size >= 2)
        code = (unsigned)ws->control[0] << 8 | ws->control[1];
    if (size == 1 || (size >= 2 && !websocket_close_code_valid(code))) {
        fail(ws, WEBSOCKET_CLOSE_PROTOCOL, "close frame with an illegal code", ret_event);
        return;
    }
    if (size > 2 && !utf8_valid(ws->control + 2, size - 2)) {
        fail(ws, WEBSOCKET_CLOSE_INVALID_TEXT, "close reason not UTF-8", ret_event);
        return;
    }
    ws->state = WEBSOCKET_ENDED;
    *ret_event = (struct websocket_event){
        .kind = WEBSOCKET_EVENT_CLOSE,
        .code = code,
        .data = ws->control + 2,
        .size = size > 2 ? size - 2 : 0,
    };
}

static void frame_end(struct websocket *ws, struct websocket_event *ret_event)
{
    ws->state = WEBSOCKET_HEAD;
    switch (ws->opcode) {
    case WEBSOCKET_CLOSE:
        close_end(ws, ret_event);
        break;
    case WEBSOCKET_PING:
    case WEBSOCKET_PONG:
        ret_event->kind = ws->opcode == WEBSOCKET_PING ? WEBSOCKET_EVENT_PING
                                                       : WEBSOCKET_EVENT_PONG;
        ret_event->data = ws->control;
        ret_event->size = ws->payload_size;
        break;
    default:
        if (ws->final)
            message_end(ws, ret_event);
        break;
    }
}

/* Forgets the message that the last event handed out. */
static void message_reset(struct websocket *ws)
{
    if (ws->in_message)
        return;
    if (ws->message.capacity > KEPT_BYTES)
        buf_done(&ws->message);
    buf_clear(&ws->message);
}

int websocket_next(struct websocket *ws, const uint8_t **data, size_t *size,
                   struct websocket_event *ret_event)
{
    *ret_event = (struct websocket_event){ .kind = WEBSOCKET_EVENT_NONE };
    if (ws->state != WEBSOCKET_ENDED)
        message_reset(ws);
    while (ret_event->kind == WEBSOCKET_EVENT_NONE) {
        int result = 0;

        if (ws->state == WEBSOCKET_ENDED)
            return 0;
        if (ws->state == WEBSOCKET_HEAD) {
            if (!head_take(ws, data, size))
                return 0;
            head_judge(ws, ret_event);
            continue;
        }
        result = payload_take(ws, data, size);
        if (result == -EILSEQ)
            fail(ws, WEBSOCKET_CLOSE_INVALID_TEXT, "text not UTF-8", ret_event);
        else if (result < 0)
            return result;
        else if (ws->payload_taken == ws->payload_size)
            frame_end(ws, ret_event);
        else
            return 0;
    }
    return 0;
}
