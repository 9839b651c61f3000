/* document.c - see document.h. Pure but for reading the file: the same JSON, the same text. */
#include "document.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "cleanup.h"

struct target {
    enum {
        TARGET_NONE,
        TARGET_RATIO_MAX,
        TARGET_RATIO_MIN,
        TARGET_RATIO_PLUS,
        TARGET_VALUE_MAX
    } kind;
    double bound;
    double plus;
    const char *row; /* whose ratio will do as well; NULL: none */
};

#define NONE                                                                                   \
    {                                                                                          \
        .kind = TARGET_NONE                                                                    \
    }
#define RATIO_MAX(bound_)                                                                      \
    {                                                                                          \
        .kind = TARGET_RATIO_MAX, .bound = bound_                                              \
    }
#define RATIO_MAX_OR(bound_, row_)                                                             \
    {                                                                                          \
        .kind = TARGET_RATIO_MAX, .bound = bound_, .row = row_                                 \
    }
#define RATIO_MIN(bound_)                                                                      \
    {                                                                                          \
        .kind = TARGET_RATIO_MIN, .bound = bound_                                              \
    }
#define RATIO_PLUS(bound_, plus_)                                                              \
    {                                                                                          \
        .kind = TARGET_RATIO_PLUS, .bound = bound_, .plus = plus_                              \
    }
#define VALUE_MAX(bound_)                                                                      \
    {                                                                                          \
        .kind = TARGET_VALUE_MAX, .bound = bound_                                              \
    }

static const struct {
    const char *name; /* or its beginning and an asterisk */
    const char *text;
    struct target target;
} rows[] = {
#define ROW(name_, text_, ...) { .name = name_, .text = text_, .target = __VA_ARGS__ },
#include "rows.def"
};

static bool matches(const char *pattern, const char *name)
{
    size_t size = strcspn(pattern, "*");
    return pattern[size] ? strncmp(pattern, name, size) == 0 : strcmp(pattern, name) == 0;
}

/* The first row of rows.def that fits. */
static size_t row_of(const char *name)
{
    size_t i = 0;
    while (i < ARRAY_SIZE(rows) && !matches(rows[i].name, name))
        i++;
    return i;
}

static double number(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

static const char *text(const json_t *row, const char *key)
{
    const char *value = json_string_value(json_object_get(row, key));
    return value ? value : "";
}

/* Three significant digits, never with an exponent. */
static void put_number(FILE *to, double value)
{
    int digits = value == 0 ? 0 : 2 - (int)floor(log10(fabs(value)));
    fprintf(to, "%.*f", digits < 0 ? 0 : digits > 4 ? 4 : digits, value);
}

static const json_t *find(const json_t *all, const char *name)
{
    const json_t *row;
    size_t index;
    json_array_foreach(all, index, row)
    {
        if (strcmp(text(row, "name"), name) == 0)
            return row;
    }
    return NULL;
}

static void put_target(FILE *to, const json_t *all, const json_t *row,
                       const struct target *target)
{
    static const char *const forms[] = {
        [TARGET_NONE] = "",
        [TARGET_RATIO_MAX] = "at most %g x",
        [TARGET_RATIO_MIN] = "at least %g x",
        [TARGET_RATIO_PLUS] = "at most %g x and %g ms",
        [TARGET_VALUE_MAX] = "at most %g",
    };
    const json_t *other = find(all, text(row, "against"));
    const json_t *as_well = target->row ? find(all, target->row) : NULL;
    double ratio = number(row, "ratio"), median = number(row, "p50");
    double ratio_max = fmax(target->bound, number(as_well, "ratio"));
    const bool met[] = {
        [TARGET_NONE] = true,
        [TARGET_RATIO_MAX] = other && ratio <= ratio_max,
        [TARGET_RATIO_MIN] = other && ratio >= target->bound,
        [TARGET_RATIO_PLUS] = other &&
                              median <= target->bound * number(other, "p50") + target->plus,
        [TARGET_VALUE_MAX] = median <= target->bound,
    };
    if (target->kind == TARGET_NONE)
        return;
    fprintf(to, forms[target->kind], target->bound, target->plus);
    if (target->row)
        fprintf(to, ", or that of `%s`", target->row);
    fputs(met[target->kind] ? "" : ": **missed**", to);
}

static void put_row(FILE *to, const json_t *all, const json_t *row, const struct target *target)
{
    fprintf(to, "| `%s` | %lld | ", text(row, "name"),
            (long long)json_integer_value(json_object_get(row, "n")));
    put_number(to, number(row, "p50"));
    fputs(" | ", to);
    put_number(to, number(row, "p95"));
    fputs(" | ", to);
    put_number(to, number(row, "p99"));
    fprintf(to, " | %s | ", text(row, "unit"));
    if (text(row, "against")[0]) {
        put_number(to, number(row, "ratio"));
        fprintf(to, " x `%s`", text(row, "against"));
    }
    fputs(" | ", to);
    put_target(to, all, row, target);
    fputs(" |\n", to);
}

static void put_calibration(FILE *to, const json_t *calibration)
{
    const char *key;
    json_t *value;
    fputs("| | |\n|---|---|\n", to);
    json_object_foreach((json_t *)(uintptr_t)calibration, key, value)
    {
        if (json_is_string(value))
            fprintf(to, "| %s | %s |\n", key, json_string_value(value));
        else
            fprintf(to, "| %s | %g |\n", key, json_number_value(value));
    }
}

static void put_meanings(FILE *to)
{
    fputs("\n## What the rows are\n| row | |\n|---|---|\n", to);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        fprintf(to, "| `%s` | %s |\n", rows[i].name, rows[i].text);
}

static void put_document(FILE *to, const json_t *report)
{
    static const struct target none = NONE;
    const json_t *all = json_object_get(report, "rows"), *row;
    size_t index;
    fputs("# Benchmarks\n\n"
          "`sandbox-bench` measures what a caller waits for, and beside it in the same run "
          "what it is\n"
          "to be judged by. Ratios of medians carry over to other machines; times do not. This "
          "page is\n"
          "made of one run, kept in `bench/results.json`:\n"
          "`sandbox-bench --json bench/results.json && cmake --build build --target "
          "benchmarks-doc`.\n\n"
          "## The machine\n",
          to);
    put_calibration(to, json_object_get(report, "calibration"));
    fputs("\n`slowdown_` is how many times longer a loop of the shell, or gzip, takes in the "
          "guest than on the host.\n\n"
          "## The run\n"
          "| row | n | p50 | p95 | p99 | unit | ratio | target |\n"
          "|---|---|---|---|---|---|---|---|\n",
          to);
    json_array_foreach(all, index, row)
    {
        size_t known = row_of(text(row, "name"));
        put_row(to, all, row, known < ARRAY_SIZE(rows) ? &rows[known].target : &none);
    }
    put_meanings(to);
}

int document_write(const char *path, FILE *to)
{
    json_error_t error;
    json_t *report = json_load_file(path, 0, &error);
    if (!report || !json_is_array(json_object_get(report, "rows"))) {
        fprintf(stderr, "sandbox-bench: %s: %s\n", path, report ? "no rows" : error.text);
        json_decref(report);
        return -1;
    }
    put_document(to, report);
    json_decref(report);
    return 0;
}
