/* test_request_limits.c - sums over a request, at their edges. */
#include "request_limits.h"

#include <string.h>

#include "unit.h"

/* SIZE letters; the caller frees. */
static char *letters(size_t size)
{
    char *text = malloc(size + 1);

    ck_assert_ptr_nonnull(text);
    memset(text, 'A', size);
    text[size] = 0;
    return text;
}

static void check(enum operation_id operation, const void *request, const char *message)
{
    struct sandbox_error err = { 0 };

    ck_assert_int_eq(request_limits_check(operation, request, &err), message ? -1 : 0);
    if (message) {
        ck_assert_int_eq(err.code, S001);
        ck_assert_str_eq(err.message, message);
    }
}

START_TEST(test_base64_bytes)
{
    ck_assert_uint_eq(request_limits_base64_bytes(NULL), 0);
    ck_assert_uint_eq(request_limits_base64_bytes(""), 0);
    ck_assert_uint_eq(request_limits_base64_bytes("YQ=="), 1);
    ck_assert_uint_eq(request_limits_base64_bytes("YWI="), 2);
    ck_assert_uint_eq(request_limits_base64_bytes("YWJj"), 3);
    ck_assert_uint_eq(request_limits_base64_bytes("="), 0); /* none at all */
}
END_TEST

START_TEST(test_write)
{
    struct fs_write_request request = { .content = { .text = { .size = LIMIT_INLINE_BYTES } } };
    char *base64 = letters((LIMIT_INLINE_BYTES + 1) / 3 * 4); /* 2,097,153 is a multiple of 3 */

    check(OP_fs_write, &request, NULL);
    request.content.text.size++;
    check(OP_fs_write, &request,
          "content: expected at most 2097152 bytes inline in one request, got 2097153: give a "
          "channel as content to stream it");
    request.content.text.size = 0;
    request.content_b64 = base64;
    check(OP_fs_write, &request,
          "content: expected at most 2097152 bytes inline in one request, got 2097153: give a "
          "channel as content to stream it");
    base64[strlen(base64) - 1] = '=';
    check(OP_fs_write, &request, NULL);
    free(base64);
}
END_TEST

START_TEST(test_run)
{
    struct run_file files[LIMIT_RUN_FILES + 1] = { { .content = { .size = 100 } } };
    struct run_request request = { .code = { .size = LIMIT_INLINE_BYTES - 103 },
                                   .stdin = (char *)"YWJj",
                                   .files = { LIMIT_RUN_FILES, files } };

    check(OP_run, &request, NULL);
    files[999].content.size = 1;
    check(OP_run, &request,
          "code, files and stdin: expected at most 2097152 bytes inline in one request, got "
          "2097153: write larger files with sandbox::fs::write and a channel");
    files[999].content.size = 0;
    request.files.count++;
    check(OP_run, &request, "files: expected at most 1000 entries, got 1001");
}
END_TEST

START_TEST(test_exec_texts)
{
    char *text = letters(LIMIT_PROGRAM_TEXT_BYTES + 1);
    char *items[] = { text };
    struct exec_request request = { .args = { 1, items } };
    struct sandbox_error err = { 0 };

    check(OP_exec, &request,
          "args: expected each text of at most 131071 bytes, got one of 131072");
    text[LIMIT_PROGRAM_TEXT_BYTES] = 0;
    check(OP_exec, &request, NULL);
    request = (struct exec_request){ .argv = { 1, items } };
    text[LIMIT_PROGRAM_TEXT_BYTES] = 'A';
    check(OP_exec, &request,
          "argv: expected each text of at most 131071 bytes, got one of 131072");
    request = (struct exec_request){ .cmd = text };
    check(OP_exec, &request,
          "cmd: expected each text of at most 131071 bytes, got one of 131072");
    text[5] = ' '; /* a command line is many texts */
    check(OP_exec, &request, NULL);
    text[5] = 'A';
    ck_assert_int_eq(request_limits_check_argv(&(struct text_list){ 1, items }, &err), -1);
    ck_assert_str_eq(err.message,
                     "cmd: expected each text of at most 131071 bytes, got one of 131072");
    free(text);
}
END_TEST

START_TEST(test_exec_sum)
{
    char *text = letters(131071);
    char *items[8] = { text, text, text, text, text, text, text, text };
    struct env_entry entry = { .name = (char *)"A", .value = (char *)"123456" };
    struct exec_request request = { .args = { 8, items },
                                    .env = { .count = 1, .entries = &entry } };

    check(OP_exec, &request, NULL); /* 8 * 131071 + 8 */
    request.cmd = (char *)"c";
    check(OP_exec, &request,
          "cmd, args, argv and env: expected at most 1048576 bytes in sum, got 1048577");
    request.cmd = (char *)"";
    entry.value = (char *)"1234567";
    check(OP_exec, &request,
          "cmd, args, argv and env: expected at most 1048576 bytes in sum, got 1048577");
    free(text);
}
END_TEST

START_TEST(test_exec_stdin)
{
    char *base64 = letters((LIMIT_INLINE_BYTES + 1) / 3 * 4);
    struct exec_request request = { .stdin = base64 };

    check(OP_exec, &request,
          "stdin: expected at most 2097152 bytes inline in one request, got 2097153: send more "
          "with sandbox::fs::write and a channel");
    free(base64);
}
END_TEST

START_TEST(test_env)
{
    char *text = letters(131070);
    struct env_entry entries[9];
    struct create_request create = { .env = { .entries = entries } };
    struct worker_start_request start = { .env = { .entries = entries } };

    entries[0] = (struct env_entry){ .name = (char *)"A", .value = text };
    create.env.count = 1;
    check(OP_create, &create,
          "env: expected each text of at most 131071 bytes, got one of 131072");
    text[131069] = 0;
    check(OP_create, &create, NULL);
    for (size_t i = 1; i < 9; i++)
        entries[i] = entries[0];
    create.env.count = start.env.count = 9;
    check(OP_create, &create, "env: expected at most 1048576 bytes in sum, got 1179639");
    check(OP_worker_start, &start, "env: expected at most 1048576 bytes in sum, got 1179639");
    free(text);
}
END_TEST

START_TEST(test_label)
{
    struct create_request request = { .name = (char *)"caf\xC3\xA9 1" };

    check(OP_create, &request, NULL);
    request.name = (char *)"a\nb";
    check(OP_create, &request, "name: expected text without control characters, got U+000A");
    request.name = (char *)"a\x7f";
    check(OP_create, &request, "name: expected text without control characters, got U+007F");
    request.name = (char *)"a\xC2\x85";
    check(OP_create, &request, "name: expected text without control characters, got U+0085");
    check(OP_list, NULL, NULL);
}
END_TEST

UNIT_MAIN("request_limits", test_base64_bytes, test_write, test_run, test_exec_texts,
          test_exec_sum, test_exec_stdin, test_env, test_label)
