/* Bytes onto a pipe that nobody reads, onto files, and past the reader's end. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "sink.h"
#include "unit.h"

#define LARGE_BYTES (1024u * 1024u)

static struct loop *loop;
static struct sink sink;
static int drained, drained_error;
static int ends[2];

static void on_drained(void *ctx, int error)
{
    ck_assert_ptr_eq(ctx, &sink);
    drained++;
    drained_error = error;
}

static void set_up(void)
{
    ck_assert_int_eq(loop_new(&loop), 0);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    (void)signal(SIGPIPE, SIG_IGN);
    drained = 0;
    sink = (struct sink){ .loop = loop, .fd = ends[1], .drained = on_drained, .ctx = &sink };
}

static void tear_down(void)
{
    sink_done(&sink);
    loop_free(loop);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

START_TEST(a_little_is_written_at_once)
{
    char text[8];

    set_up();
    ck_assert_int_eq(sink_write(&sink, "abc", 3), 0);
    ck_assert(!sink_is_full(&sink));
    ck_assert_int_eq(read(ends[0], text, sizeof(text)), 3);
    ck_assert_int_eq(drained, 0);
    tear_down();
}
END_TEST

/* It does not block: the test would hang. */
START_TEST(much_waits_for_its_reader)
{
    _cleanup_free_ uint8_t *sent = malloc(LARGE_BYTES), *got = malloc(LARGE_BYTES);
    size_t size = 0;

    set_up();
    ck_assert(sent && got);
    for (size_t i = 0; i < LARGE_BYTES; i++)
        sent[i] = (uint8_t)(i * 7 + i / 4096);
    ck_assert_int_eq(sink_write(&sink, sent, LARGE_BYTES / 2), 0);
    ck_assert(sink_is_full(&sink));
    ck_assert_int_eq(sink_write(&sink, sent + LARGE_BYTES / 2, LARGE_BYTES / 2), 0);
    ck_assert_int_eq(loop_turn(loop, 20), 0);
    ck_assert_int_eq(drained, 0);
    while (size < LARGE_BYTES) {
        ssize_t taken = read(ends[0], got + size, LARGE_BYTES - size);

        ck_assert_int_gt(taken, 0);
        size += (size_t)taken;
        if (drained == 0)
            ck_assert_int_eq(loop_turn(loop, 1000), 0);
    }
    ck_assert_int_eq(memcmp(sent, got, LARGE_BYTES), 0);
    ck_assert_int_eq(drained, 1);
    ck_assert_int_eq(drained_error, 0);
    ck_assert(!sink_is_full(&sink));
    /* and again */
    ck_assert_int_eq(sink_write(&sink, sent, LARGE_BYTES), 0);
    ck_assert(sink_is_full(&sink));
    tear_down();
}
END_TEST

START_TEST(a_reader_that_leaves)
{
    static const uint8_t bytes[LARGE_BYTES];

    set_up();
    ck_assert_int_eq(sink_write(&sink, bytes, sizeof(bytes)), 0);
    (void)close(ends[0]);
    ck_assert_int_eq(loop_turn(loop, 1000), 0);
    ck_assert_int_eq(drained, 1);
    ck_assert_int_eq(drained_error, -EPIPE);
    ck_assert_int_eq(sink_write(&sink, "x", 1), -EPIPE);
    ends[0] = -1;
    tear_down();
}
END_TEST

START_TEST(a_file_takes_all)
{
    static const uint8_t bytes[LARGE_BYTES];
    char path[] = "/tmp/iii-sink-XXXXXX";
    int fd = mkstemp(path);

    set_up();
    ck_assert_int_ge(fd, 0);
    sink.fd = fd;
    ck_assert_int_eq(sink_write(&sink, bytes, sizeof(bytes)), 0);
    ck_assert(!sink_is_full(&sink));
    ck_assert_int_eq(lseek(fd, 0, SEEK_END), LARGE_BYTES);
    (void)close(fd);
    (void)unlink(path);
    tear_down();
}
END_TEST

START_TEST(a_closed_descriptor)
{
    set_up();
    sink.fd = 1000000;
    ck_assert_int_eq(sink_write(&sink, "x", 1), -EBADF);
    tear_down();
}
END_TEST

UNIT_MAIN("cli-sink", a_little_is_written_at_once, much_waits_for_its_reader,
          a_reader_that_leaves, a_file_takes_all, a_closed_descriptor)
