/* test_image_repair.c - images that are no longer what was installed. */
#include "scene.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const image_files[] = { "x", "image.json", "SHA256SUMS", "checked" };

START_TEST(test_damaged_image_is_missing)
{
    struct waiter waiter = { 0 };
    char path[512];
    FILE *file;

    scene_open("");
    scene_installer("echo $source >$dir/x; echo done");
    waiter_take(&waiter, "one");
    (void)snprintf(path, sizeof(path), "%s/x", waiter.image->directory);
    waiter_give_back(&waiter);
    file = fopen(path, "a");
    ck_assert_ptr_nonnull(file);
    fputs("longer", file);
    fclose(file);
    waiter_take(&waiter, "one");
    ck_assert_uint_eq(scene_starts(), 2);
    waiter_give_back(&waiter);
    scene_close();
}
END_TEST

/* Whoever put them there. */
START_TEST(test_fifos_are_not_waited_for)
{
    struct waiter waiter = { 0 };
    char path[512];

    scene_open("");
    scene_installer("echo $source >$dir/x; echo done");
    for (size_t i = 0; i < ARRAY_SIZE(image_files); i++) {
        waiter_take(&waiter, "one");
        (void)snprintf(path, sizeof(path), "%s/%s", waiter.image->directory, image_files[i]);
        waiter_give_back(&waiter);
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_int_eq(mkfifo(path, 0600), 0);
    }
    waiter_take(&waiter, "one");
    waiter_give_back(&waiter);
    scene_close();
}
END_TEST

/* Writes one byte of FILE in the image's folder over. */
static void flip_byte(const char *directory, const char *name)
{
    char path[512];
    unsigned char byte;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, &byte, 1, 2), 1);
    byte ^= 1;
    ck_assert_int_eq(pwrite(fd, &byte, 1, 2), 1);
    close(fd);
}

/* One flipped byte, in each of an image's files. */
START_TEST(test_flipped_byte_heals)
{
    struct waiter waiter = { 0 };
    char directory[512];

    scene_open("");
    scene_installer("echo $source >$dir/x; echo done");
    waiter_take(&waiter, "one");
    ck_assert(waiter.installed);
    (void)snprintf(directory, sizeof(directory), "%s", waiter.image->directory);
    waiter_give_back(&waiter);
    flip_byte(directory, image_files[_i]);
    waiter_take(&waiter, "one");
    ck_assert_int_eq(waiter.installed, strcmp(image_files[_i], "checked") != 0);
    waiter_give_back(&waiter);
    waiter_get(&waiter, "one"); /* and it is known to be right from then on */
    ck_assert(!image_cache_installs(scene.cache, &scene.settings->adapter,
                                    strrchr(directory, '/') + 1));
    waiter_await(&waiter);
    ck_assert(!waiter.installed);
    waiter_give_back(&waiter);
    scene_close();
}
END_TEST

START_TEST(test_damaged_and_auto_install_off)
{
    struct waiter waiter = { 0 };
    char directory[512];

    scene_open("");
    scene_installer("echo $source >$dir/x; echo done");
    waiter_take(&waiter, "one");
    (void)snprintf(directory, sizeof(directory), "%s", waiter.image->directory);
    waiter_give_back(&waiter);
    scene_settings(SCENE_CATALOG "    auto_install: false\n");
    flip_byte(directory, "x");
    scene_expect_failure("one", S101, "x: FAILED");
    scene_expect_failure("one", S101, directory);
    flip_byte(directory, "x"); /* as it was */
    waiter_take(&waiter, "one");
    waiter_give_back(&waiter);
    ck_assert_uint_eq(scene_starts(), 1);
    scene_close();
}
END_TEST

/* Whoever may install joins one who only looks: it is installed. */
START_TEST(test_permission_of_a_later_one)
{
    struct waiter waiter = { 0 }, looker = { 0 }, later = { 0 };

    scene_open("");
    scene_installer("echo $source >$dir/x; echo done");
    waiter_take(&waiter, "one");
    flip_byte(waiter.image->directory, "x");
    waiter_give_back(&waiter);
    waiter_get_with(&looker, "one", 0);
    waiter_get_with(&later, "one", IMAGE_MAY_INSTALL);
    waiter_await(&looker);
    waiter_await(&later);
    ck_assert_ptr_nonnull(looker.image);
    ck_assert_ptr_eq(looker.image, later.image);
    waiter_give_back(&looker);
    waiter_give_back(&later);
    scene_close();
}
END_TEST

UNIT_MAIN_ROWS("image_repair", UNIT_TEST(test_damaged_image_is_missing),
               UNIT_TEST(test_fifos_are_not_waited_for),
               UNIT_ROWS(test_flipped_byte_heals, image_files),
               UNIT_TEST(test_damaged_and_auto_install_off),
               UNIT_TEST(test_permission_of_a_later_one))
