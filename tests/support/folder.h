/* folder.h - a folder of the test's own, and scripts in it; a test fails when that fails. */
#pragma once

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define FOLDER_PATH_BYTES 64

static inline void folder_make(char ret_path[FOLDER_PATH_BYTES])
{
    (void)snprintf(ret_path, FOLDER_PATH_BYTES, "/tmp/sandbox-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(ret_path));
}

static inline void folder_remove(const char *path)
{
    char command[FOLDER_PATH_BYTES + 16];

    (void)snprintf(command, sizeof(command), "rm -rf %s", path);
    ck_assert_int_eq(system(command), 0);
}

/* An executable NAME that does what TEXT says. */
static inline void folder_script(const char *folder, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "#!/bin/sh\n%s\n", text);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, 0755), 0);
}
