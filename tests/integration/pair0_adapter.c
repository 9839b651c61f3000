/* pair0_adapter.c - a whole adapter on a plain nng PAIR0 socket and msgpack-c, nothing of this
 * tree: it proves that docs/adapter-protocol.md is all that an adapter needs.
 *
 * It answers every call with its own body: pair0-adapter URL NAME */
#include <stdio.h>
#include <string.h>

#include <msgpack.h>
#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>

enum { HELLO = 0, CALL = 3, REPLY = 4, PING = 12, PONG = 13 };

static void pack_text(msgpack_packer *packer, const char *text)
{
    msgpack_pack_str(packer, strlen(text));
    msgpack_pack_str_body(packer, text, strlen(text));
}

/* The array's head, the kind and the id, which is always nine bytes. */
static void pack_start(msgpack_packer *packer, size_t elements, unsigned kind, uint64_t id)
{
    msgpack_pack_array(packer, elements);
    msgpack_pack_unsigned_int(packer, kind);
    msgpack_pack_fix_uint64(packer, id);
}

static int send_hello(nng_socket router, const char *name)
{
    msgpack_sbuffer bytes;
    msgpack_packer packer;
    int result;

    msgpack_sbuffer_init(&bytes);
    msgpack_packer_init(&packer, &bytes, msgpack_sbuffer_write);
    pack_start(&packer, 3, HELLO, 0);
    msgpack_pack_map(&packer, 4);
    pack_text(&packer, "role"), pack_text(&packer, "adapter");
    pack_text(&packer, "name"), pack_text(&packer, name);
    pack_text(&packer, "version"), pack_text(&packer, "1");
    pack_text(&packer, "contract"), msgpack_pack_map(&packer, 2);
    pack_text(&packer, "major"), msgpack_pack_unsigned_int(&packer, 1);
    pack_text(&packer, "minor"), msgpack_pack_unsigned_int(&packer, 0);
    result = nng_send(router, bytes.data, bytes.size, 0);
    msgpack_sbuffer_destroy(&bytes);
    return result;
}

static int answer(nng_socket router, const msgpack_object_array *message)
{
    unsigned kind = (unsigned)message->ptr[0].via.u64;
    msgpack_sbuffer bytes;
    msgpack_packer packer;
    int result = 0;

    msgpack_sbuffer_init(&bytes);
    msgpack_packer_init(&packer, &bytes, msgpack_sbuffer_write);
    if (kind == PING) {
        pack_start(&packer, 2, PONG, message->ptr[1].via.u64);
    } else if (kind == CALL) {
        const msgpack_object_bin *body = &message->ptr[4].via.bin;

        pack_start(&packer, 3, REPLY, message->ptr[1].via.u64);
        msgpack_pack_bin(&packer, body->size);
        msgpack_pack_bin_body(&packer, body->ptr, body->size);
    }
    if (bytes.size > 0)
        result = nng_send(router, bytes.data, bytes.size, 0);
    msgpack_sbuffer_destroy(&bytes);
    return result;
}

int main(int argc, char **argv)
{
    nng_socket router;
    msgpack_unpacked message;
    void *data;
    size_t size;

    if (argc != 3 || nng_pair0_open(&router) != 0 ||
        nng_socket_set_size(router, NNG_OPT_RECVMAXSZ, 16u * 1024 * 1024) != 0 ||
        nng_dial(router, argv[1], NULL, 0) != 0 || send_hello(router, argv[2]) != 0)
        return 1;
    msgpack_unpacked_init(&message);
    while (nng_recv(router, &data, &size, NNG_FLAG_ALLOC) == 0) {
        size_t offset = 0;

        if (msgpack_unpack_next(&message, data, size, &offset) == MSGPACK_UNPACK_SUCCESS &&
            answer(router, &message.data.via.array) != 0)
            return 1;
        nng_free(data, size);
    }
    return 0;
}
