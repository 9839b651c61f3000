/* fs_scene.h - a folder for each test of the file operations that do not stream (contract 8),
 * which are called as functions, and short ways to look into it. */
#pragma once

#include <check.h>
#include <string.h>
#include <sys/stat.h>

#include "codec.h"
#include "fs.h"

extern char fs_root[];           /* the folder */
extern char text[8192];          /* scratch */
extern struct sandbox_error err; /* of the latest call */

/* A path below the folder; good for the next few calls. */
char *at(const char *relative);
void shell(const char *script); /* in the folder; it must succeed */
void content(const char *relative, const char *expected);
bool there(const char *relative); /* a link to nothing too */
mode_t mode_of(const char *relative);

/* The code of a call that is to fail. */
#define CODE(call)                                                                             \
    ({                                                                                         \
        err = (struct sandbox_error){ 0 };                                                     \
        ck_assert_int_eq(call, -1);                                                            \
        err.code;                                                                              \
    })
#define OK(call)                                                                               \
    do {                                                                                       \
        err = (struct sandbox_error){ 0 };                                                     \
        ck_assert_msg((call) == 0, "%s", err.message);                                         \
    } while (0)

/* Of proc Linux says that a new name does not exist, which tells the caller nothing. */
#define TAKES_NOTHING_NEW(call)                                                                \
    do {                                                                                       \
        ck_assert_int_eq(CODE(call), S216);                                                    \
        ck_assert_ptr_nonnull(strstr(err.message, "Operation not supported"));                 \
    } while (0)

/* FS_MAIN("ls", ls_in_byte_order, ls_refuses) */
int fs_run(const char *name, const TTest *const *tests, size_t count);
#define FS_MAIN(name, ...)                                                                     \
    int main(void)                                                                             \
    {                                                                                          \
        const TTest *const tests[] = { __VA_ARGS__ };                                          \
        return fs_run("agent-fs-" name, tests, sizeof(tests) / sizeof(tests[0]));              \
    }
