/* table.c - see table.h. Open addressing with linear probing over a power of two of slots; a
 * removed entry leaves a mark unless its probe chain ends there. The hash is SipHash-1-3. */
#include "table.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define TABLE_SMALLEST 16

struct key {
    uint64_t hash;
    uint64_t number;  /* when text is NULL */
    const char *text; /* borrowed */
};

struct slot {
    struct key key;
    void *value;  /* NULL: no entry here */
    bool removed; /* no entry, but a probe goes on */
};

struct table {
    struct slot *slots;
    size_t capacity; /* a power of two */
    size_t count;    /* entries */
    size_t used;     /* entries and removed marks */
    uint64_t secret[2];
};

/* SipHash-1-3 (Aumasson, Bernstein). */

static inline uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static inline void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

static uint64_t sip_hash(const uint64_t secret[2], const void *data, size_t size)
{
    uint64_t v[4] = { secret[0] ^ 0x736f6d6570736575u, secret[1] ^ 0x646f72616e646f6du,
                      secret[0] ^ 0x6c7967656e657261u, secret[1] ^ 0x7465646279746573u };
    const uint8_t *bytes = data;
    uint64_t word, last = (uint64_t)size << 56;
    size_t i = 0;

    for (; i + 8 <= size; i += 8) {
        memcpy(&word, bytes + i, 8);
        sip_word(v, le64toh(word));
    }
    for (int shift = 0; i < size; i++, shift += 8)
        last |= (uint64_t)bytes[i] << shift;
    sip_word(v, last);
    v[2] ^= 0xff;
    for (int round = 0; round < 3; round++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static struct key key_of_number(const struct table *table, uint64_t number)
{
    return (struct key){ .hash = sip_hash(table->secret, &number, sizeof(number)),
                         .number = number };
}

static struct key key_of_text(const struct table *table, const char *text)
{
    return (struct key){ .hash = sip_hash(table->secret, text, strlen(text)), .text = text };
}

static bool key_equal(const struct key *a, const struct key *b)
{
    if (a->hash != b->hash)
        return false;
    return b->text ? strcmp(a->text, b->text) == 0 : a->number == b->number;
}

/* Slots. */

static size_t slot_after(const struct table *table, size_t index)
{
    return (index + 1) & (table->capacity - 1);
}

/* The slot of KEY, or NULL. There is always a free slot, so the probe ends. */
static struct slot *slot_find(const struct table *table, const struct key *key)
{
    size_t index = key->hash & (table->capacity - 1);

    for (;; index = slot_after(table, index)) {
        struct slot *slot = &table->slots[index];

        if (slot->value && key_equal(&slot->key, key))
            return slot;
        if (!slot->value && !slot->removed)
            return NULL;
    }
}

/* Puts an entry whose key is not there. */
static void slot_fill(struct table *table, const struct key *key, void *value)
{
    size_t index = key->hash & (table->capacity - 1);

    while (table->slots[index].value)
        index = slot_after(table, index);
    if (!table->slots[index].removed)
        table->used++;
    table->slots[index] = (struct slot){ .key = *key, .value = value };
    table->count++;
}

/* Gives all entries new slots: more of them, or as many without the marks. */
static int table_rebuild(struct table *table)
{
    struct slot *old = table->slots;
    size_t old_capacity = table->capacity;
    size_t capacity = old_capacity;
    struct slot *slots;

    while (table->count + 1 > capacity / 2)
        capacity *= 2;
    slots = calloc(capacity, sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    table->slots = slots;
    table->capacity = capacity;
    table->count = 0;
    table->used = 0;
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].value)
            slot_fill(table, &old[i].key, old[i].value);
    }
    free(old);
    return 0;
}

static int table_add(struct table *table, const struct key *key, void *value)
{
    if (slot_find(table, key))
        return -EEXIST;
    if (table->used + 1 > table->capacity / 4 * 3) {
        int result = table_rebuild(table);

        if (result < 0)
            return result;
    }
    slot_fill(table, key, value);
    return 0;
}

static void *table_take(struct table *table, const struct key *key)
{
    struct slot *slot = slot_find(table, key);
    size_t index;
    void *value;

    if (!slot)
        return NULL;
    value = take_ptr(slot->value);
    slot->removed = true;
    table->count--;
    index = (size_t)(slot - table->slots);
    /* At the end of a chain the mark, and those before it, hold nothing together. */
    while (table->slots[index].removed) {
        const struct slot *next = &table->slots[slot_after(table, index)];

        if (next->value || next->removed)
            break;
        table->slots[index].removed = false;
        table->used--;
        index = (index - 1) & (table->capacity - 1);
    }
    return value;
}

/* The table. */

int table_new(struct table **ret_table)
{
    _cleanup_(table_freep)
    struct table *table = calloc(1, sizeof(*table));

    if (!table)
        return -ENOMEM;
    if (getrandom(table->secret, sizeof(table->secret), 0) != (ssize_t)sizeof(table->secret))
        return errno > 0 ? -errno : -EIO;
    table->capacity = TABLE_SMALLEST;
    table->slots = calloc(table->capacity, sizeof(*table->slots));
    if (!table->slots)
        return -ENOMEM;
    *ret_table = take_ptr(table);
    return 0;
}

void table_free(struct table *table)
{
    if (!table)
        return;
    free(table->slots);
    free(table);
}

size_t table_count(const struct table *table)
{
    return table->count;
}

int table_put(struct table *table, uint64_t key, void *value)
{
    struct key wanted = key_of_number(table, key);

    return table_add(table, &wanted, value);
}

int table_put_text(struct table *table, const char *key, void *value)
{
    struct key wanted = key_of_text(table, key);

    return table_add(table, &wanted, value);
}

void *table_get(const struct table *table, uint64_t key)
{
    struct key wanted = key_of_number(table, key);
    struct slot *slot = slot_find(table, &wanted);

    return slot ? slot->value : NULL;
}

void *table_get_text(const struct table *table, const char *key)
{
    struct key wanted = key_of_text(table, key);
    struct slot *slot = slot_find(table, &wanted);

    return slot ? slot->value : NULL;
}

void *table_remove(struct table *table, uint64_t key)
{
    struct key wanted = key_of_number(table, key);

    return table_take(table, &wanted);
}

void *table_remove_text(struct table *table, const char *key)
{
    struct key wanted = key_of_text(table, key);

    return table_take(table, &wanted);
}

void *table_next(const struct table *table, size_t *cursor)
{
    while (*cursor < table->capacity) {
        void *value = table->slots[(*cursor)++].value;

        if (value)
            return value;
    }
    return NULL;
}
