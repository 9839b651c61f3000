/* test_image_stall.c - installs that do not get on. */
#include "scene.h"

START_TEST(test_timeout)
{
    scene_open("    pull_timeout_ms: 1000\n");
    scene_installer("echo 'progress pulling 5'; sleep 600");
    scene_expect_failure("one", S102, "step pulling: not finished after pull_timeout_ms 1000");
    TURN_UNTIL(scene.loop, scene_is_empty());
    scene_close();
}
END_TEST

/* A pull that trickles, or says nothing more, ends; how long the rest takes is not judged. */
START_TEST(test_stall)
{
    scene_open("    pull_stall_timeout_ms: 1000\n");
    scene_installer("echo 'progress pulling 5'; sleep 600");
    scene_expect_failure(
        "two", S102,
        "step pulling: less than 1024 bytes came within pull_stall_timeout_ms 1000");
    scene_installer("bytes=0; while sleep 0.2; do "
                    "echo progress pulling $((bytes += 10)); done");
    scene_expect_failure("two", S102, "less than 1024 bytes came");
    TURN_UNTIL(scene.loop, scene_is_empty());
    scene_close();
}
END_TEST

/* IMAGE is installed by this SCRIPT, with a second as the time without progress. */
static void check_no_stall(const char *image, const char *script)
{
    struct waiter waiter = { 0 };

    scene_open("    pull_stall_timeout_ms: 1000\n");
    scene_installer(script);
    waiter_take(&waiter, image);
    waiter_give_back(&waiter);
    scene_close();
}

START_TEST(test_no_stall)
{
    check_no_stall(
        "two", "for bytes in 0 4000 8000; do echo progress pulling $bytes; sleep 0.5; done; "
               "echo progress unpacking 0; sleep 1.2; echo x >$dir/x; echo done");
}
END_TEST

START_TEST(test_no_stall_on_the_own_disk)
{
    check_no_stall("one", "echo progress pulling 0; sleep 1.2; echo x >$dir/x; echo done");
}
END_TEST

UNIT_MAIN("image_stall", test_timeout, test_stall, test_no_stall, test_no_stall_on_the_own_disk)
