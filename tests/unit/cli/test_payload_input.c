/* test_payload_input.c - payloads from files, pipes and stdin: whole, within the limit and the
 * time, and never for a text that is JSON. */
#include "payload_input.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "unit.h"

static struct client client;
static char folder[] = "/tmp/test-payload-XXXXXX";

static void open_client(void)
{
    static const struct endpoint endpoint = { .host = "localhost", .port = 1 };

    ck_assert_int_eq(client_init(&client, &endpoint, NULL), 0); /* connects with a call */
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void close_client(void)
{
    client_done(&client);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void write_file(const char *name, const char *text, size_t size)
{
    FILE *file = fopen(name, "we");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    if (size > 0)
        ck_assert_int_eq(truncate(name, (off_t)size), 0);
}

static void check(const char *json, uint64_t wait_ms, int code, const char *content)
{
    struct buf to = { 0 };

    ck_assert_int_eq(payload_input_read(&client, json, wait_ms, &to), code);
    if (content)
        ck_assert_str_eq(buf_text(&to), content);
    buf_done(&to);
}

START_TEST(test_what_is_one)
{
    static const char *const inputs[] = { "-", "@-", "@", "@file", "@{}", "@ " };
    static const char *const texts[] = { "",   "{}",  "-1",     "--",     "- ",
                                         " -", " @a", "\"@a\"", "[\"-\"]" };

    for (size_t i = 0; i < ARRAY_SIZE(inputs); i++)
        ck_assert_msg(payload_input_is(inputs[i]), "%s", inputs[i]);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        ck_assert_msg(!payload_input_is(texts[i]), "%s", texts[i]);
}
END_TEST

START_TEST(test_files)
{
    struct buf to = { 0 };

    open_client();
    write_file("a", "{\"a\":1}", 0);
    check("@a", 100, EXIT_CODE_DONE, "{\"a\":1}");
    write_file("a", "", 0);
    check("@a", 100, EXIT_CODE_DONE, "");
    write_file("a", "", PAYLOAD_INPUT_MAX_BYTES);
    ck_assert_int_eq(payload_input_read(&client, "@a", 100, &to), EXIT_CODE_DONE);
    ck_assert_uint_eq(to.size, PAYLOAD_INPUT_MAX_BYTES);
    buf_done(&to);
    write_file("a", "", PAYLOAD_INPUT_MAX_BYTES + 1u);
    check("@a", 100, EXIT_CODE_FAILED, NULL);
    ck_assert_int_eq(unlink("a"), 0);
    check("@a", 100, EXIT_CODE_FAILED, NULL);
    check("@", 100, EXIT_CODE_FAILED, NULL);
    check("@/", 100, EXIT_CODE_FAILED, NULL);
    close_client();
}
END_TEST

/* Waits for its end, and no longer than it may; a named pipe that nobody writes to as well. */
START_TEST(test_pipes)
{
    int fds[2];
    char word[32];

    open_client();
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
    ck_assert_int_eq(write(fds[1], "[1]", 3), 3);
    check("-", 50, EXIT_CODE_FAILED, NULL);
    ck_assert_int_eq(write(fds[1], "[2]", 3), 3);
    ck_assert_int_eq(close(fds[1]), 0);
    check("@-", 10000, EXIT_CODE_DONE, "[2]");
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(write(fds[1], "{}", 2), 2);
    ck_assert_int_eq(close(fds[1]), 0);
    (void)snprintf(word, sizeof(word), "@/dev/fd/%d", fds[0]);
    check(word, 10000, EXIT_CODE_DONE, "{}");
    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
    check("@pipe", 50, EXIT_CODE_FAILED, NULL);
    ck_assert_int_eq(unlink("pipe"), 0);
    close_client();
}
END_TEST

UNIT_MAIN("cli-payload_input", test_what_is_one, test_files, test_pipes)
