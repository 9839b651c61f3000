/* case.c - see case.h. */

#include "case.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *text_of(const struct yaml_node *map, const char *key)
{
    const struct yaml_node *node = yaml_get(map, key);
    return node && node->kind == YAML_SCALAR ? node->text : NULL;
}

/* Index of TEXT in WORDS, 0 when absent, -EINVAL when it is none of them. */
static int word_of(const char *text, const char *const words[], size_t count)
{
    for (size_t i = 0; text && i < count; i++) {
        if (strcmp(text, words[i]) == 0)
            return (int)i;
    }
    return text ? -EINVAL : 0;
}

static int rule_read(const struct yaml_node *node, struct rule *ret_rule)
{
    uint64_t since = 0;
    const struct yaml_node *since_node = yaml_get(node, "since");
    if (since_node && yaml_as_u64(since_node, &since) < 0)
        return -EINVAL;
    *ret_rule = (struct rule){
        .id = text_of(node, "id"),
        .text = text_of(node, "text"),
        .since = (unsigned)since,
        .needs = text_of(node, "needs"),
        .lacks = text_of(node, "lacks"),
        .steps = yaml_get(node, "steps"),
    };
    bool complete = ret_rule->id && ret_rule->text && ret_rule->steps &&
                    ret_rule->steps->kind == YAML_LIST && ret_rule->steps->count > 0;
    return complete ? 0 : -EINVAL;
}

static int file_fill(struct case_file *file, char *error, size_t error_size)
{
    static const char *const sandboxes[] = { "none", "shared", "each" };
    static const char *const routers[] = { "bound", "none", "absent", "mismatch" };
    const struct yaml_node *rules = yaml_get(file->document, "rules");
    int sandbox = word_of(text_of(file->document, "sandbox"), sandboxes, ARRAY_SIZE(sandboxes));
    int router = word_of(text_of(file->document, "router"), routers, ARRAY_SIZE(routers));
    file->title = text_of(file->document, "title");
    file->contract = text_of(file->document, "contract");
    file->settings = yaml_get(file->document, "settings");
    file->section = yaml_get(file->document, "section");
    file->variables = yaml_get(file->document, "variables");
    file->setup = yaml_get(file->document, "setup");
    if (!file->title || !file->contract || sandbox < 0 || router < 0 || !rules ||
        rules->kind != YAML_LIST) {
        snprintf(error, error_size,
                 "%s: needs title, contract, rules; sandbox and router are "
                 "words of README.md",
                 file->path);
        return -EINVAL;
    }
    file->sandbox = (enum case_sandbox)sandbox;
    file->router = (enum case_router)router;
    file->rules = calloc(rules->count + 1, sizeof(*file->rules));
    if (!file->rules)
        return -ENOMEM;
    for (size_t i = 0; i < rules->count; i++) {
        if (rule_read(rules->items[i], &file->rules[i]) < 0) {
            snprintf(error, error_size, "%s:%u: a rule needs id, text and steps", file->path,
                     rules->items[i]->line);
            return -EINVAL;
        }
        file->rule_count++;
    }
    return 0;
}

static int list_add(struct case_list *list, const char *path, char *error, size_t error_size)
{
    struct case_file *items = realloc(list->items, (list->count + 1) * sizeof(*items));
    if (!items)
        return -ENOMEM;
    list->items = items;
    struct case_file *file = &items[list->count++];
    *file = (struct case_file){ .path = strdup(path) };
    char why[256] = "";
    int ret = yaml_load(path, &file->document, why, sizeof(why));
    if (ret < 0) {
        snprintf(error, error_size, "%s: %s", path, why);
        return ret;
    }
    ret = file_fill(file, error, error_size);
    list->rule_count += file->rule_count;
    return ret;
}

static int find_doubles(const struct case_list *list, char *error, size_t error_size)
{
    for (size_t a = 0; a < list->count; a++) {
        for (size_t i = 0; i < list->items[a].rule_count; i++) {
            unsigned seen = 0;
            const char *id = list->items[a].rules[i].id;
            for (size_t b = 0; b < list->count; b++) {
                for (size_t j = 0; j < list->items[b].rule_count; j++)
                    seen += strcmp(id, list->items[b].rules[j].id) == 0;
            }
            if (seen > 1) {
                snprintf(error, error_size, "%s: rule id %s stands twice", list->items[a].path,
                         id);
                return -EINVAL;
            }
        }
    }
    return 0;
}

static int by_path(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

int case_list_load(const char *directory, struct case_list *ret_list, char *error,
                   size_t error_size)
{
    char *roots[] = { (char *)directory, NULL };
    *ret_list = (struct case_list){ 0 };
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_path);
    if (!walk)
        return -errno;
    int ret = 0;
    FTSENT *entry;
    while (ret == 0 && (entry = fts_read(walk))) {
        const char *dot = strrchr(entry->fts_name, '.');
        if (entry->fts_info == FTS_F && dot && strcmp(dot, ".yaml") == 0)
            ret = list_add(ret_list, entry->fts_path, error, error_size);
    }
    (void)fts_close(walk); /* read only */
    if (ret == 0 && ret_list->count == 0) {
        snprintf(error, error_size, "%s: no case files", directory);
        ret = -ENOENT;
    }
    if (ret == 0)
        ret = find_doubles(ret_list, error, error_size);
    if (ret < 0)
        case_list_done(ret_list);
    return ret;
}

bool case_file_is_apart(const struct case_file *file)
{
    return file->settings || file->section || file->router != CASE_ROUTER_BOUND;
}

void case_list_done(struct case_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].path);
        free(list->items[i].rules);
        yaml_free(list->items[i].document);
    }
    free(list->items);
    *list = (struct case_list){ 0 };
}
