/* answers.c - see answers.h. One JSON object: rule id to {"verdict", "why", "answers"}. */

#include "answers.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char *const verdict_names[] = {
    [VERDICT_PASS] = "pass", [VERDICT_FAIL] = "fail", [VERDICT_SKIP] = "skip"
};

static json_t *result_pack(struct result *result)
{
    return json_pack("{s:s, s:s, s:s}", "verdict", verdict_names[result->verdict], "why",
                     result->verdict == VERDICT_SKIP ? result->why : "", "answers",
                     buf_text(&result->transcript));
}

int answers_write(const struct suite *suite, const char *path)
{
    json_t *all = json_object();
    int ret = all ? 0 : -ENOMEM;
    for (size_t i = 0; i < suite->result_count && ret == 0; i++) {
        struct result *result = &suite->results[i];
        ret = json_object_set_new(all, result->rule->id, result_pack(result)) == 0 ? 0
                                                                                   : -ENOMEM;
    }
    if (ret == 0)
        ret = json_dump_file(all, path, JSON_INDENT(1) | JSON_SORT_KEYS) == 0 ? 0 : -EIO;
    json_decref(all);
    return ret;
}

static int result_unpack(json_t *value, struct result *ret_result)
{
    const char *verdict, *why, *answers;
    if (!value) {
        ret_result->verdict = VERDICT_SKIP;
        snprintf(ret_result->why, sizeof(ret_result->why), "it did not run");
        return 0;
    }
    if (json_unpack(value, "{s:s, s:s, s:s}", "verdict", &verdict, "why", &why, "answers",
                    &answers) < 0)
        return -EINVAL;
    size_t index = 0;
    while (index < ARRAY_SIZE(verdict_names) && strcmp(verdict_names[index], verdict) != 0)
        index++;
    if (index == ARRAY_SIZE(verdict_names))
        return -EINVAL;
    ret_result->verdict = (enum verdict)index;
    snprintf(ret_result->why, sizeof(ret_result->why), "%s", why);
    return buf_append_text(&ret_result->transcript, answers);
}

int answers_read(const struct suite *suite, const char *path, struct suite *ret_recorded)
{
    json_t *all = json_load_file(path, 0, NULL);
    struct suite recorded = { .results = calloc(suite->result_count + 1,
                                                sizeof(*suite->results)) };
    int ret = !json_is_object(all) ? -EINVAL : recorded.results ? 0 : -ENOMEM;
    for (size_t i = 0; i < suite->result_count && ret == 0; i++) {
        struct result *result = &recorded.results[recorded.result_count++];
        *result = (struct result){ .file = suite->results[i].file,
                                   .rule = suite->results[i].rule };
        ret = result_unpack(json_object_get(all, result->rule->id), result);
    }
    json_decref(all);
    if (ret == 0)
        *ret_recorded = recorded;
    else
        suite_done(&recorded);
    return ret;
}
