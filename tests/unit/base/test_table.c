/* test_table.c - the map against a plain array as its model, and the intrusive list. */
#include "table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "list.h"
#include "unit.h"

#define KEYS 5000

START_TEST(test_put_get_remove)
{
    _cleanup_(table_freep)
    struct table *table = NULL;
    int a, b;

    ck_assert_int_eq(table_new(&table), 0);
    ck_assert_ptr_null(table_get(table, 1));
    ck_assert_int_eq(table_put(table, 1, &a), 0);
    ck_assert_int_eq(table_put(table, 1, &b), -EEXIST);
    ck_assert_int_eq(table_put(table, UINT64_MAX, &b), 0);
    ck_assert_ptr_eq(table_get(table, 1), &a);
    ck_assert_uint_eq(table_count(table), 2);
    ck_assert_ptr_eq(table_remove(table, 1), &a);
    ck_assert_ptr_null(table_remove(table, 1));
    ck_assert_ptr_null(table_get(table, 1));
    ck_assert_ptr_eq(table_get(table, UINT64_MAX), &b);
}
END_TEST

START_TEST(test_text_keys)
{
    _cleanup_(table_freep)
    struct table *table = NULL;
    static char keys[KEYS][16];

    ck_assert_int_eq(table_new(&table), 0);
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "key-%d", i);
        ck_assert_int_eq(table_put_text(table, keys[i], keys[i]), 0);
    }
    ck_assert_int_eq(table_put_text(table, "key-77", table), -EEXIST);
    for (int i = 0; i < KEYS; i += 2)
        ck_assert_ptr_eq(table_remove_text(table, keys[i]), keys[i]);
    for (int i = 0; i < KEYS; i++)
        ck_assert_ptr_eq(table_get_text(table, keys[i]), i % 2 ? keys[i] : NULL);
    ck_assert_ptr_null(table_get_text(table, ""));
    ck_assert_int_eq(table_put_text(table, "", table), 0);
    ck_assert_ptr_eq(table_get_text(table, ""), table);
}
END_TEST

/* Random puts and removes; ids that come and go for ever must not fill the table with marks. */
START_TEST(test_against_model)
{
    _cleanup_(table_freep)
    struct table *table = NULL;
    static bool there[KEYS];
    static int values[KEYS];
    size_t count = 0;
    uint32_t random = 12345;

    ck_assert_int_eq(table_new(&table), 0);
    for (int step = 0; step < 100000; step++) {
        unsigned key;

        random = random * 1664525u + 1013904223u;
        key = (random >> 8) % KEYS;
        if (random >> 31) {
            ck_assert_int_eq(table_put(table, key, &values[key]), there[key] ? -EEXIST : 0);
            count += !there[key];
            there[key] = true;
        } else {
            ck_assert_ptr_eq(table_remove(table, key), there[key] ? &values[key] : NULL);
            count -= there[key];
            there[key] = false;
        }
        ck_assert_uint_eq(table_count(table), count);
    }
    for (unsigned key = 0; key < KEYS; key++)
        ck_assert_ptr_eq(table_get(table, key), there[key] ? &values[key] : NULL);
}
END_TEST

START_TEST(test_fresh_ids_for_ever)
{
    _cleanup_(table_freep)
    struct table *table = NULL;

    ck_assert_int_eq(table_new(&table), 0);
    for (uint64_t id = 0; id < 1000000; id++) {
        if (table_put(table, id, table) != 0 || (id >= 10 && !table_remove(table, id - 10)))
            ck_abort_msg("lost at %lu", (unsigned long)id);
    }
    ck_assert_uint_eq(table_count(table), 10);
}
END_TEST

START_TEST(test_removal_while_walking)
{
    _cleanup_(table_freep)
    struct table *table = NULL;
    static int seen[KEYS];
    size_t visits = 0;
    int *value;

    ck_assert_int_eq(table_new(&table), 0);
    for (int i = 0; i < KEYS; i++)
        ck_assert_int_eq(table_put(table, (uint64_t)i, &seen[i]), 0);
    for (size_t cursor = 0; (value = table_next(table, &cursor));) {
        ck_assert_int_eq(++*value, 1);
        visits++;
        if (visits % 3 != 0)
            ck_assert_ptr_eq(table_remove(table, (uint64_t)(value - seen)), value);
    }
    ck_assert_uint_eq(visits, KEYS);
    ck_assert_uint_eq(table_count(table), KEYS / 3);
}
END_TEST

struct item {
    int number;
    struct list node;
};

START_TEST(test_list)
{
    struct list head, other;
    struct item items[5];
    int sum = 0;

    list_init(&head);
    list_init(&other);
    ck_assert_ptr_null(list_pop(&head));
    for (int i = 0; i < 5; i++) {
        items[i].number = i;
        list_append(&head, &items[i].node);
    }
    LIST_FOREACH(node, &head)
    {
        struct item *item = LIST_ENTRY(node, struct item, node);

        sum = sum * 10 + item->number;
        if (item->number % 2)
            list_remove(node);
    }
    ck_assert_int_eq(sum, 1234);
    list_remove(&items[1].node); /* twice is harmless */
    list_prepend(&other, &items[3].node);
    list_move_all(&other, &head);
    ck_assert(list_empty(&head));
    ck_assert_ptr_eq(list_pop(&other), &items[3].node);
    ck_assert_ptr_eq(list_pop(&other), &items[0].node);
    ck_assert_ptr_eq(list_pop(&other), &items[2].node);
    list_move_all(&head, &other);
    ck_assert_ptr_eq(list_pop(&head), &items[4].node);
    ck_assert(list_empty(&head) && list_empty(&other));
}
END_TEST

UNIT_MAIN("table", test_put_get_remove, test_text_keys, test_against_model,
          test_fresh_ids_for_ever, test_removal_while_walking, test_list)
