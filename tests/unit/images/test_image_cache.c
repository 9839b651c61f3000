/* test_image_cache.c - images on disk, shared installs, failures (contract 7.3), with shell
 * scripts as installers. */
#include "scene.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

START_TEST(test_install_and_take)
{
    struct waiter first = { 0 }, again = { 0 };

    scene_open("");
    scene_installer("echo 'progress pulling 10 100'\n"
                    "echo 'noise'\n"
                    "echo 'progress unpacking 7'\n"
                    "echo 'progress pulling 20 100'\n"
                    "echo \"$kind $source $arch\" >$dir/root.img\n"
                    "echo '{\"env\":[\"A=1\",\"B=\"],\"workdir\":\"/w\"}' >$dir/config.json\n"
                    "mkdir $dir/tree\n"
                    "echo done");
    waiter_take(&first, "one");
    ck_assert_uint_eq(first.progress[IMAGE_PULLING], 1);
    ck_assert_uint_eq(first.progress[IMAGE_UNPACKING], 1);
    ck_assert_uint_eq(first.bytes, 7);
    ck_assert_uint_eq(first.total_bytes, 0);
    ck_assert_str_eq(first.image->name, "one");
    ck_assert_str_eq(first.image->workdir, "/w");
    ck_assert_uint_eq(first.image->env.count, 2);
    ck_assert_str_eq(first.image->env.items[0], "A=1");
    ck_assert_str_eq(first.image->env.items[1], "B=");
    ck_assert_str_eq(strrchr(first.image->directory, '/') + 1, first.image->digest);
    ck_assert_str_eq(scene.installed_digest, first.image->digest);
    waiter_take(&again, "one");
    ck_assert_ptr_eq(again.image, first.image);
    ck_assert_uint_eq(again.progress[IMAGE_PULLING] + again.progress[IMAGE_UNPACKING], 0);
    ck_assert_uint_eq(scene_starts(), 1);
    waiter_give_back(&first);
    waiter_give_back(&again);
    waiter_take(&again, "one"); /* nobody holds it: read from the disk */
    ck_assert_str_eq(again.image->workdir, "/w");
    ck_assert_uint_eq(scene_starts(), 1);
    ck_assert_uint_eq(scene.installed, 1);
    waiter_give_back(&again);
    scene_close();
}
END_TEST

START_TEST(test_arguments)
{
    struct waiter waiter = { 0 };
    char path[128], line[1024] = "";
    FILE *file;

    scene_open("");
    scene_installer("[ \"$insecure\" = 1 ] || exit 1\n"
                    "[ -z \"$(ls -A $dir)\" ] || exit 1\n"
                    "echo x >$dir/x; echo done");
    waiter_take(&waiter, "two");
    ck_assert_str_eq(waiter.image->workdir, "/");
    waiter_give_back(&waiter);
    (void)snprintf(path, sizeof(path), "%s/starts", scene.directory);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
    fclose(file);
    ck_assert_ptr_nonnull(
        strstr(line, "--source docker://localhost:5000/two:latest --kind registry --dir /tmp"));
    ck_assert_ptr_nonnull(strstr(line, " --max-mb 20480"));
    scene_close();
}
END_TEST

START_TEST(test_one_install_for_all)
{
    struct waiter waiters[3] = { 0 }, late = { 0 };

    scene_open("");
    scene_installer("while [ ! -e ${0%/*}/go ]; do sleep 0.05; done\n"
                    "echo 'progress pulling 1'\n"
                    "echo x >$dir/x; echo done");
    for (unsigned i = 0; i < 3; i++)
        waiter_get(&waiters[i], "one");
    TURN_UNTIL(scene.loop, scene_starts() == 1);
    waiter_get(&late, "one");
    image_wait_free(take_ptr(waiters[1].wait));
    scene_touch("go");
    waiter_await(&waiters[0]);
    waiter_await(&waiters[2]);
    waiter_await(&late);
    ck_assert_ptr_nonnull(waiters[0].image);
    ck_assert_ptr_eq(waiters[0].image, late.image);
    ck_assert_ptr_eq(waiters[2].image, late.image);
    ck_assert_uint_eq(waiters[1].done, 0);
    ck_assert_uint_eq(late.progress[IMAGE_PULLING], 1);
    ck_assert_uint_eq(scene_starts(), 1);
    waiter_give_back(&waiters[0]);
    waiter_give_back(&waiters[2]);
    waiter_give_back(&late);
    scene_close();
}
END_TEST

START_TEST(test_nobody_waits_any_more)
{
    struct waiter waiter = { 0 };

    scene_open("");
    /* The child in another session holds `alive` open as long as it lives. */
    scene_installer("echo x >$dir/half\n"
                    "setsid sh -c \"trap '' TERM; exec flock ${0%/*}/alive sleep 600\" &\n"
                    "while ! [ -e ${0%/*}/alive ]; do sleep 0.05; done\n"
                    "touch ${0%/*}/begun; wait");
    waiter_get(&waiter, "one");
    TURN_UNTIL(scene.loop, scene_exists("begun"));
    image_wait_free(take_ptr(waiter.wait));
    TURN_UNTIL(scene.loop, scene_is_empty());
    ck_assert_uint_eq(waiter.done, 0);
    char path[128];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/alive", scene.directory);
    fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    TURN_UNTIL(scene.loop, flock(fd, LOCK_EX | LOCK_NB) == 0);
    close(fd);
    scene_close();
}
END_TEST

static const struct {
    const char *script;
    const char *part;
} failures[] = {
    { "echo 'progress unpacking 1'; echo one >&2; echo 'cannot reach it' >&2; exit 3",
      "step unpacking: the installer exited with 3: one\ncannot reach it" },
    { "echo x >$dir/x; exit 0", "without `done`" },
    { "echo done; echo more; echo x >$dir/x", "without `done`" },
    { "echo x >$dir/x; echo done; exit 1", "exited with 1" },
    { "kill -SEGV $$", "signal 11" },
    { "echo done", "no files" },
    { "echo x >$dir/x; echo '{\"env\":\"A\"}' >$dir/config.json; echo done", "config.json" },
    { "echo x >$dir/x; echo '{\"workdir\":\"rel\"}' >$dir/config.json; echo done",
      "config.json" },
    { "mkfifo $dir/fifo; echo done", "fifo is neither" },
    { "echo x >$dir/x; mkfifo $dir/config.json; echo done", "config.json: neither" },
    { "for i in $(seq 70); do echo x >$dir/$i; done; echo done", "more than 64" },
    { "yes | head -c 200000; yes | head -c 200000 >&2; exit 9", "exited with 9" },
};

START_TEST(test_failure_is_told_and_leaves_nothing)
{
    scene_open("");
    scene_installer(failures[_i].script);
    scene_expect_failure("one", S102, failures[_i].part);
    TURN_UNTIL(scene.loop, scene_is_empty());
    scene_expect_failure("one", S102, "rootfs:/srv/one"); /* tried anew */
    ck_assert_uint_eq(scene_starts(), 2);
    scene_close();
}
END_TEST

START_TEST(test_no_installer)
{
    scene_open("");
    scene_expect_failure("one", S102, "cannot be started");
    TURN_UNTIL(scene.loop, scene_is_empty());
    scene_close();
}
END_TEST

START_TEST(test_bad_source)
{
    scene_open("");
    scene_installer("echo x >$dir/x; echo done");
    scene_expect_failure("bad", S102, "step source");
    ck_assert_uint_eq(scene_starts(), 0);
    scene_close();
}
END_TEST

START_TEST(test_auto_install_off)
{
    struct waiter waiter = { 0 };

    scene_open("");
    scene_installer("echo x >$dir/x; echo done");
    waiter_take(&waiter, "one");
    waiter_give_back(&waiter);
    scene_settings(SCENE_CATALOG "    auto_install: false\n");
    waiter_take(&waiter, "one");
    waiter_give_back(&waiter);
    scene_expect_failure("two", S101, "/cache/images/");
    ck_assert_uint_eq(scene_starts(), 1);
    scene_close();
}
END_TEST

START_TEST(test_changed_source_is_missing)
{
    struct waiter old = { 0 }, new = { 0 };

    scene_open("");
    scene_installer("echo $source >$dir/x; echo done");
    waiter_take(&old, "one");
    scene_settings("    image_allowlist: [one]\n"
                   "    custom_images: {one: 'rootfs:/srv/other'}\n");
    waiter_take(&new, "one");
    ck_assert_str_ne(old.image->digest, new.image->digest);
    ck_assert_uint_eq(scene_starts(), 2);
    waiter_give_back(&old);
    waiter_give_back(&new);
    scene_close();
}
END_TEST

START_TEST(test_anew)
{
    struct waiter old = { 0 }, same = { 0 }, new = { 0 };
    unsigned images, temporary;

    scene_open("");
    scene_installer("cat ${0%/*}/starts >$dir/x; echo done");
    waiter_take(&old, "one");
    waiter_get_with(&new, "one", IMAGE_MAY_INSTALL | IMAGE_ANEW);
    waiter_await(&new);
    ck_assert(new.installed);
    ck_assert_str_eq(new.image->directory, old.image->directory);
    ck_assert_str_ne(new.image->content, old.image->content);
    waiter_take(&same, "one");
    ck_assert_ptr_eq(same.image, new.image);
    waiter_give_back(&old);
    waiter_give_back(&same);
    waiter_give_back(&new);
    TURN_UNTIL(scene.loop, (scene_count(&images, &temporary), temporary == 0));
    ck_assert_uint_eq(images, 1);
    scene_close();
}
END_TEST

START_TEST(test_end_while_installing)
{
    struct waiter waiter = { 0 };

    scene_open("");
    scene_installer("touch ${0%/*}/begun; sleep 600");
    waiter_get(&waiter, "one");
    TURN_UNTIL(scene.loop, scene_exists("begun"));
    image_wait_free(take_ptr(waiter.wait));
    scene_close(); /* under the leak checker */
}
END_TEST

UNIT_MAIN_ROWS("image_cache", UNIT_TEST(test_install_and_take), UNIT_TEST(test_arguments),
               UNIT_TEST(test_one_install_for_all), UNIT_TEST(test_nobody_waits_any_more),
               UNIT_ROWS(test_failure_is_told_and_leaves_nothing, failures),
               UNIT_TEST(test_no_installer), UNIT_TEST(test_bad_source),
               UNIT_TEST(test_auto_install_off), UNIT_TEST(test_changed_source_is_missing),
               UNIT_TEST(test_anew), UNIT_TEST(test_end_while_installing))
