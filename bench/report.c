/* report.c - see report.h. */
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct row *report_find(const struct report *report, const char *name)
{
    for (size_t i = 0; i < report->row_count; i++) {
        if (strcmp(report->rows[i].name, name) == 0)
            return &report->rows[i];
    }
    return NULL;
}

static void print_row(const struct row *row)
{
    printf("%-24s n=%-6zu p50=%-10.4g p95=%-10.4g p99=%-10.4g %-8s", row->name, row->n,
           row->p50, row->p95, row->p99, row->unit);
    if (row->against[0])
        printf(" %.3g x %s", row->ratio, row->against);
    printf("\n");
    fflush(stdout);
}

/* FIGURES: n, percentiles and unit. */
static void add_row(struct report *report, const char *name, const struct row *figures,
                    const char *against)
{
    if (report->row_count == REPORT_ROWS_MAX || figures->n == 0)
        return;
    const struct row *base = against ? report_find(report, against) : NULL;
    struct row *row = &report->rows[report->row_count++];
    *row = *figures;
    snprintf(row->name, sizeof(row->name), "%s", name);
    if (base && base->p50 > 0) {
        snprintf(row->against, sizeof(row->against), "%s", against);
        row->ratio = row->p50 / base->p50;
    }
    print_row(row);
}

void report_add(struct report *report, const char *name, struct samples *samples,
                const char *unit, const char *against)
{
    const struct row figures = { .n = samples->count,
                                 .p50 = samples_percentile(samples, 50),
                                 .p95 = samples_percentile(samples, 95),
                                 .p99 = samples_percentile(samples, 99),
                                 .unit = unit };
    add_row(report, name, &figures, against);
}

void report_add_rounds(struct report *report, const char *name, struct rounds *rounds,
                       const char *unit, const char *against)
{
    const struct row figures = { .n = rounds->count,
                                 .p50 = samples_percentile(&rounds->p50, 50),
                                 .p95 = samples_percentile(&rounds->p95, 50),
                                 .p99 = samples_percentile(&rounds->p99, 50),
                                 .unit = unit };
    add_row(report, name, &figures, against);
}

void report_add_value(struct report *report, const char *name, double value, const char *unit,
                      const char *against)
{
    struct samples samples = { 0 };
    if (samples_add(&samples, value) == 0)
        report_add(report, name, &samples, unit, against);
    samples_done(&samples);
}

int report_write_json(const struct report *report, const char *path)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return -errno;
    fprintf(file, "{\"calibration\":{%s},\"rows\":[", report->calibration);
    for (size_t i = 0; i < report->row_count; i++) {
        const struct row *row = &report->rows[i];
        fprintf(file,
                "%s\n{\"name\":\"%s\",\"n\":%zu,\"p50\":%.6g,\"p95\":%.6g,\"p99\":%.6g,"
                "\"unit\":\"%s\",\"against\":",
                i > 0 ? "," : "", row->name, row->n, row->p50, row->p95, row->p99, row->unit);
        if (row->against[0])
            fprintf(file, "\"%s\",\"ratio\":%.6g}", row->against, row->ratio);
        else
            fprintf(file, "null,\"ratio\":null}");
    }
    fprintf(file, "\n]}\n");
    return fclose(file) == 0 ? 0 : -errno;
}
