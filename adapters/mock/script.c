/* script.c - see script.h. */
#include "script.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "json_scan.h"

#define ANY_OPERATION "*"
#define DEFAULT_MS 1000u
#define DEFAULT_STDERR_BYTES (10u * 1024 * 1024)
#define MS_MAX 3600000u
#define BYTES_MAX (1024u * 1024 * 1024)

struct script_rule {
    struct list node;
    struct rule rule;
};

static const struct {
    const char *name;
    const char *when;
    const char *keys;
} faults[] = {
#define FAULT(id, name, when, keys, text) [FAULT_##id] = { name, when, keys },
#include "faults.def"
};
_Static_assert(ARRAY_SIZE(faults) == FAULT_KIND_MAX, "a row for each fault");

static const char *const outcomes[] = {
    [OUTCOME_NONE] = "",
    [OUTCOME_NEVER_RAN] = "never_ran",
    [OUTCOME_MAY_HAVE_RUN] = "may_have_run",
};

static const char *const when_names[] = {
    [FAULT_BEFORE] = "before",
    [FAULT_AFTER] = "after",
};

const char *fault_name(enum fault_kind kind)
{
    return faults[kind].name;
}

/* Parsing. */

/* Whether WORD is one of the words of LIST. */
static bool is_listed(const char *list, const char *word)
{
    const size_t size = strlen(word);

    for (const char *at = list; (at = strstr(at, word)); at += size) {
        if ((at == list || at[-1] == ' ') && (at[size] == 0 || at[size] == ' '))
            return true;
    }
    return false;
}

static int wrong(char why[SCRIPT_WHY_BYTES], const char *key, const char *wanted)
{
    (void)snprintf(why, SCRIPT_WHY_BYTES, "`%s` wants %s", key, wanted);
    return -EINVAL;
}

/* A text that fits into TO, else -EINVAL. */
static int text_value(struct span value, char *to, size_t size)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    const char *decoded;

    if (json_string_decode(value, &text) < 0)
        return -EINVAL;
    decoded = buf_text(&text);
    if (!decoded || text.size >= size || strlen(decoded) != text.size)
        return -EINVAL;
    memcpy(to, decoded, text.size + 1);
    return 0;
}

static int kind_value(struct span value, struct rule *rule, char why[SCRIPT_WHY_BYTES])
{
    for (int kind = 0; kind < FAULT_KIND_MAX; kind++) {
        if (json_string_equals(value, faults[kind].name)) {
            rule->kind = (enum fault_kind)kind;
            return 0;
        }
    }
    return wrong(why, "fault", "the name of a fault");
}

static int number_value(struct span value, uint64_t max, uint64_t *ret_number)
{
    return json_as_u64(value, ret_number) < 0 || *ret_number > max ? -EINVAL : 0;
}

static int version_value(struct span value, uint32_t *ret_number)
{
    uint64_t number;

    if (number_value(value, UINT32_MAX, &number) < 0)
        return -EINVAL;
    *ret_number = (uint32_t)number;
    return 0;
}

static int code_value(struct span value, enum sandbox_code *ret_code)
{
    char text[16];

    if (text_value(value, text, sizeof(text)) < 0)
        return -EINVAL;
    *ret_code = error_code_parse(text);
    return *ret_code == SANDBOX_OK ? -EINVAL : 0;
}

static int outcome_value(struct span value, enum sandbox_outcome *ret_outcome)
{
    for (size_t i = OUTCOME_NEVER_RAN; i < ARRAY_SIZE(outcomes); i++) {
        if (json_string_equals(value, outcomes[i])) {
            *ret_outcome = (enum sandbox_outcome)i;
            return 0;
        }
    }
    return -EINVAL;
}

static int when_value(struct span value, struct rule *rule)
{
    if (json_string_equals(value, "before"))
        rule->when = FAULT_BEFORE;
    else if (json_string_equals(value, "after"))
        rule->when = FAULT_AFTER;
    else
        return -EINVAL;
    return is_listed(faults[rule->kind].when, when_names[rule->when]) ? 0 : -EINVAL;
}

static int bool_value(struct span value, bool *ret_flag)
{
    *ret_flag = span_equals(value, "true");
    return json_kind(value) == JSON_BOOL ? 0 : -EINVAL;
}

/* Every key but `fault`, which was read before. */
static int member_value(struct rule *rule, const char *key, struct span value,
                        char why[SCRIPT_WHY_BYTES])
{
    const bool common = *faults[rule->kind].when && is_listed("operation times when", key);

    if (strcmp(key, "fault") == 0)
        return 0;
    if (!common && !is_listed(faults[rule->kind].keys, key)) {
        (void)snprintf(why, SCRIPT_WHY_BYTES, "fault `%s` has no key `%s`",
                       faults[rule->kind].name, key);
        return -EINVAL;
    }
    if (strcmp(key, "operation") == 0)
        return text_value(value, rule->operation, sizeof(rule->operation)) < 0
                   ? wrong(why, key, "the name of an operation, or \"*\"")
                   : 0;
    if (strcmp(key, "times") == 0)
        return number_value(value, UINT64_MAX - 1, &rule->times) < 0
                   ? wrong(why, key, "a number; 0 is for ever")
                   : 0;
    if (strcmp(key, "when") == 0)
        return when_value(value, rule) < 0 ? wrong(why, key, faults[rule->kind].when) : 0;
    if (strcmp(key, "code") == 0)
        return code_value(value, &rule->code) < 0 ? wrong(why, key, "a code, like \"S216\"")
                                                  : 0;
    if (strcmp(key, "message") == 0)
        return text_value(value, rule->message, sizeof(rule->message)) < 0
                   ? wrong(why, key, "a text under 512 bytes")
                   : 0;
    if (strcmp(key, "outcome") == 0)
        return outcome_value(value, &rule->outcome) < 0
                   ? wrong(why, key, "never_ran or may_have_run")
                   : 0;
    if (strcmp(key, "ms") == 0)
        return number_value(value, MS_MAX, &rule->ms) < 0
                   ? wrong(why, key, "milliseconds, at most an hour")
                   : 0;
    if (strcmp(key, "bytes") == 0)
        return number_value(value, BYTES_MAX, &rule->bytes) < 0
                   ? wrong(why, key, "a number of bytes, at most 1 GiB")
                   : 0;
    if (strcmp(key, "major") == 0)
        return version_value(value, &rule->major) < 0 ? wrong(why, key, "a number") : 0;
    if (strcmp(key, "minor") == 0)
        return version_value(value, &rule->minor) < 0 ? wrong(why, key, "a number") : 0;
    return bool_value(value, &rule->extra_keys) < 0 ? wrong(why, key, "true or false") : 0;
}

int rule_parse(struct span json, struct rule *ret_rule, char why[SCRIPT_WHY_BYTES])
{
    struct rule rule = {
        .operation = ANY_OPERATION,
        .times = 1,
        .code = S300,
        .message = "a fault was asked for",
        .ms = DEFAULT_MS,
        .bytes = DEFAULT_STDERR_BYTES,
        .major = 1,
    };
    struct json_iterator members;
    struct span key, value;

    if (json_kind(json) != JSON_OBJECT)
        return wrong(why, "fault", "an object");
    if (kind_value(json_get(json, "fault"), &rule, why) < 0)
        return -EINVAL;
    rule.when = strcmp(faults[rule.kind].when, "after") == 0 ? FAULT_AFTER : FAULT_BEFORE;
    members = json_iterate(json);
    while (json_next(&members, &key, &value)) {
        char name[32];

        if (text_value(key, name, sizeof(name)) < 0)
            return wrong(why, "fault", "only keys that are known");
        if (member_value(&rule, name, value, why) < 0)
            return -EINVAL;
    }
    if (rule.times == 0)
        rule.times = UINT64_MAX;
    *ret_rule = rule;
    return 0;
}

/* The list. */

void script_init(struct script *script)
{
    list_init(&script->rules);
    script->count = 0;
}

static void script_remove(struct script *script, struct script_rule *entry)
{
    list_remove(&entry->node);
    script->count--;
    free(entry);
}

void script_clear(struct script *script)
{
    LIST_FOREACH(node, &script->rules)
    script_remove(script, LIST_ENTRY(node, struct script_rule, node));
}

int script_add(struct script *script, const struct rule *rule)
{
    struct script_rule *entry;

    if (script->count == SCRIPT_RULES_MAX)
        return -ENOSPC;
    entry = calloc(1, sizeof(*entry));
    if (!entry)
        return -ENOMEM;
    entry->rule = *rule;
    list_append(&script->rules, &entry->node);
    script->count++;
    return 0;
}

static bool rule_fits(const struct rule *rule, enum fault_kind kind, enum fault_when when,
                      const char *operation)
{
    return rule->kind == kind && rule->when == when &&
           (strcmp(rule->operation, ANY_OPERATION) == 0 ||
            strcmp(rule->operation, operation) == 0);
}

bool script_find(struct script *script, enum fault_kind kind, enum fault_when when,
                 const char *operation, struct rule *ret_rule)
{
    LIST_FOREACH(node, &script->rules)
    {
        struct script_rule *entry = LIST_ENTRY(node, struct script_rule, node);

        if (!rule_fits(&entry->rule, kind, when, operation))
            continue;
        *ret_rule = entry->rule;
        if (entry->rule.times != UINT64_MAX && --entry->rule.times == 0)
            script_remove(script, entry);
        return true;
    }
    return false;
}

bool script_waits(const struct script *script, enum fault_kind kind, const char *operation)
{
    LIST_FOREACH(node, &script->rules)
    {
        if (rule_fits(&LIST_ENTRY(node, struct script_rule, node)->rule, kind, FAULT_BEFORE,
                      operation))
            return true;
    }
    return false;
}

bool script_take(struct script *script, enum fault_kind kind, const char *operation)
{
    struct rule rule;

    return script_find(script, kind, FAULT_BEFORE, operation, &rule);
}
