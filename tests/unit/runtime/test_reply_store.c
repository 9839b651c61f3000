/* test_reply_store.c - answers in memory and on disk. */
#include "reply_store.h"
#include "unit.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#define COUNT 40

static char directory[] = "/tmp/reply-store-XXXXXX";

static size_t size_of(int i)
{
    return i % 3 == 0 ? (size_t)i : REPLY_STORE_MEMORY_BYTES - 2 + (size_t)i * 1000;
}

static void fill(uint8_t *data, size_t size, int seed)
{
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)(i * 31 + (size_t)seed * 7);
}

static unsigned entries(void)
{
    DIR *opened = opendir(directory);
    unsigned count = 0;

    ck_assert_ptr_nonnull(opened);
    while (readdir(opened))
        count++;
    closedir(opened);
    return count - 2;
}

START_TEST(test_keeps_all_sizes)
{
    static uint8_t data[REPLY_STORE_MEMORY_BYTES + COUNT * 1000];
    struct stored_reply replies[COUNT];
    struct reply_store *store;

    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(reply_store_new(directory, &store), 0);
    for (int i = 0; i < COUNT; i++) {
        fill(data, size_of(i), i);
        ck_assert_int_eq(reply_store_put(store, data, size_of(i), &replies[i]), 0);
        ck_assert_uint_eq(replies[i].data == NULL, size_of(i) > REPLY_STORE_MEMORY_BYTES);
    }
    ck_assert_uint_eq(entries(), 0); /* the file has no name */
    for (int i = 0; i < COUNT; i += 2)
        reply_store_drop(store, &replies[i]);
    for (int i = 1; i < COUNT; i += 2) {
        struct buf got = { 0 };

        fill(data, size_of(i), i);
        ck_assert_int_eq(reply_store_get(store, &replies[i], &got), 0);
        ck_assert_uint_eq(got.size, size_of(i));
        ck_assert(memcmp(got.data, data, got.size) == 0);
        buf_done(&got);
        reply_store_drop(store, &replies[i]);
    }
    fill(data, sizeof(data), 9);
    ck_assert_int_eq(reply_store_put(store, data, sizeof(data), &replies[0]), 0);
    ck_assert_int_eq(replies[0].offset, 0); /* an empty file begins anew */
    reply_store_drop(store, &replies[0]);
    reply_store_free(store);
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

START_TEST(test_without_a_disk)
{
    static uint8_t data[REPLY_STORE_MEMORY_BYTES * 2];
    struct stored_reply reply;
    struct reply_store *store;
    struct buf got = { 0 };

    ck_assert_int_eq(reply_store_new("/nonexistent/folder", &store), 0);
    fill(data, sizeof(data), 1);
    ck_assert_int_eq(reply_store_put(store, data, sizeof(data), &reply), 0);
    ck_assert_ptr_nonnull(reply.data);
    ck_assert_int_eq(reply_store_get(store, &reply, &got), 0);
    ck_assert(got.size == sizeof(data) && memcmp(got.data, data, sizeof(data)) == 0);
    buf_done(&got);
    reply_store_drop(store, &reply);
    reply_store_free(store);
}
END_TEST

UNIT_MAIN("reply_store", test_keeps_all_sizes, test_without_a_disk)
