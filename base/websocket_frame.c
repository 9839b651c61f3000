/* websocket_frame.c - what is sent: frames, close payloads, the keys of the handshake. */
#include "websocket.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base64.h"
#include "hash.h"
#include "utf8.h"

#define KEY_BYTES 16
#define HANDSHAKE_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

static int random_bytes(void *to, size_t size)
{
    ssize_t got = getrandom(to, size, 0);

    if (got < 0)
        return -errno;
    return (size_t)got == size ? 0 : -EIO; /* never short below 256 bytes */
}

/* Frames. */

size_t websocket_head(enum websocket_opcode opcode, uint64_t size, const uint8_t *mask,
                      uint8_t ret_head[WEBSOCKET_HEAD_MAX_BYTES])
{
    unsigned length_bytes = size < 126 ? 0 : size <= UINT16_MAX ? 2 : 8;
    size_t at = 2;

    ret_head[0] = (uint8_t)(0x80 | opcode);
    ret_head[1] = (uint8_t)(length_bytes == 0 ? size : length_bytes == 2 ? 126 : 127);
    for (unsigned i = length_bytes; i > 0; i--)
        ret_head[at++] = (uint8_t)(size >> 8 * (i - 1));
    if (mask) {
        ret_head[1] |= 0x80;
        memcpy(ret_head + at, mask, 4);
        at += 4;
    }
    return at;
}

static int masked_append(struct buf *to, const uint8_t mask[4], const uint8_t *data,
                         size_t size)
{
    uint8_t *target = buf_reserve(to, size);

    if (!target)
        return to->limit > 0 ? -ENOBUFS : -ENOMEM;
    for (size_t i = 0; i < size; i++)
        target[i] = data[i] ^ mask[i & 3];
    to->size += size;
    return 0;
}

int websocket_frame_append(struct buf *to, enum websocket_role role,
                           enum websocket_opcode opcode, const void *data, size_t size)
{
    bool masks = role == WEBSOCKET_CLIENT;
    uint8_t head[WEBSOCKET_HEAD_MAX_BYTES], mask[4];
    size_t before = to->size;
    int result = masks ? random_bytes(mask, sizeof(mask)) : 0;

    if (result == 0)
        result = buf_append(to, head, websocket_head(opcode, size, masks ? mask : NULL, head));
    if (result == 0)
        result = masks ? masked_append(to, mask, data, size) : buf_append(to, data, size);
    if (result < 0)
        to->size = before;
    return result;
}

bool websocket_close_code_valid(unsigned code)
{
    if (code >= 3000 && code <= 4999)
        return true;
    return code >= 1000 && code <= 1014 && (code < 1004 || code > 1006);
}

size_t websocket_close_payload(unsigned code, const char *reason,
                               uint8_t ret_payload[WEBSOCKET_CONTROL_MAX_BYTES])
{
    size_t size;

    if (code == WEBSOCKET_CLOSE_NONE)
        return 0;
    size = utf8_boundary(reason, strlen(reason), WEBSOCKET_REASON_MAX_BYTES);
    ret_payload[0] = (uint8_t)(code >> 8);
    ret_payload[1] = (uint8_t)code;
    memcpy(ret_payload + 2, reason, size);
    return size + 2;
}

/* Keys. */

/* The text of SIZE bytes, ret_text[RET_SIZE] and a NUL. */
static int key_text(const uint8_t *data, size_t size, size_t ret_size, char *ret_text)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    int result = base64_encode(&text, data, size);

    if (result < 0)
        return result;
    memcpy(ret_text, text.data, ret_size);
    ret_text[ret_size] = '\0';
    return 0;
}

bool websocket_key_valid(struct span key)
{
    _cleanup_(buf_done)
    struct buf bytes = { 0 };

    return key.size == WEBSOCKET_KEY_SIZE && base64_decode(&bytes, key.data, key.size) == 0 &&
           bytes.size == KEY_BYTES;
}

int websocket_key_accept(struct span key, char ret_accept[WEBSOCKET_ACCEPT_SIZE + 1])
{
    char joined[WEBSOCKET_KEY_SIZE + sizeof(HANDSHAKE_GUID)];
    uint8_t digest[HASH_SHA1_BYTES];

    memcpy(joined, key.data, WEBSOCKET_KEY_SIZE);
    memcpy(joined + WEBSOCKET_KEY_SIZE, HANDSHAKE_GUID, sizeof(HANDSHAKE_GUID));
    hash_sha1(joined, sizeof(joined) - 1, digest);
    return key_text(digest, sizeof(digest), WEBSOCKET_ACCEPT_SIZE, ret_accept);
}

int websocket_key_new(char ret_key[WEBSOCKET_KEY_SIZE + 1])
{
    uint8_t bytes[KEY_BYTES];
    int result = random_bytes(bytes, sizeof(bytes));

    return result < 0 ? result : key_text(bytes, sizeof(bytes), WEBSOCKET_KEY_SIZE, ret_key);
}
