/* test_source.c - pipes and files, read at the taker's pace and to their end. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "source.h"
#include "turn.h"
#include "unit.h"

#define LARGE_BYTES (300u * 1024)

static struct loop *loop;
static struct source source;
static size_t taken_bytes, chunks, ends;
static int end_error;
static size_t pause_every; /* chunks; 0: never */
static bool stop_on_data;

static bool on_data(void *ctx, const uint8_t *data, size_t size)
{
    ck_assert_ptr_eq(ctx, &source);
    for (size_t i = 0; i < size; i++) {
        if (data[i] != (uint8_t)((taken_bytes + i) / 1000))
            ck_abort_msg("byte %zu is %u", taken_bytes + i, data[i]);
    }
    taken_bytes += size;
    chunks++;
    if (stop_on_data)
        source_done(&source);
    return pause_every == 0 || chunks % pause_every != 0;
}

static void on_ended(void *ctx, int error)
{
    ck_assert_ptr_eq(ctx, &source);
    ends++;
    end_error = error;
}

static void set_up(int fd)
{
    ck_assert_int_eq(loop_new(&loop), 0);
    taken_bytes = chunks = ends = pause_every = 0;
    stop_on_data = false;
    end_error = 1;
    source = (struct source){
        .loop = loop, .fd = fd, .data = on_data, .ended = on_ended, .ctx = &source
    };
}

static void tear_down(void)
{
    source_done(&source);
    loop_free(loop);
    (void)close(source.fd); /* a pipe's end that nobody needs */
}

static void put(int fd, size_t from, size_t size)
{
    static uint8_t bytes[LARGE_BYTES];

    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)((from + i) / 1000);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
}

static int large_file(void)
{
    char path[] = "/tmp/iii-source-XXXXXX";
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    (void)unlink(path);
    put(fd, 0, LARGE_BYTES);
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

START_TEST(a_pipe_gives_what_comes)
{
    int fds[2];

    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    set_up(fds[0]);
    ck_assert_int_eq(source_begin(&source), 0);
    turn_for(loop, 20);
    ck_assert_uint_eq(chunks, 0);
    for (size_t at = 0; at < 3000; at += 1000) {
        put(fds[1], at, 1000);
        TURN_UNTIL(loop, taken_bytes == at + 1000);
    }
    source_resume(&source); /* is not paused */
    (void)close(fds[1]);
    TURN_UNTIL(loop, ends == 1);
    ck_assert_int_eq(end_error, 0);
    source_resume(&source);
    ck_assert_uint_eq(ends, 1);
    tear_down();
}
END_TEST

START_TEST(a_full_taker_is_waited_for)
{
    int fds[2];

    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    set_up(fds[0]);
    pause_every = 1;
    ck_assert_int_eq(source_begin(&source), 0);
    put(fds[1], 0, 1000);
    TURN_UNTIL(loop, chunks == 1);
    put(fds[1], 1000, 1000);
    (void)close(fds[1]);
    turn_for(loop, 20);
    ck_assert(chunks == 1 && ends == 0);
    source_resume(&source);
    TURN_UNTIL(loop, chunks == 2);
    source_resume(&source);
    TURN_UNTIL(loop, ends == 1);
    ck_assert_uint_eq(taken_bytes, 2000);
    tear_down();
}
END_TEST

START_TEST(a_file_is_read_while_it_is_wanted)
{
    set_up(large_file());
    ck_assert_int_eq(source_begin(&source), 0);
    ck_assert(taken_bytes == LARGE_BYTES && ends == 1 && end_error == 0);
    tear_down();

    set_up(large_file());
    pause_every = 2;
    ck_assert_int_eq(source_begin(&source), 0);
    ck_assert_uint_eq(chunks, 2);
    turn_for(loop, 20);
    ck_assert_uint_eq(chunks, 2);
    while (ends == 0)
        source_resume(&source);
    ck_assert_uint_eq(taken_bytes, LARGE_BYTES);
    tear_down();
}
END_TEST

START_TEST(a_taker_that_leaves_hears_no_more)
{
    int fds[2];

    set_up(large_file());
    stop_on_data = true;
    ck_assert_int_eq(source_begin(&source), 0);
    source_resume(&source);
    ck_assert(chunks == 1 && ends == 0);
    tear_down();

    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    set_up(fds[0]);
    stop_on_data = true;
    ck_assert_int_eq(source_begin(&source), 0);
    put(fds[1], 0, 10);
    TURN_UNTIL(loop, chunks == 1);
    put(fds[1], 10, 10);
    (void)close(fds[1]);
    turn_for(loop, 20);
    ck_assert(chunks == 1 && ends == 0);
    tear_down();
}
END_TEST

START_TEST(what_cannot_be_read)
{
    int fd = open("/tmp", O_RDONLY | O_CLOEXEC);

    set_up(fd);
    ck_assert_int_eq(source_begin(&source), 0);
    ck_assert(ends == 1 && end_error == -EISDIR);
    tear_down();

    set_up(-1);
    ck_assert_int_eq(source_begin(&source), -EBADF);
    ck_assert_uint_eq(ends, 0);
    tear_down();
}
END_TEST

UNIT_MAIN("cli-source", a_pipe_gives_what_comes, a_full_taker_is_waited_for,
          a_file_is_read_while_it_is_wanted, a_taker_that_leaves_hears_no_more,
          what_cannot_be_read)
