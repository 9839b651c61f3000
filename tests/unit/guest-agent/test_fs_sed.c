/* test_fs_sed.c - sed (contract 8.9). */
#include <stdio.h>

#include "fs_scene.h"

static struct fs_sed_request sed_request(const char *path, const char *pattern,
                                         const char *replacement)
{
    return (struct fs_sed_request){
        .path = (char *)(uintptr_t)path,
        .pattern = { .data = (char *)(uintptr_t)pattern, .size = strlen(pattern) },
        .replacement = { .data = (char *)(uintptr_t)replacement, .size = strlen(replacement) },
        .recursive = true,
        .regex = true,
    };
}

/* Results as `path count [code]` lines, and the total. */
static const char *sed_text(const struct fs_sed_request *request)
{
    static struct buf out;
    struct fs_sed_reply reply = { 0 };

    buf_done(&out);
    OK(fs_sed(NULL, request, &reply, &err));
    for (size_t i = 0; i < reply.results.count; i++) {
        const struct fs_sed_result *result = &reply.results.items[i];
        const char *path = result->path;

        ck_assert_int_eq(result->success, !result->has_error);
        if (strncmp(path, fs_root, strlen(fs_root)) == 0)
            path += strlen(fs_root) + 1;
        (void)buf_printf(&out, "%s %d%.5s\n", path, (int)result->replacements,
                         result->error ? result->error : "");
    }
    (void)buf_printf(&out, "%d", (int)reply.total_replacements);
    codec_free(&type_fs_sed_reply, &reply);
    return buf_text(&out);
}

START_TEST(sed_replaces)
{
    struct fs_sed_request request = sed_request(at(""), "(o)(x)?", "<$1>");
    struct stat status;

    shell("mkdir d; printf 'foo\\nbar\\no' > d/f; echo none > a; ln -s d/f l; chmod 4751 d/f");
    ck_assert_str_eq(sed_text(&request), "a 1\nd/f 3\n4");
    content("d/f", "f<o><o>\nbar\n<o>");
    ck_assert_uint_eq(mode_of("d/f"), 04751);
    request = sed_request(at("l"), "o", "0");
    request.first_only = true;
    ck_assert_str_eq(sed_text(&request), "l 2\n2");
    content("d/f", "f<0><o>\nbar\n<0>");
    ck_assert_int_eq(lstat(at("l"), &status), 0);
    ck_assert(S_ISLNK(status.st_mode));
    request = sed_request(at("a"), "$1", "$$");
    request.regex = false;
    ck_assert_str_eq(sed_text(&request), "a 0\n0");
    request = sed_request(at("a"), "N", "$$");
    request.regex = false;
    request.ignore_case = true;
    ck_assert_str_eq(sed_text(&request), "a 2\n2");
    content("a", "$$<o>$$e\n");
    shell("[ $(ls -A . d | grep -c iii-tmp) = 0 ]");
}
END_TEST

START_TEST(sed_of_empty_matches)
{
    struct fs_sed_request request = sed_request(at("f"), "x*", "-");

    shell("printf 'axb\\303\\251' > f");
    ck_assert_str_eq(sed_text(&request), "f 5\n5");
    content("f", "-a--b-é-");
    shell("printf 'one\\ntwo\\n' > f");
    request = sed_request(at("f"), "\\n", ",");
    ck_assert_str_eq(sed_text(&request), "f 2\n2");
    content("f", "one,two,");
    shell("printf 'one\\ntwo\\n' > f");
    request = sed_request(at("f"), "^", "> ");
    ck_assert_str_eq(sed_text(&request), "f 2\n2");
    content("f", "> one\n> two\n");
}
END_TEST

START_TEST(sed_of_listed_files)
{
    struct fs_sed_request request = sed_request(NULL, "a", "b");
    char *files[] = { at("f"), (char *)(uintptr_t) "relative", at("none"), at("p") };
    char *more[] = { at("torn"), at("d"), at("f"), at("l") };

    shell("echo aa > f; mkfifo p; printf 'a\\377' > torn; mkdir d; echo a > t; ln -s t l");
    request.files = (struct text_list){ 4, files };
    ck_assert_str_eq(sed_text(&request), "f 2\nrelative 0S210:\nnone 0S211:\np 0S212:\n2");
    request.files = (struct text_list){ 4, more };
    ck_assert_str_eq(sed_text(&request), "torn 0S216:\nd 0S212:\nf 0\nl 1\n1");
    content("t", "b\n");
}
END_TEST

START_TEST(sed_keeps_the_file_on_failure)
{
    struct fs_sed_request request = sed_request(at("f"), "(x+x+)+y|a", "b");
    struct fs_sed_reply reply = { 0 };

    shell("{ echo a; head -c 60 /dev/zero | tr '\\0' x; } > f; cp f g");
    ck_assert_str_eq(sed_text(&request), "f 0S217:\n0");
    shell("cmp f g; [ $(ls -A | wc -l) = 2 ]");
    request = sed_request("/proc/self/comm", ".", "b");
    ck_assert_int_eq(fs_sed(NULL, &request, &reply, &err), 0);
    ck_assert_str_eq(reply.results.items[0].error,
                     "S216: /proc/self/comm: Operation not supported");
    codec_free(&type_fs_sed_reply, &reply);
}
END_TEST

START_TEST(sed_refuses)
{
    struct fs_sed_request request = sed_request(NULL, "a", "b");
    struct fs_sed_reply reply = { 0 };

    shell("mkdir d; mkfifo p; ln -s none x");
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S210);
    request = sed_request(at("d"), "a", "b");
    request.files = (struct text_list){ 1, (char *[]){ at("f") } };
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S210);
    request = sed_request(at("x"), "(", "b");
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S211);
    request = sed_request(at("d"), "(", "b");
    request.recursive = false;
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S217);
    request = sed_request(at("d"), "a", "$1");
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S217);
    request = sed_request(at("d"), "", "b");
    request.regex = false;
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S210);
    request = sed_request(at("d"), "a", "b");
    request.recursive = false;
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S210);
    request = sed_request(at("p"), "a", "b");
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S212);
}
END_TEST

START_TEST(sed_of_too_many_files)
{
    struct fs_sed_request request = sed_request(at("d"), "a", "b");
    struct fs_sed_reply reply = { 0 };

    shell("mkdir d; cd d; seq 20001 | xargs touch; echo a > 1");
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S210);
    content("d/1", "a\n");
    shell("rm d/7");
    OK(fs_sed(NULL, &request, &reply, &err));
    ck_assert_uint_eq(reply.results.count, 20000);
    ck_assert_uint_eq(reply.total_replacements, 1);
    codec_free(&type_fs_sed_reply, &reply);
}
END_TEST

FS_MAIN("sed", sed_replaces, sed_of_empty_matches, sed_of_listed_files,
        sed_keeps_the_file_on_failure, sed_refuses, sed_of_too_many_files)
