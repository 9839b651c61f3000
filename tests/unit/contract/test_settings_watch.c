/* test_settings_watch.c - which changes of a file are told, and when. */
#include "settings_watch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "turn.h"
#include "unit.h"

#define LONGER_THAN_IT_SETTLES_MS 250

static char directory[] = "/tmp/settings-watch-XXXXXX";
static char file[64], other[64];
static struct loop *loop;
static struct settings_watch *watch;
static unsigned changes;

static void on_changed(void *ctx)
{
    changes++;
}

static void put(const char *path, const char *text)
{
    FILE *stream = fopen(path, "w");

    ck_assert_ptr_nonnull(stream);
    ck_assert(fputs(text, stream) >= 0);
    ck_assert_int_eq(fclose(stream), 0);
}

static void watch_open(void)
{
    changes = 0;
    ck_assert_ptr_nonnull(mkdtemp(directory));
    (void)snprintf(file, sizeof(file), "%s/file", directory);
    (void)snprintf(other, sizeof(other), "%s/other", directory);
    put(file, "a: 1\n");
    ck_assert_int_eq(loop_new(&loop), 0);
    ck_assert_int_eq(settings_watch_new(loop, file, on_changed, NULL, &watch), 0);
}

static void watch_close(void)
{
    settings_watch_free(watch);
    loop_free(loop);
    (void)unlink(other); /* gone in some */
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_int_eq(rmdir(directory), 0);
}

static void expect_change(void)
{
    TURN_UNTIL(loop, changes > 0);
    turn_for(loop, LONGER_THAN_IT_SETTLES_MS);
    ck_assert_uint_eq(changes, 1);
    changes = 0;
}

static void expect_silence(void)
{
    turn_for(loop, LONGER_THAN_IT_SETTLES_MS);
    ck_assert_uint_eq(changes, 0);
}

START_TEST(test_each_way_to_save)
{
    watch_open();
    put(file, "a: 2\n");
    expect_change();
    put(other, "a: 3\n");
    expect_silence(); /* not ours */
    ck_assert_int_eq(rename(other, file), 0);
    expect_change();
    ck_assert_int_eq(unlink(file), 0);
    expect_change();
    put(other, "a: 4\n");
    ck_assert_int_eq(symlink(other, file), 0);
    expect_change();
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_int_eq(link(other, file), 0);
    expect_change();
    ck_assert_int_eq(raise(SIGHUP), 0);
    expect_change();
    watch_close();
}
END_TEST

/* What is half written is not read: not when the file was made anew, and not when something was
 * noticed just before. */
START_TEST(test_a_writer_is_waited_for)
{
    int fd;

    watch_open();
    ck_assert_int_eq(unlink(file), 0);
    expect_change();
    fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    expect_silence();
    ck_assert_int_eq(write(fd, "a: ", 3), 3);
    expect_silence();
    ck_assert_int_eq(write(fd, "5\n", 2), 2);
    ck_assert_int_eq(close(fd), 0);
    expect_change();

    put(file, "a: 6\n");
    fd = open(file, O_WRONLY | O_TRUNC);
    for (unsigned i = 0; i < 12; i++) {
        turn_for(loop, 20);
        ck_assert_int_eq(write(fd, "#\n", 2), 2);
    }
    ck_assert_uint_eq(changes, 0);
    ck_assert_int_eq(close(fd), 0);
    expect_change();
    watch_close();
}
END_TEST

UNIT_MAIN("contract.settings_watch", test_each_way_to_save, test_a_writer_is_waited_for)
