/* session.c - see session.h. */

#include "session.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "settings_text.h"

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static enum subject_state state_of(enum case_router router)
{
    static const enum subject_state states[] = { [CASE_ROUTER_BOUND] = SUBJECT_BOUND,
                                                 [CASE_ROUTER_NONE] = SUBJECT_NONE,
                                                 [CASE_ROUTER_ABSENT] = SUBJECT_ABSENT,
                                                 [CASE_ROUTER_MISMATCH] = SUBJECT_MISMATCH };
    return states[router];
}

static struct settings_source settings_of(const struct session *session,
                                          const struct case_file *file)
{
    return (struct settings_source){ .file = file,
                                     .sets = session->suite->sets,
                                     .set_count = session->suite->set_count,
                                     .image = session->suite->image,
                                     .variables = &session->variables };
}

static bool start_subject(struct session *session, const struct case_file *file)
{
    _cleanup_(buf_done)
    struct buf settings = { 0 };
    const struct suite *suite = session->suite;
    struct subject_options options = suite->subject;
    const struct settings_source source = settings_of(session, file);
    if (variables_set(&session->variables, "IMAGE", suite->image) < 0 ||
        variables_set(&session->variables, "SOURCES", suite->sources) < 0 ||
        settings_text(&source, NULL, &settings) < 0 ||
        settings_section_text(file, options.section, &session->section) < 0)
        return false;
    options.state = state_of(file->router);
    options.section = buf_text(&session->section);
    options.settings = file->router == CASE_ROUTER_BOUND ? buf_text(&settings) : NULL;
    return subject_start(&options, &session->subject, session->error, sizeof(session->error)) ==
           0;
}

static bool session_begin(struct session *session, const struct case_file *file)
{
    if (!start_subject(session, file))
        return false;
    struct play play = { .client = subject_client(session->subject),
                         .adapter_name = subject_adapter_name(session->subject),
                         .coverage = &session->coverage };
    _cleanup_(buf_done)
    struct buf body = { 0 };
    if (!play_call(&play, "sandbox::adapter::info", "{}", &body)) {
        snprintf(session->error, sizeof(session->error), "sandbox::adapter::info: %.1000s",
                 buf_text(&body));
        return false;
    }
    session->coverage.operations[OP_adapter_info] = true;
    session->info = json_loads(buf_text(&body), 0, NULL);
    return session->info != NULL;
}

bool session_has_feature(const struct session *session, const char *feature)
{
    json_t *features = json_object_get(json_object_get(session->info, "info"), "features");
    for (size_t i = 0; i < json_array_size(features); i++) {
        const char *name = json_string_value(json_array_get(features, i));
        if (name && strcmp(name, feature) == 0)
            return true;
    }
    return false;
}

static const char *adapter_name(const struct session *session)
{
    const char *name = json_string_value(json_object_get(session->info, "adapter"));
    return name ? name : "";
}

__attribute__((format(printf, 3, 4))) static void
judge(struct result *result, enum verdict verdict, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    result->verdict = verdict;
    vsnprintf(result->why, sizeof(result->why), format, arguments);
    va_end(arguments);
}

/* The router's own where no adapter is bound. */
static int64_t minor_of(const struct session *session, const struct case_file *file)
{
    const json_t *of = file->router == CASE_ROUTER_BOUND
                           ? json_object_get(session->info, "info")
                           : session->info;
    return json_integer_value(json_object_get(json_object_get(of, "contract"), "minor"));
}

/* True when the adapter does not promise what the rule is about. */
static bool skip(const struct session *session, struct result *result)
{
    int64_t minor = minor_of(session, result->file);
    const struct rule *rule = result->rule;
    bool skipped = true;
    if ((int64_t)rule->since > minor)
        judge(result, VERDICT_SKIP, "needs contract minor %u, the adapter has %lld",
              rule->since, (long long)minor);
    else if (rule->needs && !session_has_feature(session, rule->needs))
        judge(result, VERDICT_SKIP, "needs the feature %s, the adapter does not list it",
              rule->needs);
    else if (rule->lacks && session_has_feature(session, rule->lacks))
        judge(result, VERDICT_SKIP, "is for adapters without the feature %s", rule->lacks);
    else
        skipped = false;
    return skipped;
}

/* What the rules of the file find in a new sandbox. */
static bool set_up(const struct case_file *file, struct play *play, struct buf *why)
{
    struct buf *transcript = play->transcript;
    play->transcript = NULL;
    bool done = !file->setup || play_steps(play, file->setup, why);
    play->transcript = transcript;
    if (!done)
        (void)buf_append_text(why, " (in setup)");
    return done;
}

/* Makes the sandbox that the file wants and names it SB. */
static bool provide_sandbox(struct session *session, const struct case_file *file,
                            struct play *play, struct buf *why)
{
    _cleanup_(buf_done)
    struct buf reply = { 0 };
    if (file->sandbox == CASE_SANDBOX_NONE)
        return true;
    if (file->sandbox == CASE_SANDBOX_SHARED && session->sandbox[0])
        return variables_set(&play->variables, "SB", session->sandbox) == 0;
    char body[1024];
    snprintf(body, sizeof(body), "{\"image\":\"%s\"}", session->suite->image);
    if (!play_call(play, "sandbox::create", body, &reply)) {
        (void)buf_printf(why, "no sandbox for the rule: %s", buf_text(&reply));
        return false;
    }
    json_t *value = json_loads(buf_text(&reply), 0, NULL);
    const char *id = json_string_value(json_object_get(value, "sandbox_id"));
    if (!id)
        (void)buf_printf(why, "no sandbox_id in the reply of create: %.300s", buf_text(&reply));
    else if (file->sandbox == CASE_SANDBOX_SHARED)
        snprintf(session->sandbox, sizeof(session->sandbox), "%s", id);
    int ret = id ? variables_set(&play->variables, "SB", id) : -1;
    json_decref(value);
    return ret == 0 && set_up(file, play, why);
}

static void stop_sandbox(struct play *play, const char *id)
{
    _cleanup_(buf_done)
    struct buf reply = { 0 };
    char body[128];
    snprintf(body, sizeof(body), "{\"sandbox_id\":\"%s\"}", id);
    (void)play_call(play, "sandbox::stop", body, &reply); /* the rule may have stopped it */
}

/* What a rule that failed has left would fail the rules behind it. */
static void stop_leftovers(const struct session *session, struct play *play)
{
    _cleanup_(buf_done)
    struct buf reply = { 0 };
    if (session->suite->subject.router_url || !play_call(play, "sandbox::list", "{}", &reply))
        return; /* others may have sandboxes behind a router that is not ours */
    json_t *list = json_loads(buf_text(&reply), 0, NULL);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        const char *id = json_string_value(json_object_get(entry, "sandbox_id"));
        if (id && strcmp(id, session->sandbox) != 0)
            stop_sandbox(play, id);
    }
    json_decref(list);
}

static void set_variables(const struct session *session, const struct case_file *file,
                          struct variables *variables)
{
    const struct yaml_node *own = file->variables;
    (void)variables_set(variables, "IMAGE", session->suite->image);
    (void)variables_set(variables, "SOURCES", session->suite->sources);
    (void)variables_set(variables, "ADAPTER", adapter_name(session));
    for (size_t i = 0; own && i < own->count; i++)
        (void)variables_set(variables, own->keys[i]->text, own->items[i]->text);
}

static void run_rule(struct session *session, struct result *result)
{
    _cleanup_(buf_done)
    struct buf why = { 0 };
    const struct settings_source settings = settings_of(session, result->file);
    struct play play = { .client = subject_client(session->subject),
                         .subject = session->subject,
                         .settings = &settings,
                         .adapter_name = adapter_name(session),
                         .minor = minor_of(session, result->file),
                         .coverage = &session->coverage,
                         .transcript = &result->transcript };
    set_variables(session, result->file, &play.variables);
    uint64_t started_ms = now_ms();
    bool right = provide_sandbox(session, result->file, &play, &why) &&
                 play_steps(&play, result->rule->steps, &why);
    result->duration_ms = now_ms() - started_ms;
    judge(result, right ? VERDICT_PASS : VERDICT_FAIL, "%s", right ? "" : buf_text(&why));
    const char *id = variables_get(&play.variables, "SB", 2);
    if (result->file->sandbox == CASE_SANDBOX_EACH && id)
        stop_sandbox(&play, id);
    if (!right)
        stop_leftovers(session, &play);
    play_done(&play);
}

void session_run(struct session *session, struct result *result)
{
    if (session->suite->subject.router_url && case_file_is_apart(result->file))
        judge(result, VERDICT_SKIP, "needs settings of its own, the router is not ours");
    else if (!session->info && (session->error[0] || !session_begin(session, result->file)))
        judge(result, VERDICT_FAIL, "%s", session->error);
    else if (!skip(session, result))
        run_rule(session, result);
}

void session_end_file(struct session *session)
{
    if (!session->info || !session->sandbox[0])
        return;
    struct play play = { .client = subject_client(session->subject),
                         .adapter_name = "",
                         .coverage = &session->coverage };
    stop_sandbox(&play, session->sandbox);
    session->sandbox[0] = '\0';
}

void session_end(struct session *session)
{
    session_end_file(session);
    subject_stop(session->subject);
    json_decref(session->info);
    buf_done(&session->section);
    variables_done(&session->variables);
    *session = (struct session){ 0 };
}
