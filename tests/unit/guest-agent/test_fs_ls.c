/* test_fs_ls.c - ls and stat (contract 8.2, 8.3). */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "fs_scene.h"

static int ls(const char *path, struct fs_ls_reply *reply)
{
    const struct fs_ls_request request = { .path = (char *)(uintptr_t)path };

    *reply = (struct fs_ls_reply){ 0 };
    return fs_ls(NULL, &request, reply, &err);
}

START_TEST(ls_in_byte_order)
{
    struct fs_ls_reply reply;

    shell("touch b a B _ .x é; printf x > $(printf 'n\\377'); ln -s a l; mkdir d");
    OK(ls(at(""), &reply));
    ck_assert_uint_eq(reply.entries.count, 9);
    ck_assert_str_eq(reply.entries.items[0].name, ".x");
    ck_assert_str_eq(reply.entries.items[1].name, "B");
    ck_assert_str_eq(reply.entries.items[2].name, "_");
    ck_assert_str_eq(reply.entries.items[3].name, "a");
    ck_assert(!reply.entries.items[3].has_name_b64);
    ck_assert(reply.entries.items[5].is_dir);
    ck_assert(reply.entries.items[6].is_symlink);
    ck_assert_str_eq(reply.entries.items[7].name, "n\xef\xbf\xbd");
    ck_assert_str_eq(reply.entries.items[7].name_b64, "bv8=");
    ck_assert_uint_eq(reply.entries.items[7].size, 1);
    ck_assert_str_eq(reply.entries.items[7].mode, "0644");
    codec_free(&type_fs_ls_reply, &reply);
    OK(ls(at("d///"), &reply));
    ck_assert_uint_eq(reply.entries.count, 0);
    codec_free(&type_fs_ls_reply, &reply);
}
END_TEST

START_TEST(ls_refuses)
{
    struct fs_ls_reply reply;

    shell("touch f; mkdir d; ln -s d l; mkfifo p");
    ck_assert_int_eq(CODE(ls(at("none"), &reply)), S211);
    ck_assert_int_eq(CODE(ls(at("f"), &reply)), S212);
    ck_assert_int_eq(CODE(ls(at("l"), &reply)), S212);
    ck_assert_int_eq(CODE(ls(at("l/"), &reply)), S212);
    ck_assert_int_eq(CODE(ls(at("p"), &reply)), S212);
    ck_assert_int_eq(CODE(ls(at("f/x"), &reply)), S212);
    ck_assert_int_eq(CODE(ls("relative", &reply)), S210);
    ck_assert_int_eq(CODE(ls("", &reply)), S210);
    memset(text, 'a', 4096);
    text[0] = '/';
    text[4096] = 0;
    ck_assert_int_eq(CODE(ls(text, &reply)), S210);
}
END_TEST

START_TEST(stat_of_the_object_itself)
{
    struct fs_stat_request request = { .path = at("l/") };
    struct fs_entry reply = { 0 };

    shell("printf abc > f; chmod 4750 f; touch -d @1000 f; ln -s none l");
    OK(fs_stat(NULL, &request, &reply, &err));
    ck_assert_str_eq(reply.name, "l");
    ck_assert(reply.is_symlink);
    codec_free(&type_fs_entry, &reply);
    request.path = at("f");
    OK(fs_stat(NULL, &request, &reply, &err));
    ck_assert_uint_eq(reply.size, 3);
    ck_assert_int_eq(reply.mtime, 1000);
    ck_assert_str_eq(reply.mode, "4750");
    codec_free(&type_fs_entry, &reply);
    request.path = (char *)(uintptr_t) "///";
    OK(fs_stat(NULL, &request, &reply, &err));
    ck_assert_str_eq(reply.name, "/");
    ck_assert(reply.is_dir);
    codec_free(&type_fs_entry, &reply);
    request.path = at("none");
    ck_assert_int_eq(CODE(fs_stat(NULL, &request, &reply, &err)), S211);
}
END_TEST

FS_MAIN("ls", ls_in_byte_order, ls_refuses, stat_of_the_object_itself)
