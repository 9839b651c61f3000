/* test_runtime_dir.c - the directory of router.sock: whose, with what mode, and for whom. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime_dir.h"
#include "unit.h"

struct scene {
    char folder[64];
    char path[80];
    char inner[128]; /* last use of scene_inner() */
    char error[RUNTIME_DIR_ERROR_MAX];
    struct runtime_dir *dir;
};

static void scene_open(struct scene *scene)
{
    *scene = (struct scene){ .folder = "/tmp/router-test-XXXXXX" };
    ck_assert_ptr_nonnull(mkdtemp(scene->folder));
    (void)snprintf(scene->path, sizeof(scene->path), "%s/run", scene->folder);
}

static const char *scene_inner(struct scene *scene, const char *name)
{
    (void)snprintf(scene->inner, sizeof(scene->inner), "%s/%s", scene->path, name);
    return scene->inner;
}

static void scene_close(struct scene *scene)
{
    runtime_dir_close(scene->dir);
    (void)unlink(scene_inner(scene, "router.lock")); /* not every case has them */
    (void)unlink(scene_inner(scene, "router.sock"));
    (void)rmdir(scene->path);
    (void)unlink(scene->path);
    ck_assert_int_eq(rmdir(scene->folder), 0);
}

static int open_dir(struct scene *scene)
{
    return runtime_dir_open(scene->path, &scene->dir, scene->error);
}

START_TEST(test_made_and_locked)
{
    struct runtime_dir *second = NULL;
    char error[RUNTIME_DIR_ERROR_MAX];
    char pid[32];
    struct scene scene;
    struct stat info;

    scene_open(&scene);
    ck_assert_int_eq(open_dir(&scene), 0);
    ck_assert_int_eq(stat(scene.path, &info), 0);
    ck_assert_uint_eq(info.st_mode & 07777, 0700);
    ck_assert_int_eq(stat(scene_inner(&scene, "router.lock"), &info), 0);
    ck_assert_uint_eq(info.st_mode & 07777, 0600);
    ck_assert_int_eq(strncmp(runtime_dir_url(scene.dir), "ipc:///tmp/router-test-", 23), 0);

    ck_assert_int_eq(runtime_dir_open(scene.path, &second, error), -EBUSY);
    (void)snprintf(pid, sizeof(pid), "(pid %ld)", (long)getpid());
    ck_assert_ptr_nonnull(strstr(error, pid));
    ck_assert_ptr_nonnull(strstr(error, scene.path));
    runtime_dir_close(scene.dir); /* free again */
    ck_assert_int_eq(open_dir(&scene), 0);
    scene_close(&scene);
}
END_TEST

START_TEST(test_mode)
{
    static const mode_t modes[] = { 0755, 0701, 0770, 01700, 0500 };
    struct scene scene;

    scene_open(&scene);
    ck_assert_int_eq(mkdir(scene.path, 0700), 0);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        ck_assert_int_eq(chmod(scene.path, modes[i]), 0);
        ck_assert_int_eq(open_dir(&scene), -EPERM);
        ck_assert_ptr_nonnull(strstr(scene.error, "wants 0700"));
    }
    ck_assert_int_eq(chmod(scene.path, 0700), 0);
    ck_assert_int_eq(open_dir(&scene), 0);
    scene_close(&scene);
}
END_TEST

START_TEST(test_no_directory_of_ours)
{
    struct scene scene;
    FILE *file;

    scene_open(&scene); /* a link, even to a good one */
    ck_assert_int_eq(symlink(scene.folder, scene.path), 0);
    ck_assert_int_lt(open_dir(&scene), 0);
    scene_close(&scene);

    scene_open(&scene); /* a file */
    file = fopen(scene.path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_lt(open_dir(&scene), 0);
    scene_close(&scene);

    scene_open(&scene); /* no parent */
    (void)snprintf(scene.path, sizeof(scene.path), "%s/not/there", scene.folder);
    ck_assert_int_eq(open_dir(&scene), -ENOENT);
    scene_close(&scene);

    if (geteuid() != 0)
        return; /* the rest wants another owner */
    scene_open(&scene);
    ck_assert_int_eq(mkdir(scene.path, 0700), 0);
    ck_assert_int_eq(chown(scene.path, 12345, 12345), 0);
    ck_assert_int_eq(open_dir(&scene), -EPERM);
    ck_assert_ptr_nonnull(strstr(scene.error, "belongs to uid 12345"));
    scene_close(&scene);
}
END_TEST

START_TEST(test_path_too_long)
{
    char path[300];
    struct runtime_dir *dir = NULL;
    char error[RUNTIME_DIR_ERROR_MAX];

    memset(path, 'a', sizeof(path) - 1);
    memcpy(path, "/tmp/", 5);
    path[sizeof(path) - 1] = '\0';
    ck_assert_int_eq(runtime_dir_open(path, &dir, error), -ENAMETOOLONG);
}
END_TEST

START_TEST(test_what_lies_there)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct scene scene;
    int fd;
    FILE *file;

    scene_open(&scene);
    ck_assert_int_eq(mkdir(scene.path, 0700), 0);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/router.sock", scene.path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(close(fd), 0); /* a router that was killed leaves this */
    ck_assert_int_eq(open_dir(&scene), 0);
    ck_assert_int_eq(access(address.sun_path, F_OK), -1);
    runtime_dir_close(scene.dir);
    scene.dir = NULL;

    file = fopen(address.sun_path, "w"); /* nothing of ours: kept */
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(open_dir(&scene), -EEXIST);
    ck_assert_int_eq(access(address.sun_path, F_OK), 0);
    scene_close(&scene);
}
END_TEST

UNIT_MAIN("router.runtime_dir", test_made_and_locked, test_mode, test_no_directory_of_ours,
          test_path_too_long, test_what_lies_there)
