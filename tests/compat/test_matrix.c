/* test_matrix.c - every operation over every pair of versions: real routers built for other
 * versions, an adapter that is played and gives the recorded replies of its minor. What comes
 * must be the contract's (2.1, 2.3) and makes docs/compatibility.md. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "frozen.h"
#include "json_scan.h"
#include "matrix.h"
#include "played_adapter.h"
#include "router_process.h"
#include "turn.h"
#include "unit.h"

#define WAIT_MS 20000
#define NAME "played"

const struct matrix_router matrix_routers[MATRIX_ROUTERS] = {
    { { 0, 2 } }, { { 1, 0 } }, { { 1, 1 } }, { { 1, 2 } }, { { 1, 99 } }, { { 2, 0 } },
};

const struct matrix_adapter matrix_adapters[MATRIX_ADAPTERS] = {
    { .heading = "0.2", .contract = { 0, 2 }, .replies = 2, .features = { "worker" } },
    { .heading = "1.0", .contract = { 1, 0 }, .replies = 0 },
    { .heading = "1.1", .contract = { 1, 1 }, .replies = 1 },
    { .heading = "1.2", .contract = { 1, 2 }, .replies = 2, .features = { "idempotency" } },
    { .heading = "1.2 with `worker`",
      .contract = { 1, 2 },
      .replies = 2,
      .features = { "idempotency", "worker" } },
    { .heading = "1.99, unknown features",
      .contract = { 1, 99 },
      .replies = 2,
      .later = true,
      .features = { "idempotency", "worker", "teleport" } },
    { .heading = "2.0", .contract = { 2, 0 }, .replies = 2, .features = { "worker" } },
    { .heading = "no contract key", .without_contract = true },
};

#define EXTRA_KEY "\"from_a_later_minor\":{\"x\":[1e400]},"

struct scene {
    const struct matrix_router *router;
    const struct matrix_adapter *adapter;
    struct loop *loop;
    struct router_process *process;
    struct native_client *caller;
    struct played_adapter *played; /* NULL: the router has closed its connection */
    const struct operation *called;
    struct buf request; /* as it came to the adapter */
    struct buf reply;   /* as the adapter sent it */
    bool sent_error;
};

/* The adapter's side. */

static bool has_feature(const struct matrix_adapter *adapter, const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(adapter->features) && adapter->features[i]; i++) {
        if (strcmp(adapter->features[i], name) == 0)
            return true;
    }
    return false;
}

static void set_text(struct buf *buf, const char *text, size_t size)
{
    buf_clear(buf);
    ck_assert_int_eq(buf_append(buf, text, size), 0);
    ck_assert_ptr_nonnull(buf_text(buf));
}

/* A later minor has keys in its objects that nobody knows yet. */
static void add_extra_key(struct buf *reply)
{
    struct buf copy = { 0 };
    const char *text = buf_text(reply);
    const char *brace = strchr(text, '{');

    ck_assert_ptr_nonnull(brace);
    ck_assert_int_eq(buf_append(&copy, text, (size_t)(brace - text) + 1), 0);
    ck_assert_int_eq(buf_append_text(&copy, EXTRA_KEY), 0);
    ck_assert_int_eq(buf_append_text(&copy, brace + 1), 0);
    set_text(reply, (const char *)copy.data, copy.size);
    buf_done(&copy);
}

static void on_call(void *ctx, struct played_adapter *played, const struct envelope *call)
{
    static const char unsupported[] =
        "{\"type\":\"platform\",\"code\":\"S304\",\"message\":\"played has no worker VMs\","
        "\"docs_url\":\"x#S304\",\"retryable\":false,\"fix\":null,\"fix_note\":null}";
    struct scene *scene = ctx;
    const struct operation *operation = operation_find(call->operation.data,
                                                       call->operation.size);

    ck_assert_ptr_nonnull(operation);
    set_text(&scene->request, call->body.data, call->body.size);
    scene->sent_error = operation->flags & OPTIONAL_OP &&
                        !has_feature(scene->adapter, "worker");
    if (scene->sent_error) {
        set_text(&scene->reply, unsupported, sizeof(unsupported) - 1);
        played_adapter_error(played, call->id, span_of_text(unsupported));
        return;
    }
    char *reply = frozen_reply_find(scene->adapter->replies, operation->name);
    set_text(&scene->reply, reply, strlen(reply));
    free(reply);
    if (scene->adapter->later)
        add_extra_key(&scene->reply);
    played_adapter_reply(played, call->id,
                         (struct span){ (const char *)scene->reply.data, scene->reply.size });
}

/* Scenes. */

static void scene_connect(struct scene *scene)
{
    const struct matrix_adapter *adapter = scene->adapter;
    struct played_adapter_options options = {
        .name = NAME,
        .contract = adapter->contract,
        .without_contract = adapter->without_contract,
        .features = adapter->features,
        .call = on_call,
        .ctx = scene,
    };
    int result;

    while (options.feature_count < ARRAY_SIZE(adapter->features) &&
           adapter->features[options.feature_count])
        options.feature_count++;
    result = played_adapter_new(scene->loop, router_process_url(scene->process), &options,
                                &scene->played);
    ck_assert_int_eq(result, adapter->without_contract ? -EPIPE : 0);
}

static void scene_open(struct scene *scene, const struct matrix_router *router)
{
    char program[512];
    const struct native_client_options options = { .loop = scene->loop,
                                                   .hello = &native_caller_hello };

    scene->router = router;
    (void)snprintf(program, sizeof(program), "%s/compat-router-%u.%u", COMPAT_ROUTERS,
                   router->contract.major, router->contract.minor);
    scene->process = router_process_start_with(
        scene->loop,
        &(struct router_process_options){
            .program = program, .sandbox = "  adapter: " NAME "\n  managed: false\n" });
    ck_assert_int_eq(native_client_new_with(router_process_url(scene->process), &options,
                                            WAIT_MS, &scene->caller),
                     0);
}

/* Calls. */

/* A request with every key that came after 1.0, and one that is in no table. */
static void write_request(const struct operation *operation, struct buf *to)
{
    ck_assert_int_eq(buf_append_text(to, "{\"-\": -0"), 0);
    for (size_t i = 0; i < operation->request->field_count; i++) {
        if (operation->request->fields[i].since > 0)
            ck_assert_int_eq(
                buf_printf(to, ",\"%s\": \"k\"", operation->request->fields[i].name), 0);
    }
    ck_assert_int_eq(buf_append_text(to, "}"), 0);
}

static enum matrix_verdict expected_verdict(const struct scene *scene)
{
    if (scene->adapter->without_contract)
        return MATRIX_CLOSED;
    if (scene->adapter->contract.major == scene->router->contract.major)
        return MATRIX_FORWARDED;
    return scene->adapter->contract.major < scene->router->contract.major
               ? MATRIX_UPGRADE_ADAPTER
               : MATRIX_UPGRADE_ROUTER;
}

/* S302 names both versions and the side with the lower major. */
static enum matrix_verdict verdict_of_error(const struct scene *scene, const char *body)
{
    char versions[128];

    if (strstr(body, "\"code\":\"S301\"")) {
        bool never_ran = strstr(body, "\"outcome\":\"never_ran\"") != NULL;

        ck_assert(never_ran == !!(scene->called->flags & SIDE_EFFECTS));
        return MATRIX_CLOSED;
    }
    ck_assert_msg(strstr(body, "\"code\":\"S302\"") != NULL, "got %s", body);
    (void)snprintf(versions, sizeof(versions),
                   "adapter " NAME " speaks contract %u.%u, this router %u.%u: upgrade the ",
                   scene->adapter->contract.major, scene->adapter->contract.minor,
                   scene->router->contract.major, scene->router->contract.minor);
    ck_assert_msg(strstr(body, versions) != NULL, "got %s", body);
    return strstr(body, "upgrade the adapter") ? MATRIX_UPGRADE_ADAPTER : MATRIX_UPGRADE_ROUTER;
}

static void add_missing(struct matrix_cell *cell, const struct type *type, const char *reply)
{
    for (size_t i = 0; i < type->field_count; i++) {
        const struct field *field = &type->fields[i];
        char key[80];

        if (field->type)
            add_missing(cell, field->type, reply);
        (void)snprintf(key, sizeof(key), "\"%s\":", field->name);
        if (field->since == 0 || strstr(reply, key))
            continue;
        ck_assert_uint_lt(cell->missing_count, ARRAY_SIZE(cell->missing));
        cell->missing[cell->missing_count++] = field->name;
    }
}

static void add_ignored(struct matrix_cell *cell, const struct type *request,
                        const struct matrix_adapter *adapter)
{
    for (size_t i = 0; i < request->field_count; i++) {
        if (request->fields[i].since <= adapter->contract.minor)
            continue;
        ck_assert_uint_lt(cell->ignored_count, ARRAY_SIZE(cell->ignored));
        cell->ignored[cell->ignored_count++] = request->fields[i].name;
    }
}

/* The router's own answer holds the adapter's, whatever the versions are. */
static void check_info(struct scene *scene, const char *body, struct matrix_cell *ret_cell)
{
    static const char *const statuses[] = { "bound", "mismatch", "mismatch", "waiting" };
    enum matrix_verdict verdict = expected_verdict(scene);
    char wanted[4096];

    (void)snprintf(wanted, sizeof(wanted),
                   "{\"adapter\":\"" NAME "\",\"namespace\":\"default\",\"contract\":"
                   "{\"major\":%u,\"minor\":%u},\"info\":%s,\"status\":\"%s\"}",
                   scene->router->contract.major, scene->router->contract.minor,
                   verdict == MATRIX_CLOSED ? "null" : buf_text(&scene->reply),
                   statuses[verdict]);
    ck_assert_str_eq(body, wanted);
    ret_cell->verdict = MATRIX_FORWARDED;
    ret_cell->no_info = verdict == MATRIX_CLOSED;
    if (ret_cell->no_info)
        return;
    add_missing(ret_cell, scene->called->reply, body);
    ret_cell->extra = strstr(body, EXTRA_KEY) != NULL;
}

static void check_forwarded(struct scene *scene, bool ok, const char *body,
                            const struct buf *request, struct matrix_cell *ret_cell)
{
    ck_assert_uint_eq(scene->request.size, request->size);
    ck_assert_int_eq(memcmp(scene->request.data, request->data, request->size), 0);
    ck_assert_str_eq(body, buf_text(&scene->reply));
    ck_assert_int_eq(ok, !scene->sent_error);
    ret_cell->unsupported = scene->sent_error;
    if (scene->sent_error)
        return;
    add_missing(ret_cell, scene->called->reply, body);
    add_ignored(ret_cell, scene->called->request, scene->adapter);
    ret_cell->extra = strstr(body, EXTRA_KEY) != NULL;
}

static void call_one(struct scene *scene, const char *owner, const struct operation *operation,
                     struct matrix_cell *ret_cell)
{
    _cleanup_(buf_done)
    struct buf request = { 0 };
    _cleanup_(native_call_freep)
    struct native_call *call = NULL;
    char function[96];
    const char *body;

    *ret_cell = (struct matrix_cell){ 0 };
    scene->called = operation;
    buf_clear(&scene->request);
    write_request(operation, &request);
    (void)snprintf(function, sizeof(function), "%s::%s", owner, operation->name);
    ck_assert_int_eq(
        native_call_start(scene->caller, function, request.data, request.size, &call), 0);
    ck_assert_int_eq(native_call_wait(call, WAIT_MS), 0);
    body = native_call_body(call, NULL);
    if (operation->id == OP_adapter_info && strcmp(owner, "sandbox") == 0) {
        ck_assert(native_call_ok(call));
        check_info(scene, body, ret_cell);
        return;
    }
    ret_cell->verdict = scene->request.size > 0 ? MATRIX_FORWARDED
                                                : verdict_of_error(scene, body);
    if (ret_cell->verdict == MATRIX_FORWARDED)
        check_forwarded(scene, native_call_ok(call), body, &request, ret_cell);
    else
        ck_assert(!native_call_ok(call));
    if (operation->id != OP_adapter_info)
        ck_assert_int_eq(ret_cell->verdict, expected_verdict(scene));
}

static void run_pair(struct scene *scene, struct matrix_cell *ret_cells)
{
    scene_connect(scene);
    for (size_t op = 0; op < OP_MAX; op++) {
        struct matrix_cell by_name;

        call_one(scene, "sandbox", &operations[op], &ret_cells[op]);
        call_one(scene, NAME, &operations[op], &by_name);
        if (operations[op].id != OP_adapter_info) /* that one answers over every pair */
            ck_assert_int_eq(by_name.verdict, ret_cells[op].verdict);
    }
    played_adapter_free(take_ptr(scene->played));
    if (!scene->adapter->without_contract)
        (void)router_process_await_log(scene->process, "event=adapter_lost");
}

static void run_router(const struct matrix_router *router,
                       struct matrix_cell (*ret_cells)[OP_MAX])
{
    struct scene scene = { 0 };

    ck_assert_int_eq(loop_new(&scene.loop), 0);
    scene_open(&scene, router);
    for (size_t i = 0; i < MATRIX_ADAPTERS; i++) {
        scene.adapter = &matrix_adapters[i];
        run_pair(&scene, ret_cells[i]);
    }
    native_client_free(scene.caller);
    ck_assert_int_eq(router_process_stop(scene.process), 0);
    buf_done(&scene.request);
    buf_done(&scene.reply);
    loop_free(scene.loop);
}

/* The minor of a router changes nothing. */
static void check_minors_alike(const struct matrix *matrix)
{
    for (size_t i = 1; i < MATRIX_ROUTERS; i++) {
        if (matrix_routers[i].contract.major != matrix_routers[i - 1].contract.major)
            continue;
        ck_assert_int_eq(
            memcmp(matrix->cells[i], matrix->cells[i - 1], sizeof(matrix->cells[i])), 0);
    }
}

static void compare_or_write(struct buf *text)
{
    const char *write_to = getenv("COMPAT_WRITE");
    FILE *file = fopen(write_to ? write_to : COMPAT_DOC, write_to ? "we" : "re");
    char *old;

    ck_assert_msg(file != NULL, "cannot open docs/compatibility.md");
    if (write_to) {
        ck_assert_uint_eq(fwrite(text->data, 1, text->size, file), text->size);
    } else {
        old = calloc(1, text->size + 2);
        ck_assert_ptr_nonnull(old);
        (void)!fread(old, 1, text->size + 1, file);
        ck_assert_msg(strcmp(old, buf_text(text)) == 0,
                      "docs/compatibility.md is not what the matrix gives; build "
                      "compatibility-doc");
        free(old);
    }
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(test_matrix)
{
    static struct matrix matrix;
    struct buf text = { 0 };

    for (size_t i = 0; i < MATRIX_ROUTERS; i++)
        run_router(&matrix_routers[i], matrix.cells[i]);
    check_minors_alike(&matrix);
    matrix_doc(&matrix, &text);
    compare_or_write(&text);
    buf_done(&text);
}
END_TEST

UNIT_MAIN("compat.matrix", test_matrix)
