/* docgen_contract.c - docs/contract.md: operations, types, limits. */
#include <inttypes.h>
#include <string.h>

#include "docgen.h"
#include "error.h"
#include "tables.h"
#include "version.h"

static const char *const kind_names[] = {
    [FIELD_TEXT] = "text",
    [FIELD_BLOB] = "text, NUL allowed",
    [FIELD_B64] = "base64",
    [FIELD_BOOL] = "bool",
    [FIELD_U32] = "u32",
    [FIELD_U64] = "u64",
    [FIELD_I32] = "i32",
    [FIELD_I64] = "i64",
    [FIELD_TEXTS] = "list of text",
    [FIELD_ENV] = "env",
    [FIELD_CONTENT] = "text or channel ref",
    [FIELD_STREAM] = "channel ref",
    [FIELD_OBJECT] = NULL,
    [FIELD_OBJECTS] = NULL,
};
_Static_assert(ARRAY_SIZE(kind_names) == FIELD_KIND_MAX, "a name for each kind");

static void put_intro(struct docgen *doc)
{
    docgen_put(
        doc,
        "# The sandbox contract, version %u.%u\n\n"
        "<!-- Made by sandbox-docgen from contract/*.def; change those. -->\n\n"
        "A caller sends one JSON object to `sandbox::<operation>` and gets one JSON value, "
        "or one error ([errors.md](errors.md)).\n"
        "Settings: [settings.md](settings.md).\n\n",
        CONTRACT_MAJOR, CONTRACT_MINOR);
    docgen_put(doc,
               "## Requests\n"
               "- Unknown keys are ignored. Of a key given twice the last counts. `null` "
               "counts as absent.\n"
               "- Types are exact: a number is no text, `1` is no bool; integers have no "
               "fraction and no exponent.\n"
               "- `text` has no NUL character. `base64` is the standard alphabet, padded, "
               "without white space.\n"
               "- `env` is a list of `\"NAME=VALUE\"` or an object of texts; the names of an "
               "object match `[A-Za-z_][A-Za-z0-9_]*`.\n"
               "- A channel ref is `{\"channel_id\", \"access_key\", \"direction\"}`, with "
               "`direction` `\"read\"` or `\"write\"`.\n"
               "- Whatever breaks a rule is S001; the message names the field, what it wants "
               "and what it got.\n\n");
}

static void put_kind(struct docgen *doc, const struct field *field)
{
    if (field->kind == FIELD_OBJECT)
        docgen_put(doc, "[%s](#%s)", field->type->name, field->type->name);
    else if (field->kind == FIELD_OBJECTS)
        docgen_put(doc, "list of [%s](#%s)", field->type->name, field->type->name);
    else
        docgen_put(doc, "%s", kind_names[field->kind]);
    if (field->presence == FIELD_NULLABLE)
        docgen_put(doc, " or null");
}

/* The largest value of a kind needs no words. */
static uint64_t kind_max(enum field_kind kind)
{
    switch (kind) {
    case FIELD_U32:
        return UINT32_MAX;
    case FIELD_I32:
        return INT32_MAX;
    case FIELD_I64:
        return INT64_MAX;
    default:
        return UINT64_MAX;
    }
}

static void put_limits(struct docgen *doc, const struct field *field)
{
    bool is_number = field->kind >= FIELD_U32 && field->kind <= FIELD_I64;

    if (is_number && field->max < kind_max(field->kind))
        docgen_put(doc, "%" PRId64 " to %" PRIu64, field->min, field->max);
    else if (is_number && field->min > 0)
        docgen_put(doc, "at least %" PRId64, field->min);
    else if (!is_number && field->max > 0)
        docgen_put(doc, "%" PRId64 " to %" PRIu64 " bytes", field->min, field->max);
}

static void put_since(struct docgen *doc, const struct field *field)
{
    if (field->since > 0)
        docgen_put(doc, " (since %u.%u)", CONTRACT_MAJOR, field->since);
}

static void put_request(struct docgen *doc, const struct type *type)
{
    if (type->field_count == 0) {
        docgen_put(doc, "Request: `{}`\n\n");
        return;
    }
    docgen_put(doc, "| request | type | default | limits | |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < type->field_count; i++) {
        const struct field *field = &type->fields[i];

        docgen_put(doc, "| `%s` | ", field->name);
        put_kind(doc, field);
        if (field->presence == FIELD_REQUIRED)
            docgen_put(doc, " | required | ");
        else if (field->standard[0])
            docgen_put(doc, " | `%s` | ", field->standard);
        else
            docgen_put(doc, " | | ");
        put_limits(doc, field);
        docgen_put(doc, " | ");
        docgen_cell(doc, field->text, type->name, field->name);
        put_since(doc, field);
        docgen_put(doc, " |\n");
    }
    docgen_put(doc, "\n");
}

static void put_keys(struct docgen *doc, const char *title, const struct type *type)
{
    docgen_put(doc, "| %s | type | |\n|---|---|---|\n", title);
    for (size_t i = 0; i < type->field_count; i++) {
        const struct field *field = &type->fields[i];

        docgen_put(doc, "| `%s`%s | ", field->name,
                   field->presence == FIELD_OPTIONAL ? "?" : "");
        put_kind(doc, field);
        docgen_put(doc, " | ");
        docgen_cell(doc, field->text, type->name, field->name);
        put_since(doc, field);
        docgen_put(doc, " |\n");
    }
    docgen_put(doc, "\n");
}

static void put_reply(struct docgen *doc, const struct operation *operation)
{
    const struct field *first = operation->reply->fields;

    if (operation->flags & ARRAY_REPLY)
        docgen_put(doc, "Reply: a top-level array of [%s](#%s)\n\n", first->type->name,
                   first->type->name);
    else
        put_keys(doc, "reply", operation->reply);
}

static void put_operation(struct docgen *doc, const struct operation *operation)
{
    docgen_put(doc, "### %s\n", operation->name);
    docgen_need(doc, operation->text, "operation", operation->name);
    docgen_put(doc, "%s", operation->text);
    if (operation->flags & OPTIONAL_OP)
        docgen_put(doc, " Optional: an adapter may answer S304.");
    if (operation->flags & SIDE_EFFECTS)
        docgen_put(doc, " Has side effects.");
    if (operation->since > 0)
        docgen_put(doc, " Since %u.%u.", CONTRACT_MAJOR, operation->since);
    docgen_put(doc, "\n\n");
    put_request(doc, operation->request);
    put_reply(doc, operation);
}

static void put_operations(struct docgen *doc)
{
    const char *group = "";

    for (size_t i = 0; i < OP_MAX; i++) {
        if (strcmp(operations[i].group, group) != 0)
            docgen_put(doc, "## Operations: %s\n\n", operations[i].group);
        group = operations[i].group;
        put_operation(doc, &operations[i]);
    }
}

/* Types that fields name. */
static const struct type *const nested_types[] = {
#define TYPE(...)
#define FIELD(...)
#define OBJECT(owner, type, ...) &type_##type,
#define OBJECTS(owner, type, ...) &type_##type,
#define END(...)
#include "types.def"
#undef TYPE
#undef FIELD
#undef OBJECT
#undef OBJECTS
#undef END
};

static bool type_came_before(size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (nested_types[i] == nested_types[index])
            return true;
    }
    return false;
}

static void put_types(struct docgen *doc)
{
    docgen_put(doc, "## Types\n"
                    "A key with `?` may be absent.\n\n");
    for (size_t i = 0; i < ARRAY_SIZE(nested_types); i++) {
        const struct type *type = nested_types[i];

        if (type_came_before(i))
            continue;
        docgen_need(doc, type->text, "type", type->name);
        docgen_put(doc, "### %s\n%s\n\n", type->name, type->text);
        put_keys(doc, "key", type);
    }
}

static void put_limit_rows(struct docgen *doc)
{
    docgen_put(doc,
               "## Limits\n"
               "Each refuses by name; none cuts silently but the clamp of `timeout_ms`. Those "
               "of single fields stand above,\nthose an operator sets in "
               "[settings.md](settings.md).\n\n"
               "| limit | value | beyond it |\n|---|---|---|\n");
    for (size_t i = 0; i < limit_count; i++) {
        docgen_put(doc, "| ");
        docgen_cell(doc, limits[i].text, "limit", limits[i].name);
        docgen_put(doc, " | %" PRIu64 " | ", limits[i].value);
        docgen_cell(doc, limits[i].answer, "limit", limits[i].name);
        docgen_put(doc, " |\n");
    }
}

void docgen_contract(struct docgen *doc)
{
    put_intro(doc);
    put_operations(doc);
    put_types(doc);
    put_limit_rows(doc);
}
