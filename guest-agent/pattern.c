/* pattern.c - see pattern.h. */
#include "pattern.h"

#include <ctype.h>
#include <errno.h>
#include <pcre2.h>
#include <string.h>
#include <time.h>

#define SHOWN_BYTES 200 /* of a pattern, in messages */

/* The limits hold for each start position, so a long line can still take its length squared. It
 * is therefore tried a stretch of starts at a time, with a look at the clock and at the job in
 * between; a quick stretch is followed by one of twice as many starts. Short lines take one
 * stretch. A stretch begins where a match can begin: PCRE2 looks for such a place as far as the
 * line's end, and would do that anew for each stretch. */
#define STRETCH_WORK ((size_t)1 << 30)
#define STRETCH_STARTS_MIN 64u
#define STRETCH_STARTS_MAX (64u * 1024)
#define STRETCH_QUICK_MS 10
#define LINE_CPU_MS_MAX 20000

/* Where a match can begin, as far as the pattern's text tells. */
enum start_kind {
    START_ANYWHERE,
    START_IN_SET,     /* at a byte of the set */
    START_BEHIND_SET, /* where the search begins, or behind a byte of the set */
};

struct pattern {
    struct job *job;
    enum start_kind start;
    uint8_t start_set[32]; /* a bit for each byte */
    char shown[SHOWN_BYTES + 1];
    pcre2_code *code;
    pcre2_match_context *limits;
    pcre2_match_data *match;
    struct blob literal; /* data not NULL: a plain search does it */
    PCRE2_SIZE found[2]; /* of a plain search */
};

void pattern_free(struct pattern *pattern)
{
    if (!pattern)
        return;
    pcre2_match_data_free(pattern->match);
    pcre2_match_context_free(pattern->limits);
    pcre2_code_free(pattern->code);
    free(pattern->literal.data);
    free(pattern);
}

static int pattern_error(const struct pattern *pattern, int error, size_t offset,
                         struct sandbox_error *err)
{
    PCRE2_UCHAR reason[256];

    (void)pcre2_get_error_message(error, reason, sizeof(reason));
    return sandbox_error_set(err, S217, "pattern `%s`, offset %zu: %s", pattern->shown, offset,
                             (const char *)reason);
}

static int no_memory(struct sandbox_error *err)
{
    return sandbox_error_set(err, S216, "no memory for the pattern");
}

static void set_add(uint8_t *set, unsigned char byte)
{
    set[byte / 8] |= (uint8_t)(1u << byte % 8);
}

/* The last bytes of whatever PCRE2 may be told to take for a line end. */
static void set_line_ends(uint8_t *set)
{
    static const unsigned char ends[] = { 0, '\n', '\v', '\f', '\r', 0x85, 0xa8, 0xa9 };

    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        set_add(set, ends[i]);
}

/* To take more places than there are is not wrong: so both cases of a letter count, since
 * whether they must is not told. */
static void pattern_learn_start(struct pattern *pattern)
{
    const uint8_t *first = NULL;
    uint32_t type = 0, unit = 0;

    (void)pcre2_pattern_info(pattern->code, PCRE2_INFO_FIRSTCODETYPE, &type);
    (void)pcre2_pattern_info(pattern->code, PCRE2_INFO_FIRSTCODEUNIT, &unit);
    (void)pcre2_pattern_info(pattern->code, PCRE2_INFO_FIRSTBITMAP, &first);
    if (type == 1) {
        pattern->start = START_IN_SET;
        set_add(pattern->start_set, (unsigned char)tolower((int)unit));
        set_add(pattern->start_set, (unsigned char)toupper((int)unit));
    } else if (type == 2) {
        pattern->start = START_BEHIND_SET;
        set_line_ends(pattern->start_set);
    } else if (type == 0 && first) {
        pattern->start = START_IN_SET;
        memcpy(pattern->start_set, first, sizeof(pattern->start_set));
        memset(pattern->start_set + 0x80 / 8, 0, 0x40 / 8); /* no character begins so */
    }
}

static int pattern_compile(struct pattern *pattern, const struct pattern_spec *spec,
                           struct sandbox_error *err)
{
    uint32_t options = PCRE2_UTF | PCRE2_USE_OFFSET_LIMIT;
    PCRE2_SIZE offset;
    int error;

    options |= spec->literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
    if (spec->ignore_case)
        options |= PCRE2_CASELESS;
    pattern->code = pcre2_compile((PCRE2_SPTR)spec->text.data, spec->text.size, options, &error,
                                  &offset, NULL);
    if (!pattern->code)
        return pattern_error(pattern, error, offset, err);
    pattern->match = pcre2_match_data_create_from_pattern(pattern->code, NULL);
    pattern->limits = pcre2_match_context_create(NULL);
    if (!pattern->match || !pattern->limits)
        return no_memory(err);
    pattern_learn_start(pattern);
    (void)pcre2_set_match_limit(pattern->limits, PATTERN_MATCH_STEPS_MAX);
    (void)pcre2_set_depth_limit(pattern->limits, PATTERN_DEPTH_MAX);
    (void)pcre2_set_heap_limit(pattern->limits, PATTERN_HEAP_KIB_MAX);
    return 0;
}

static int pattern_take_literal(struct pattern *pattern, const struct pattern_spec *spec,
                                struct sandbox_error *err)
{
    pattern->literal.size = spec->text.size;
    pattern->literal.data = malloc(spec->text.size + 1);
    if (!pattern->literal.data)
        return no_memory(err);
    memcpy(pattern->literal.data, spec->text.data, spec->text.size);
    return 0;
}

int pattern_new(const struct pattern_spec *spec, struct job *job, struct pattern **ret_pattern,
                struct sandbox_error *err)
{
    _cleanup_(pattern_freep)
    struct pattern *pattern = calloc(1, sizeof(*pattern));
    size_t shown = spec->text.size < SHOWN_BYTES ? spec->text.size : SHOWN_BYTES;
    int result;

    if (!pattern)
        return no_memory(err);
    pattern->job = job;
    memcpy(pattern->shown, spec->text.data, shown); /* a cut character is repaired on its way */
    if (spec->text.size > PATTERN_BYTES_MAX)
        return sandbox_error_set(err, S217, "pattern `%s…`, offset %u: over %u bytes",
                                 pattern->shown, PATTERN_BYTES_MAX, PATTERN_BYTES_MAX);
    /* A long literal would not compile, and this is faster. */
    result = spec->literal && !spec->ignore_case ? pattern_take_literal(pattern, spec, err)
                                                 : pattern_compile(pattern, spec, err);
    if (result < 0)
        return -1;
    *ret_pattern = take_ptr(pattern);
    return 0;
}

static int literal_match(struct pattern *pattern, const struct pattern_subject *subject)
{
    const char *found;

    if (subject->again_here)
        return 0; /* literals are never empty */
    found = memmem(subject->text + subject->from, subject->size - subject->from,
                   pattern->literal.data, pattern->literal.size);
    if (!found)
        return 0;
    pattern->found[0] = (PCRE2_SIZE)(found - subject->text);
    pattern->found[1] = pattern->found[0] + pattern->literal.size;
    return 1;
}

static int64_t cpu_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static size_t stretch_starts(size_t line_size)
{
    const size_t starts = line_size ? STRETCH_WORK / line_size : STRETCH_STARTS_MAX;

    if (starts < STRETCH_STARTS_MIN)
        return STRETCH_STARTS_MIN;
    return starts < STRETCH_STARTS_MAX ? starts : STRETCH_STARTS_MAX;
}

/* How many starts the next stretch has, after one that took so long. */
static size_t stretch_adapt(size_t starts, int64_t took_ms)
{
    if (took_ms < STRETCH_QUICK_MS)
        return starts < STRETCH_STARTS_MAX ? starts * 2 : starts;
    return starts > STRETCH_STARTS_MIN ? starts / 2 : starts;
}

/* The next stretch begins at a character. */
static size_t stretch_next(const struct pattern_subject *subject, size_t from, size_t starts)
{
    size_t next = from + starts + 1;

    while (next < subject->size && ((unsigned char)subject->text[next] & 0xc0) == 0x80)
        next++;
    return next;
}

/* The first place from FROM on where a match can begin; beyond the subject: none. */
static size_t stretch_begin(const struct pattern *pattern,
                            const struct pattern_subject *subject, size_t from)
{
    const bool behind = pattern->start == START_BEHIND_SET;

    if (pattern->start == START_ANYWHERE || (behind && from == subject->from))
        return from;
    for (size_t at = from - behind; at < subject->size; at++) {
        const unsigned char byte = (unsigned char)subject->text[at];

        if (pattern->start_set[byte / 8] & 1u << byte % 8)
            return at + behind;
    }
    return subject->size + 1;
}

/* The result of pcre2_match() over all stretches. */
static int match_by_stretches(struct pattern *pattern, const struct pattern_subject *subject)
{
    const uint32_t options = PCRE2_NO_UTF_CHECK |
                             (subject->again_here ? PCRE2_NOTEMPTY_ATSTART | PCRE2_ANCHORED
                                                  : 0);
    const int64_t begun_ms = cpu_ms();
    int64_t looked_ms = begun_ms;
    size_t starts = stretch_starts(subject->size);
    size_t from = subject->from;

    for (;;) {
        int64_t now_ms;
        int result;

        if (!subject->again_here)
            from = stretch_begin(pattern, subject, from);
        if (from > subject->size)
            return PCRE2_ERROR_NOMATCH;
        (void)pcre2_set_offset_limit(pattern->limits, from + starts);
        result = pcre2_match(pattern->code, (PCRE2_SPTR)subject->text, subject->size, from,
                             options, pattern->match, pattern->limits);
        if (result != PCRE2_ERROR_NOMATCH || subject->again_here)
            return result;
        from = stretch_next(subject, from, starts);
        if (from > subject->size)
            return PCRE2_ERROR_NOMATCH;
        now_ms = cpu_ms();
        if (job_cancelled(pattern->job) || now_ms - begun_ms > LINE_CPU_MS_MAX)
            return PCRE2_ERROR_MATCHLIMIT;
        starts = stretch_adapt(starts, now_ms - looked_ms);
        looked_ms = now_ms;
    }
}

int pattern_match(struct pattern *pattern, const struct pattern_subject *subject,
                  struct sandbox_error *err)
{
    int result;

    if (pattern->literal.data)
        return literal_match(pattern, subject);
    result = match_by_stretches(pattern, subject);
    if (result == PCRE2_ERROR_NOMATCH)
        return 0;
    if (result < 0 && job_cancelled(pattern->job))
        return sandbox_error_set(err, S216, "the call was cancelled");
    return result < 0 ? pattern_error(pattern, result, subject->from, err) : 1;
}

bool pattern_group(const struct pattern *pattern, unsigned group, size_t *ret_start,
                   size_t *ret_end)
{
    const PCRE2_SIZE *found = pattern->match
                                  ? pcre2_get_ovector_pointer(pattern->match) + 2 * group
                                  : pattern->found;

    if (found[0] == PCRE2_UNSET || found[0] > found[1]) /* \K can turn them round */
        return false;
    *ret_start = found[0];
    *ret_end = found[1];
    return true;
}

unsigned pattern_group_count(const struct pattern *pattern)
{
    uint32_t count = 0;

    if (pattern->code)
        (void)pcre2_pattern_info(pattern->code, PCRE2_INFO_CAPTURECOUNT, &count);
    return count;
}

bool pattern_has_name(const struct pattern *pattern, const char *name)
{
    PCRE2_SPTR first, last;

    return pattern->code &&
           pcre2_substring_nametable_scan(pattern->code, (PCRE2_SPTR)name, &first, &last) >= 0;
}

unsigned pattern_group_named(const struct pattern *pattern, const char *name)
{
    PCRE2_SPTR first, last;
    int entry_size;
    unsigned group;

    if (!pattern->code)
        return 0;
    entry_size = pcre2_substring_nametable_scan(pattern->code, (PCRE2_SPTR)name, &first, &last);
    if (entry_size < 0)
        return 0;
    group = (unsigned)(first[0] << 8 | first[1]);
    for (PCRE2_SPTR entry = first; entry <= last; entry += entry_size) {
        const unsigned candidate = (unsigned)(entry[0] << 8 | entry[1]);
        size_t start, end;

        if (pattern_group(pattern, candidate, &start, &end))
            return candidate;
    }
    return group;
}
