/* script.h - the faults that are asked for, in the order they came (docs/mock.md).
 *
 * A rule is one JSON object, from the settings or from the operation `fault`. It waits for
 * calls that it fits and is used up after `times` of them. Pure but for what it holds. */
#pragma once

#include "buf.h"
#include "error.h"
#include "list.h"
#include "span.h"

enum fault_kind {
#define FAULT(id, ...) FAULT_##id,
#include "faults.def"
    FAULT_KIND_MAX
};

enum fault_when { FAULT_BEFORE, FAULT_AFTER };

#define RULE_OPERATION_BYTES 64
#define RULE_MESSAGE_BYTES 512

/* What a rule says; members that its kind has no use for keep their defaults. */
struct rule {
    enum fault_kind kind;
    enum fault_when when; /* before the work is begun, or when the answer is ready */
    char operation[RULE_OPERATION_BYTES]; /* "*": any */
    uint64_t times;                       /* left; UINT64_MAX: for ever */
    enum sandbox_code code;
    enum sandbox_outcome outcome;
    char message[RULE_MESSAGE_BYTES];
    uint64_t ms;
    uint64_t bytes;
    uint32_t major;
    uint32_t minor;
    bool extra_keys;
};

struct script {
    struct list rules; /* struct script_rule */
    size_t count;
};

#define SCRIPT_RULES_MAX 256u
#define SCRIPT_WHY_BYTES 256

void script_init(struct script *script);
void script_clear(struct script *script);

/* 0, or -EINVAL and WHY names key and value. JSON passed json_scan(). */
int rule_parse(struct span json, struct rule *ret_rule, char why[SCRIPT_WHY_BYTES]);
const char *fault_name(enum fault_kind kind);

/* -ENOSPC: SCRIPT_RULES_MAX are waiting; -ENOMEM. */
int script_add(struct script *script, const struct rule *rule);
/* Finds the first rule of that kind and moment for the operation and uses it once. */
bool script_find(struct script *script, enum fault_kind kind, enum fault_when when,
                 const char *operation, struct rule *ret_rule);
/* Whether there is one, without using it. */
bool script_waits(const struct script *script, enum fault_kind kind, const char *operation);
bool script_take(struct script *script, enum fault_kind kind, const char *operation);
