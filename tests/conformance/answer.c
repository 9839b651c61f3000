/* answer.c - see answer.h. An error's envelope is checked in full whatever the step says. */

#include "answer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "match.h"
#include "transcript.h"
#include "utf8.h"

#define NEWER_KEYS_MINOR 2 /* `outcome`, `partial` (contract 2.1) */

static const char *text_of(const struct yaml_node *map, const char *key)
{
    const struct yaml_node *node = yaml_get(map, key);
    return node ? node->text : NULL;
}

/* Contract 3.1 and 3.3: all keys, and the table's values for the code. */
static bool envelope_is_right(const json_t *body, struct coverage *coverage, struct buf *why)
{
    static const char shape[] =
        "{\"type\":\"$text\",\"code\":\"$text\",\"message\":\"$text\","
        "\"docs_url\":\"$text\",\"retryable\":\"$bool\",\"fix\":\"$any\","
        "\"fix_note\":\"$any\"}";
    if (!match_text(shape, body, why))
        return false;
    const char *text = json_string_value(json_object_get(body, "code"));
    enum sandbox_code code = error_code_parse(text);
    if (code == SANDBOX_OK) {
        (void)buf_printf(why, " code %s is in no table", text);
        return false;
    }
    coverage->codes[code] = true;
    const struct error_info *info = error_info_get(code);
    const char *url = json_string_value(json_object_get(body, "docs_url"));
    const char *outcome = json_string_value(json_object_get(body, "outcome"));
    bool right = strcmp(json_string_value(json_object_get(body, "type")), info->type) == 0 &&
                 json_is_true(json_object_get(body, "retryable")) == info->retryable &&
                 strlen(url) > 5 && strcmp(url + strlen(url) - 5, "#S000") != 0 &&
                 url[strlen(url) - 5] == '#' && strcmp(url + strlen(url) - 4, text) == 0;
    if (!right)
        (void)buf_printf(why, " type, retryable or docs_url is not that of %s", text);
    if (outcome && code != S300 && code != S301) {
        (void)buf_printf(why, " outcome on %s", text);
        right = false;
    }
    if (json_object_get(body, "partial") && code != S200 && code != S506) {
        (void)buf_printf(why, " partial on %s", text);
        right = false;
    }
    return right;
}

/* Contract 3.3, last column, and section 6 for the steps of `run`. The words are the adapter's
 * own; whether there are any is not. */
static bool note_is_right(const json_t *body, struct buf *why)
{
    const char *code = json_string_value(json_object_get(body, "code"));
    const json_t *fix = json_object_get(body, "fix");
    const json_t *note = json_object_get(body, "fix_note");
    bool of_step = json_object_get(fix, "inner_code") != NULL;
    bool wanted = !of_step &&
                  (error_info_get(error_code_parse(code))->note[0] || !json_is_null(fix));
    const char *text = json_string_value(note);
    bool right = wanted ? text && *text && !strchr(text, '\n') : json_is_null(note);
    if (!right)
        (void)buf_printf(why, " fix_note of %s must be %s", code,
                         wanted ? "one line of text" : "null");
    return right;
}

static bool expanded_matches(const struct expectation *expectation, const char *pattern,
                             const json_t *value, struct buf *why)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    return variables_expand(expectation->variables, pattern, &text) == 0 &&
           match_text(buf_text(&text), value, why);
}

static bool says_all(const struct expectation *expectation, const json_t *body, struct buf *why)
{
    const struct yaml_node *says = yaml_get(expectation->step, "says");
    const char *message = json_string_value(json_object_get(body, "message"));
    for (size_t i = 0; says && i < says->count; i++) {
        _cleanup_(buf_done)
        struct buf text = { 0 };
        (void)variables_expand(expectation->variables, says->items[i]->text, &text);
        if (!strstr(message, buf_text(&text))) {
            (void)buf_printf(why, " the message lacks `%s`: %.400s", buf_text(&text), message);
            return false;
        }
    }
    return true;
}

static bool error_matches(const struct expectation *expectation, const json_t *body,
                          struct buf *why)
{
    const struct yaml_node *step = expectation->step;
    const char *wanted = text_of(step, "error");
    const char *code = json_string_value(json_object_get(body, "code"));
    if (!wanted || strcmp(wanted, code) != 0) {
        (void)buf_printf(why, " wants %s, got %s: %.400s", wanted ? wanted : "a reply", code,
                         json_string_value(json_object_get(body, "message")));
        return false;
    }
    bool has_newer_keys = expectation->minor >= NEWER_KEYS_MINOR;
    const char *outcome = text_of(step, "outcome");
    const char *got = json_string_value(json_object_get(body, "outcome"));
    if (outcome && (has_newer_keys || got) && strcmp(outcome, got ? got : "absent") != 0) {
        (void)buf_printf(why, " wants outcome %s, got %s", outcome, got ? got : "absent");
        return false;
    }
    const char *fix = text_of(step, "fix");
    const char *message = text_of(step, "message");
    const char *note = text_of(step, "fix_note");
    const char *partial = text_of(step, "partial");
    if (fix && !expanded_matches(expectation, fix, json_object_get(body, "fix"), why))
        return false;
    if (message &&
        !expanded_matches(expectation, message, json_object_get(body, "message"), why))
        return false;
    if (note && !expanded_matches(expectation, note, json_object_get(body, "fix_note"), why))
        return false;
    const char *docs_url = text_of(step, "docs_url");
    if (docs_url &&
        !expanded_matches(expectation, docs_url, json_object_get(body, "docs_url"), why))
        return false;
    if (partial && has_newer_keys &&
        !expanded_matches(expectation, partial, json_object_get(body, "partial"), why))
        return false;
    return says_all(expectation, body, why);
}

static bool duration_is_right(const struct expectation *expectation, struct buf *why)
{
    uint64_t limit;
    const struct yaml_node *most = yaml_get(expectation->step, "at_most_ms");
    const struct yaml_node *least = yaml_get(expectation->step, "at_least_ms");
    if (most && yaml_as_u64(most, &limit) == 0 && expectation->duration_ms > limit) {
        (void)buf_printf(why, " took %llu ms, may take %llu",
                         (unsigned long long)expectation->duration_ms,
                         (unsigned long long)limit);
        return false;
    }
    if (least && yaml_as_u64(least, &limit) == 0 && expectation->duration_ms < limit) {
        (void)buf_printf(why, " took %llu ms, wants at least %llu",
                         (unsigned long long)expectation->duration_ms,
                         (unsigned long long)limit);
        return false;
    }
    return true;
}

/* The named events in this order, others between; no events at all are fine (contract 5.1.3).
 */
static bool events_match(const struct native_call *call, const struct yaml_node *step,
                         struct buf *why)
{
    const struct yaml_node *wanted = yaml_get(step, "events");
    size_t next = 0;
    if (!wanted || native_call_event_count(call) == 0)
        return true;
    for (size_t i = 0; i < native_call_event_count(call) && next < wanted->count; i++)
        next += strstr(native_call_event(call, i), wanted->items[next]->text) != NULL;
    if (next == wanted->count)
        return true;
    (void)buf_printf(why, " event %s did not come in its place", wanted->items[next]->text);
    return false;
}

static const json_t *value_at(const json_t *value, const char *path)
{
    char part[64];
    while (value && *path) {
        size_t size = strcspn(path, ".");
        snprintf(part, sizeof(part), "%.*s", (int)size, path);
        value = json_is_array(value) ? json_array_get(value, strtoul(part, NULL, 10))
                                     : json_object_get(value, part);
        path += size + (path[size] == '.');
    }
    return value;
}

static bool save_values(const struct expectation *expectation, const json_t *body,
                        struct buf *why)
{
    const struct yaml_node *save = yaml_get(expectation->step, "save");
    for (size_t i = 0; save && i < save->count; i++) {
        const json_t *value = value_at(body, save->items[i]->text);
        if (!value) {
            (void)buf_printf(why, " nothing to save at %s", save->items[i]->text);
            return false;
        }
        char *text = json_is_string(value) ? strdup(json_string_value(value))
                                           : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        int ret = variables_set(expectation->variables, save->keys[i]->text, text);
        free(text);
        if (ret < 0)
            return false;
    }
    return true;
}

/* What the router says that has no S-code: `{"code", "message"}`. */
static bool engine_error_matches(const char *wanted, const json_t *body, struct buf *why)
{
    const char *code = json_string_value(json_object_get(body, "code"));
    const char *message = json_string_value(json_object_get(body, "message"));
    bool right = code && strcmp(code, wanted) == 0 && message && *message;
    if (!right)
        (void)buf_printf(why, " wants the engine's error %s with a message, got %s", wanted,
                         code ? code : "no code");
    return right;
}

static bool body_matches(const struct native_call *call, const json_t *body,
                         const struct expectation *expectation, struct buf *why)
{
    const char *reply = text_of(expectation->step, "reply");
    const char *engine_error = text_of(expectation->step, "engine_error");
    const char *error = engine_error ? engine_error : text_of(expectation->step, "error");
    if (engine_error && !native_call_ok(call))
        return engine_error_matches(engine_error, body, why);
    if (!native_call_ok(call))
        return envelope_is_right(body, expectation->coverage, why) &&
               note_is_right(body, why) && error_matches(expectation, body, why);
    if (error) {
        (void)buf_printf(why, " wants error %s, got a reply", error);
        return false;
    }
    return !reply || expanded_matches(expectation, reply, body, why);
}

static bool is_as_expected(const struct native_call *call, const json_t *body,
                           const struct expectation *expectation, struct buf *why)
{
    return body_matches(call, body, expectation, why) &&
           events_match(call, expectation->step, why) && duration_is_right(expectation, why) &&
           save_values(expectation, body, why);
}

bool answer_check(const struct native_call *call, const struct expectation *expectation,
                  struct buf *why)
{
    size_t size;
    const char *text = native_call_body(call, &size);
    json_error_t error;
    if (!utf8_valid((const uint8_t *)text, size)) {
        (void)buf_append_text(why, " the answer is not UTF-8");
        return false;
    }
    json_t *body = json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!body) {
        (void)buf_printf(why, " the answer is no JSON (%s): %.300s", error.text, text);
        return false;
    }
    if (!yaml_get(expectation->step, "varies"))
        transcript_add(native_call_ok(call), body, expectation->transcript);
    bool right = is_as_expected(call, body, expectation, why);
    struct expectation other = *expectation;
    other.step = yaml_get(expectation->step, "or");
    if (!right && other.step) {
        (void)buf_append_text(why, "; or:");
        right = is_as_expected(call, body, &other, why);
    }
    json_decref(body);
    return right;
}
