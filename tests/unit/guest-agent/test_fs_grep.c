/* test_fs_grep.c - grep (contract 8.8). */
#include <stdio.h>

#include "fs_scene.h"

static struct fs_grep_request grep_request(const char *path, const char *pattern)
{
    return (struct fs_grep_request){
        .path = (char *)(uintptr_t)path,
        .pattern = { .data = (char *)(uintptr_t)pattern, .size = strlen(pattern) },
        .recursive = true,
        .max_matches = 10000,
        .max_line_bytes = 4096,
    };
}

/* The matches as `path:line:content` lines, paths relative to the fs_root. */
static const char *grep_text(const struct fs_grep_request *request, bool *ret_truncated)
{
    static struct buf out;
    struct fs_grep_reply reply = { 0 };

    buf_done(&out);
    OK(fs_grep(NULL, request, &reply, &err));
    for (size_t i = 0; i < reply.matches.count; i++) {
        const struct fs_grep_match *match = &reply.matches.items[i];

        (void)buf_printf(&out, "%s:%d:%s\n", match->path + strlen(fs_root) + 1,
                         (int)match->line, match->content.data);
    }
    if (ret_truncated)
        *ret_truncated = reply.truncated;
    codec_free(&type_fs_grep_reply, &reply);
    return buf_text(&out);
}

START_TEST(grep_walks)
{
    struct fs_grep_request request = grep_request(at(""), "fo+");

    shell("mkdir -p d/e; printf 'x\\nfoo\\nbar foo' > d/f; echo FOO > d/e/g; echo fo > a; "
          "printf 'foo\\0' > bin; printf 'foo\\n\\377foo\\nfoo2\\n' > torn; ln -s d l; "
          "mkfifo p; ln -s a k");
    ck_assert_str_eq(grep_text(&request, NULL),
                     "a:1:fo\nd/f:2:foo\nd/f:3:bar foo\ntorn:1:foo\ntorn:3:foo2\n");
    request.ignore_case = true;
    request.include_glob = (struct text_list){ 1, (char *[]){ (char *)(uintptr_t) "**/e/*" } };
    ck_assert_str_eq(grep_text(&request, NULL), "d/e/g:1:FOO\n");
    request = grep_request(at("k"), "fo");
    ck_assert_str_eq(grep_text(&request, NULL), "k:1:fo\n");
    request.exclude_glob = (struct text_list){ 1, (char *[]){ (char *)(uintptr_t) "k" } };
    ck_assert_str_eq(grep_text(&request, NULL), "");
    request = grep_request(at("l"), "^x");
    ck_assert_str_eq(grep_text(&request, NULL), "l/f:1:x\n");
}
END_TEST

START_TEST(grep_limits)
{
    struct fs_grep_request request = grep_request(at("f"), "a");
    bool truncated;

    shell("printf 'a\\na\\na\\n' > f; printf 'a\\303\\251\\303\\251\\n' > g");
    request.max_matches = 3;
    ck_assert_str_eq(grep_text(&request, &truncated), "f:1:a\nf:2:a\nf:3:a\n");
    ck_assert(truncated);
    request.max_matches = 4;
    (void)grep_text(&request, &truncated);
    ck_assert(!truncated);
    request.max_matches = 0;
    (void)grep_text(&request, &truncated);
    ck_assert(!truncated);
    request = grep_request(at("g"), "a");
    request.max_line_bytes = 4;
    ck_assert_str_eq(grep_text(&request, NULL), "g:1:aé…\n");
    request.max_line_bytes = 5;
    ck_assert_str_eq(grep_text(&request, NULL), "g:1:aéé\n");
    request.max_line_bytes = 0;
    ck_assert_str_eq(grep_text(&request, NULL), "g:1:aéé\n");
    shell("head -c 3000000 /dev/zero | tr '\\0' a | fold -w 1000 > big");
    request = grep_request(at("big"), "a");
    (void)grep_text(&request, &truncated);
    ck_assert(truncated);
}
END_TEST

START_TEST(grep_refuses)
{
    struct fs_grep_request request = grep_request(at("none"), "(");
    struct fs_grep_reply reply = { 0 };

    shell("mkdir d; mkfifo p; head -c 16777217 /dev/zero | tr '\\0' a > long");
    ck_assert_int_eq(CODE(fs_grep(NULL, &request, &reply, &err)), S211);
    request.path = at("d");
    request.recursive = false;
    ck_assert_int_eq(CODE(fs_grep(NULL, &request, &reply, &err)), S217);
    request = grep_request(at("d"), "x");
    request.recursive = false;
    ck_assert_int_eq(CODE(fs_grep(NULL, &request, &reply, &err)), S210);
    request = grep_request(at("p"), "x");
    ck_assert_int_eq(CODE(fs_grep(NULL, &request, &reply, &err)), S212);
    request = grep_request(at("long"), "x");
    ck_assert_int_eq(CODE(fs_grep(NULL, &request, &reply, &err)), S216);
    codec_free(&type_fs_grep_reply, &reply);
}
END_TEST

FS_MAIN("grep", grep_walks, grep_limits, grep_refuses)
