/* test_parts.c - the small parts: rates, console, disks, states, budget. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "accel.h"
#include "console.h"
#include "pool_budget.h"
#include "scratch.h"
#include "template_state.h"
#include "unit.h"
#include "vm_state.h"

START_TEST(test_khz)
{
    ck_assert_uint_eq(accel_khz(104800000, 50000000), 2096000);
    ck_assert_uint_eq(accel_khz(3, 2000), 1500);
    ck_assert_uint_eq(accel_khz(1, 0), 0);
    /* A machine that is up for years must not overflow. */
    ck_assert_uint_eq(accel_khz(UINT64_MAX / 8, UINT64_MAX / 8), 1000000);
}
END_TEST

START_TEST(test_accel_wanted)
{
    struct accel accel;
    struct sandbox_error err = { 0 };

    ck_assert_int_eq(accel_choose("tcg", false, &accel, &err), 0);
    ck_assert_int_eq(accel.kind, ACCEL_TCG);
    ck_assert_str_eq(accel_name(&accel), "tcg");
    ck_assert_str_eq(accel_isolation(&accel), "emulated");
#if defined(__x86_64__)
    ck_assert_uint_gt(accel.tsc_khz, 100000);
    ck_assert_uint_lt(accel.tsc_khz, 10000000);
#endif
    ck_assert_int_eq(accel_choose("auto", false, &accel, &err), 0);
    ck_assert(accel.unproven == (accel.kind == ACCEL_KVM));
    if (accel.kind == ACCEL_TCG) { /* what auto does without, kvm says */
        ck_assert_int_eq(accel_choose("kvm", false, &accel, &err), -1);
        ck_assert_ptr_nonnull(strstr(err.message, ACCEL_KVM_PATH));
    }
    sandbox_error_done(&err);
}
END_TEST

static void append(struct console *console, const char *text)
{
    console_append(console, text, strlen(text));
}

START_TEST(test_console_lines)
{
    struct console console = { 0 };
    char text[CONSOLE_BYTES_MAX + 1], line[16];

    console_tail(&console, text);
    ck_assert_str_eq(text, "");
    for (int i = 0; i < 40; i++) {
        (void)snprintf(line, sizeof(line), "line %d\r\n", i);
        append(&console, line);
    }
    console_tail(&console, text);
    ck_assert_int_eq(strncmp(text, "line 8\nline 9\n", 14), 0); /* 32 of them */
    ck_assert_ptr_nonnull(strstr(text, "\nline 39"));
    console_last_line(&console, text, sizeof(text));
    ck_assert_str_eq(text, "line 39");
}
END_TEST

START_TEST(test_console_is_bounded)
{
    static char flood[3 * CONSOLE_BYTES_MAX];
    struct console console = { 0 };
    char text[CONSOLE_BYTES_MAX + 1];

    memset(flood, 'x', sizeof(flood));
    console_append(&console, flood, sizeof(flood));
    append(&console, "end");
    console_tail(&console, text);
    ck_assert_uint_eq(strlen(text), CONSOLE_BYTES_MAX);
    ck_assert_str_eq(text + CONSOLE_BYTES_MAX - 4, "xend");
}
END_TEST

START_TEST(test_console_is_text)
{
    static char invalid[CONSOLE_BYTES_MAX];
    struct console console = { 0 };
    char text[CONSOLE_BYTES_MAX + 1];

    append(&console, "a\x1b[1mb\xff\x01");
    console_tail(&console, text);
    ck_assert_str_eq(text, "a[1mb\xef\xbf\xbd");
    memset(invalid, 0xff, sizeof(invalid)); /* each becomes three bytes */
    console_append(&console, invalid, sizeof(invalid));
    console_tail(&console, text);
    ck_assert_uint_le(strlen(text), CONSOLE_BYTES_MAX);
    ck_assert_int_eq(strncmp(text, "\xef\xbf\xbd", 3), 0); /* cut at a character */
}
END_TEST

START_TEST(test_scratch_copy)
{
    char folder[] = "/tmp/test-scratch-XXXXXX", path[64], data[5];
    struct stat status;
    int source, copy;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/source", folder);
    source = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(ftruncate(source, 1 << 30), 0);
    ck_assert_int_eq(pwrite(source, "first", 5, 4096), 5);
    ck_assert_int_eq(pwrite(source, "last!", 5, (1 << 30) - 5), 5);
    ck_assert_int_eq(scratch_copy(source, folder, &copy), 0);
    ck_assert_int_eq(fstat(copy, &status), 0);
    ck_assert_int_eq(status.st_size, 1 << 30);
    ck_assert_int_eq(status.st_nlink, 0);                /* it has no name */
    ck_assert_int_lt(status.st_blocks, (1 << 20) / 512); /* holes are holes */
    ck_assert_int_eq(pread(copy, data, 5, 4096), 5);
    ck_assert_int_eq(memcmp(data, "first", 5), 0);
    ck_assert_int_eq(pread(copy, data, 5, (1 << 30) - 5), 5);
    ck_assert_int_eq(memcmp(data, "last!", 5), 0);
    ck_assert_int_eq(pwrite(copy, "other", 5, 4096), 5); /* and it is a copy */
    ck_assert_int_eq(pread(source, data, 5, 4096), 5);
    ck_assert_int_eq(memcmp(data, "first", 5), 0);
    (void)close(copy);
    (void)close(source);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing was left in it */
    ck_assert_int_lt(scratch_copy(0, folder, &copy), 0);
}
END_TEST

START_TEST(test_vm_moves)
{
    ck_assert(vm_move_allowed(VM_BOOTING, VM_UP));
    ck_assert(vm_move_allowed(VM_RESTORING, VM_UP));
    ck_assert(!vm_move_allowed(VM_BOOTING, VM_RESTORING));
    ck_assert(!vm_move_allowed(VM_UP, VM_BOOTING));
    ck_assert(!vm_move_allowed(VM_STOPPING, VM_UP));
    ck_assert(vm_move_allowed(VM_LAUNCHING, VM_RESTORING));
    ck_assert(vm_move_allowed(VM_LAUNCHING, VM_STOPPING));
    ck_assert(!vm_move_allowed(VM_LAUNCHING, VM_GONE)); /* it has no process that could end */
    for (int from = VM_LAUNCHING + 1; from < VM_GONE; from++)
        ck_assert(vm_move_allowed((enum vm_state)from, VM_GONE));
    for (int to = 0; to < VM_STATE_MAX; to++)
        ck_assert(!vm_move_allowed(VM_GONE, (enum vm_state)to));
}
END_TEST

START_TEST(test_template_moves)
{
    for (int from = 0; from < TEMPLATE_READY; from++)
        ck_assert(template_move_allowed((enum template_state)from, TEMPLATE_FAILED));
    ck_assert(template_move_allowed(TEMPLATE_ENDING, TEMPLATE_READY));
    ck_assert(!template_move_allowed(TEMPLATE_SAVING, TEMPLATE_READY));
    ck_assert(!template_move_allowed(TEMPLATE_BOOTING, TEMPLATE_SAVING)); /* it rests first */
    ck_assert(!template_move_allowed(TEMPLATE_REHEARSING, TEMPLATE_SAVING));
    ck_assert(template_move_allowed(TEMPLATE_RESTING, TEMPLATE_SAVING));
    for (int to = 0; to < TEMPLATE_STATE_MAX; to++) {
        ck_assert(!template_move_allowed(TEMPLATE_READY, (enum template_state)to));
        ck_assert(!template_move_allowed(TEMPLATE_FAILED, (enum template_state)to));
    }
}
END_TEST

START_TEST(test_budget)
{
    ck_assert(pool_budget_has_room(1u << 30, 1u << 30, 0)); /* no limit */
    ck_assert(pool_budget_has_room(0, 0, 1));               /* not known yet */
    ck_assert(pool_budget_has_room(512, 512, 1));
    ck_assert(!pool_budget_has_room(512, 513, 1));
    ck_assert(!pool_budget_has_room(1024, 0, 1));
    ck_assert(!pool_budget_has_room(UINT64_MAX, UINT64_MAX, 1));
    ck_assert_uint_eq(pool_budget_rest_ms(300, 0), 0);
    ck_assert_uint_eq(pool_budget_rest_ms(300, 100), 0);
    ck_assert_uint_eq(pool_budget_rest_ms(300, 25), 900);
    ck_assert_uint_gt(pool_budget_memory_kb(getpid()), 0);
    ck_assert_uint_eq(pool_budget_memory_kb(-1), 0);
    ck_assert_uint_eq(pool_budget_cpu_ms(-1), 0);
}
END_TEST

UNIT_MAIN("qemu_parts", test_khz, test_accel_wanted, test_console_lines,
          test_console_is_bounded, test_console_is_text, test_scratch_copy, test_vm_moves,
          test_template_moves, test_budget)
