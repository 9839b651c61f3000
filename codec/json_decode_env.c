/* json_decode_env.c - the two shapes of an environment (contract 4.3). */
#include <string.h>

#include "json_decode.h"
#include "json_scan.h"

/* Splits TEXT, which is consumed, at its first `=`. */
static int env_entry_split(char *own_text, struct env_entry *entry, struct sandbox_error *err)
{
    char *equals = strchr(own_text, '=');

    entry->name = own_text;
    if (!equals)
        return 0;
    *equals = 0;
    entry->value = strdup(equals + 1);
    return entry->value ? 0 : json_decode_no_memory(err);
}

static int decode_env_list(struct span value, const struct place *place, struct env *env,
                           struct sandbox_error *err)
{
    struct json_iterator iterator = json_iterate(value);
    struct span key, element;

    while (json_next(&iterator, &key, &element)) {
        struct place inner = { .parent = place, .index = env->count };
        char *text;

        if (json_decode_text(&json_decode_element, element, &inner, &text, err) < 0 ||
            env_entry_split(text, &env->entries[env->count++], err) < 0)
            return -1;
    }
    return 0;
}

/* A member of an env object before its value is looked at: an earlier one of the same name does
 * not count, whatever it holds. */
struct env_member {
    char *name; /* owned until it is moved into its entry */
    struct span value;
};

static int env_member_compare(const void *left, const void *right)
{
    const struct env_member *a = left, *b = right;
    int order = strcmp(a->name, b->name);

    if (order != 0)
        return order;
    return a->value.data < b->value.data ? -1 : a->value.data > b->value.data;
}

struct env_members {
    size_t count;
    struct env_member *items;
};

static void env_members_done(struct env_members *members)
{
    for (size_t i = 0; i < members->count; i++)
        free(members->items[i].name);
    free(members->items);
}

static int env_members_read(struct span value, const struct place *place,
                            struct env_members *members, struct sandbox_error *err)
{
    struct json_iterator iterator = json_iterate(value);
    struct span key, element;
    void *items;

    if (json_decode_prepare(value, sizeof(*members->items), place, &items, err) < 0)
        return -1;
    members->items = items;
    while (json_next(&iterator, &key, &element)) {
        struct env_member *member = &members->items[members->count];

        if (json_decode_text(&json_decode_element, key, place, &member->name, err) < 0)
            return -1;
        member->value = element;
        members->count++;
    }
    return 0;
}

static int env_members_move(struct env_members *members, const struct place *place,
                            struct env *env, struct sandbox_error *err)
{
    for (size_t i = 0; i < members->count; i++) {
        struct env_member *member = &members->items[i];
        struct env_entry *entry = &env->entries[env->count];
        struct place inner = { .parent = place, .name = member->name };

        if (i + 1 < members->count && strcmp(member->name, member[1].name) == 0)
            continue;
        if (json_decode_text(&json_decode_element, member->value, &inner, &entry->value, err) <
            0)
            return -1;
        entry->name = take_ptr(member->name);
        env->count++;
    }
    return 0;
}

static int decode_env_object(struct span value, const struct place *place, struct env *env,
                             struct sandbox_error *err)
{
    _cleanup_(env_members_done)
    struct env_members members = { 0 };

    env->is_object = true;
    if (env_members_read(value, place, &members, err) < 0)
        return -1;
    if (members.count > 1)
        qsort(members.items, members.count, sizeof(*members.items), env_member_compare);
    return env_members_move(&members, place, env, err);
}

int json_decode_env(const struct field *field, struct span value, const struct place *place,
                    struct env *env, struct sandbox_error *err)
{
    enum json_kind kind = json_kind(value);
    void *entries;

    if (kind != JSON_ARRAY && kind != JSON_OBJECT)
        return place_fail(place, field, value, err);
    if (json_decode_prepare(value, sizeof(*env->entries), place, &entries, err) < 0)
        return -1;
    env->entries = entries;
    return kind == JSON_ARRAY ? decode_env_list(value, place, env, err)
                              : decode_env_object(value, place, env, err);
}
