/* report.c - see report.h. */

#include "report.h"

#include <errno.h>
#include <string.h>

static const char *const verdict_words[] = {
    [VERDICT_PASS] = "pass", [VERDICT_FAIL] = "FAIL", [VERDICT_SKIP] = "skip"
};

/* TAP: each line of it is a comment. */
static void print_comment(const char *contract, const char *why)
{
    printf("# contract %s: ", contract);
    for (; *why; why++) {
        putchar(*why);
        if (*why == '\n' && why[1])
            fputs("# ", stdout);
    }
    putchar('\n');
}

void report_result(void *ctx, const struct result *result)
{
    struct report *report = ctx;
    const struct rule *rule = result->rule;
    report->count++;
    if (report->tap) {
        printf("%sok %u - %s %s%s%s\n", result->verdict == VERDICT_FAIL ? "not " : "",
               report->count, rule->id, rule->text,
               result->verdict == VERDICT_SKIP ? " # SKIP " : "",
               result->verdict == VERDICT_SKIP ? result->why : "");
        if (result->verdict == VERDICT_FAIL)
            print_comment(result->file->contract, result->why);
    } else if (report->verbose || result->verdict != VERDICT_PASS) {
        printf("%s %-36s %s (contract %s, %llu ms)\n", verdict_words[result->verdict], rule->id,
               rule->text, result->file->contract, (unsigned long long)result->duration_ms);
        if (result->why[0])
            printf("     %s\n", result->why);
    }
    fflush(stdout);
}

void report_summary(const struct report *report, const struct suite *suite)
{
    if (report->tap)
        printf("1..%u\n", report->count);
    printf("%s%zu passed, %zu failed, %zu skipped\n", report->tap ? "# " : "",
           suite_count(suite, VERDICT_PASS), suite_count(suite, VERDICT_FAIL),
           suite_count(suite, VERDICT_SKIP));
}

static void write_xml(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", file);
        else if (*text == '>')
            fputs("&gt;", file);
        else if (*text == '&')
            fputs("&amp;", file);
        else if (*text == '"')
            fputs("&quot;", file);
        else if ((unsigned char)*text >= 0x20 || *text == '\n')
            fputc(*text, file);
    }
}

static void write_testcase(FILE *file, const struct result *result)
{
    fputs("  <testcase classname=\"", file);
    write_xml(file, result->file->title);
    fputs("\" name=\"", file);
    write_xml(file, result->rule->id);
    fprintf(file, "\" time=\"%llu.%03llu\">", (unsigned long long)result->duration_ms / 1000,
            (unsigned long long)result->duration_ms % 1000);
    if (result->verdict != VERDICT_PASS) {
        fprintf(file, "<%s message=\"",
                result->verdict == VERDICT_FAIL ? "failure" : "skipped");
        write_xml(file, result->why);
        fputs("\"/>", file);
    }
    fputs("</testcase>\n", file);
}

int report_junit(const struct suite *suite, const char *path)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return -errno;
    fprintf(file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuite name=\"sandbox-conformance\" tests=\"%zu\" failures=\"%zu\" "
            "skipped=\"%zu\">\n",
            suite->result_count, suite_count(suite, VERDICT_FAIL),
            suite_count(suite, VERDICT_SKIP));
    for (size_t i = 0; i < suite->result_count; i++)
        write_testcase(file, &suite->results[i]);
    fputs("</testsuite>\n", file);
    return fclose(file) == 0 ? 0 : -errno;
}

static bool same_transcript(const struct result *a, const struct result *b)
{
    return a->transcript.size == b->transcript.size &&
           (a->transcript.size == 0 ||
            memcmp(a->transcript.data, b->transcript.data, a->transcript.size) == 0);
}

unsigned report_differences(const struct suite *a, const struct suite *b)
{
    unsigned count = 0;
    for (size_t i = 0; i < a->result_count && i < b->result_count; i++) {
        struct result *left = &a->results[i], *right = &b->results[i];
        bool skipped = left->verdict == VERDICT_SKIP || right->verdict == VERDICT_SKIP;
        if (left->verdict != right->verdict) {
            printf("%s %s: %s %s / %s %s\n", skipped ? "declared" : "differs", left->rule->id,
                   verdict_words[left->verdict], left->why, verdict_words[right->verdict],
                   right->why);
            count += !skipped;
        } else if (!skipped && !same_transcript(left, right)) {
            printf("differs %s: answers\n  %s\n  %s\n", left->rule->id,
                   buf_text(&left->transcript), buf_text(&right->transcript));
            count++;
        }
    }
    printf("%zu rules compared, %u differ\n", a->result_count, count);
    return count;
}
