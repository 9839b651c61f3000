/* suite.c - see suite.h. The results stand in the order of the files before anything runs:
 * those that share a session first, then those with one of their own. One lane takes the shared
 * ones, the others what is apart; a lane that is free takes the next file that is left. */

#include "suite.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "session.h"

/* Results of one file, or of all that share a session. */
struct portion {
    size_t begin;
    size_t end;
};

struct lanes {
    struct suite *suite;
    pthread_mutex_t lock; /* of all below and of what the suite gathers */
    size_t next;          /* first result that no lane has taken */
};

static bool is_wanted(const struct suite *suite, const struct rule *rule)
{
    return !suite->only || strncmp(rule->id, suite->only, strlen(suite->only)) == 0;
}

static void add_results(struct suite *suite, bool apart)
{
    for (size_t i = 0; i < suite->cases->count; i++) {
        const struct case_file *file = &suite->cases->items[i];
        if (case_file_is_apart(file) != apart)
            continue;
        for (size_t j = 0; j < file->rule_count; j++) {
            if (is_wanted(suite, &file->rules[j]))
                suite->results[suite->result_count++] =
                    (struct result){ .file = file, .rule = &file->rules[j] };
        }
    }
}

static bool is_together(const struct result *a, const struct result *b)
{
    return a->file == b->file || (!case_file_is_apart(a->file) && !case_file_is_apart(b->file));
}

/* False when nothing is left. */
static bool take_portion(struct lanes *lanes, struct portion *ret_portion)
{
    pthread_mutex_lock(&lanes->lock);
    const struct suite *suite = lanes->suite;
    size_t begin = lanes->next, end = begin;
    while (end < suite->result_count &&
           is_together(&suite->results[begin], &suite->results[end]))
        end++;
    lanes->next = end;
    pthread_mutex_unlock(&lanes->lock);
    *ret_portion = (struct portion){ begin, end };
    return begin < end;
}

/* What a file has brought goes to the suite in one piece, so that reports do not mix. */
static void hand_over(struct lanes *lanes, struct session *session, size_t begin, size_t end)
{
    struct suite *suite = lanes->suite;
    pthread_mutex_lock(&lanes->lock);
    coverage_add(&suite->coverage, &session->coverage);
    for (size_t i = begin; i < end; i++) {
        const struct result *result = &suite->results[i];
        if (result->verdict == VERDICT_SKIP)
            coverage_add_steps(&suite->excused, result->rule->steps);
        suite->report(suite->ctx, result);
    }
    pthread_mutex_unlock(&lanes->lock);
}

static void run_portion(struct lanes *lanes, const struct portion *portion)
{
    struct suite *suite = lanes->suite;
    struct session session = { .suite = suite };
    size_t file_begin = portion->begin;
    for (size_t i = portion->begin; i < portion->end; i++) {
        session_run(&session, &suite->results[i]);
        if (i + 1 < portion->end && suite->results[i + 1].file == suite->results[i].file)
            continue;
        session_end_file(&session);
        hand_over(lanes, &session, file_begin, i + 1);
        file_begin = i + 1;
    }
    session_end(&session);
}

static void *run_lane(void *ctx)
{
    struct lanes *lanes = ctx;
    struct portion portion;
    while (take_portion(lanes, &portion))
        run_portion(lanes, &portion);
    return NULL;
}

int suite_run(struct suite *suite)
{
    struct lanes lanes = { .suite = suite, .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_t threads[SUITE_JOBS_MAX];
    unsigned started = 0;
    suite->results = calloc(suite->cases->rule_count + 1, sizeof(*suite->results));
    if (!suite->results)
        return -ENOMEM;
    add_results(suite, false);
    add_results(suite, true);
    json_object_seed(0); /* once, before several threads make objects */
    while (started + 1 < suite->jobs && started < SUITE_JOBS_MAX &&
           pthread_create(&threads[started], NULL, run_lane, &lanes) == 0)
        started++;
    run_lane(&lanes);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&lanes.lock);
    return 0;
}

size_t suite_count(const struct suite *suite, enum verdict verdict)
{
    size_t count = 0;
    for (size_t i = 0; i < suite->result_count; i++)
        count += suite->results[i].verdict == verdict;
    return count;
}

void suite_done(struct suite *suite)
{
    for (size_t i = 0; i < suite->result_count; i++)
        buf_done(&suite->results[i].transcript);
    free(suite->results);
    suite->results = NULL;
}
