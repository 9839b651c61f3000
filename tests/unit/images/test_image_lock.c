/* test_image_lock.c - installs of other processes, and what killed ones leave. */
#include "image_lock.h"
#include "scene.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

START_TEST(test_another_process_installs)
{
    struct waiter waiter = { 0 };
    char digest[65], path[256];
    int fd;

    scene_open("");
    scene_installer("echo x >$dir/x; echo done");
    waiter_take(&waiter, "one");
    (void)snprintf(digest, sizeof(digest), "%s", waiter.image->digest);
    waiter_give_back(&waiter);
    /* The other one holds the lock, and its image is not there yet. */
    (void)snprintf(path, sizeof(path), "%s/cache/images/%s.lock", scene.directory, digest);
    fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    (void)snprintf(path, sizeof(path), "cd %s/cache/images && mv %.64s aside", scene.directory,
                   digest);
    ck_assert_int_eq(system(path), 0);
    waiter_get(&waiter, "one");
    turn_for(scene.loop, 300);
    ck_assert_uint_eq(waiter.done, 0);
    (void)snprintf(path, sizeof(path), "cd %s/cache/images && mv aside %.64s", scene.directory,
                   digest);
    ck_assert_int_eq(system(path), 0);
    close(fd);
    waiter_await(&waiter);
    ck_assert_msg(waiter.image != NULL, "%s", waiter.message);
    ck_assert_uint_eq(scene_starts(), 1);
    waiter_give_back(&waiter);
    scene_close();
}
END_TEST

static unsigned lock_files(void)
{
    char command[256];
    unsigned found = 0;
    FILE *pipe;

    (void)snprintf(command, sizeof(command), "find %s/cache/images -name '*.lock' | wc -l",
                   scene.directory);
    pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    ck_assert_int_eq(fscanf(pipe, "%u", &found), 1);
    (void)pclose(pipe);
    return found;
}

/* They stay as long as there is something to lock. */
START_TEST(test_lock_files_go)
{
    struct waiter waiter = { 0 };
    char command[512];

    scene_prepare("");
    (void)snprintf(command, sizeof(command),
                   "mkdir -p %s/cache/images && cd %s/cache/images && touch aa.lock bb.lock && "
                   "mkdir bb",
                   scene.directory, scene.directory);
    ck_assert_int_eq(system(command), 0);
    scene_start_cache();
    ck_assert_uint_eq(lock_files(), 1); /* that of bb */
    scene_installer("exit 1");
    scene_expect_failure("one", S102, "exited with 1");
    TURN_UNTIL(scene.loop, scene_is_empty());
    TURN_UNTIL(scene.loop, lock_files() == 1);
    scene_installer("echo x >$dir/x; echo done");
    waiter_take(&waiter, "one");
    ck_assert_uint_eq(lock_files(), 2);
    waiter_give_back(&waiter);
    scene_close();
}
END_TEST

/* Whoever waited for a file that its holder then took away locks the one that has the name. */
START_TEST(test_lock_of_a_file_that_went)
{
    char path[128];
    int fd, taken;

    scene_prepare("");
    (void)snprintf(path, sizeof(path), "%s/x.lock", scene.directory);
    fd = image_lock_take(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(image_lock_take(path), -EWOULDBLOCK);
    image_lock_give(path, "/nonexistent", fd);
    ck_assert_int_eq(access(path, F_OK), -1);
    taken = image_lock_take(path);
    ck_assert_int_ge(taken, 0);
    ck_assert_int_eq(access(path, F_OK), 0);
    image_lock_give(path, scene.directory, taken); /* its image is there: it stays */
    ck_assert_int_eq(access(path, F_OK), 0);
    scene_start_cache();
    scene_close();
}
END_TEST

START_TEST(test_leftovers_are_removed)
{
    char command[512];
    unsigned images, temporary;

    scene_prepare("");
    (void)snprintf(command, sizeof(command),
                   "mkdir -p %s/cache/images && cd %s/cache/images && mkdir aa.tmp-1 bb.tmp-2 "
                   "&& echo x >aa.tmp-1/x",
                   scene.directory, scene.directory);
    ck_assert_int_eq(system(command), 0);
    (void)snprintf(command, sizeof(command), "%s/cache/images/bb.lock", scene.directory);
    int fd = open(command, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    scene_start_cache();
    TURN_UNTIL(scene.loop, (scene_count(&images, &temporary), temporary == 1));
    close(fd); /* bb's installer is alive until here */
    scene_close();
}
END_TEST

UNIT_MAIN("image_lock", test_another_process_installs, test_lock_files_go,
          test_lock_of_a_file_that_went, test_leftovers_are_removed)
