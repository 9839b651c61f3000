/* test_state_folder.c - lock, holder and mark of a state. */
#include "state_folder.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[] = "/tmp/state-folder-XXXXXX";

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    return remove(path);
}

static void remove_root(void)
{
    (void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* else left in /tmp */
}

static struct state_folder open_folder(void)
{
    struct state_folder folder;

    if (access(root, F_OK) < 0) {
        ck_assert_ptr_nonnull(mkdtemp(root));
        (void)atexit(remove_root);
    }
    ck_assert_int_eq(state_folder_open(root, "key", &folder), 0);
    ck_assert_int_eq(state_folder_make(&folder), 0);
    return folder;
}

START_TEST(test_lock)
{
    struct state_folder a = open_folder(), b = open_folder();

    ck_assert_int_eq(state_folder_lock(&a), 0);
    ck_assert_int_eq(state_folder_lock(&b), -EWOULDBLOCK);
    state_folder_done(&a);
    ck_assert_int_eq(state_folder_lock(&b), 0);
    state_folder_done(&b);
}
END_TEST

/* Whoever inherited the descriptor holds the lock to its own end. */
START_TEST(test_inherited)
{
    struct state_folder a = open_folder(), b = open_folder();
    int go[2];
    pid_t pid;
    char byte;

    ck_assert_int_eq(pipe(go), 0);
    ck_assert_int_eq(state_folder_lock(&a), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)close(go[1]);
        _exit(read(go[0], &byte, 1) == 0 ? 0 : 1);
    }
    state_folder_done(&a);
    ck_assert_int_eq(state_folder_lock(&b), -EWOULDBLOCK);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(state_folder_lock(&b), 0);
    state_folder_done(&b);
    (void)close(go[0]);
    (void)close(go[1]);
}
END_TEST

START_TEST(test_holder)
{
    const struct state_holder holder = { .vm_id = "vm", .instance = "an instance\nwith more " };
    struct state_folder folder = open_folder();
    struct state_holder read;

    state_folder_holder(&folder, &read);
    ck_assert_str_eq(read.vm_id, "");
    ck_assert_int_eq(state_folder_set_holder(&folder, &holder), 0);
    state_folder_holder(&folder, &read);
    ck_assert_str_eq(read.vm_id, "vm");
    ck_assert_str_eq(read.instance, holder.instance);
    ck_assert_int_eq(state_folder_set_holder(&folder, NULL), 0);
    ck_assert_int_eq(state_folder_set_holder(&folder, NULL), 0);
    state_folder_holder(&folder, &read);
    ck_assert_str_eq(read.vm_id, "");
    state_folder_done(&folder);
}
END_TEST

static void put_file(const struct state_folder *folder, const char *name, const char *text,
                     size_t size)
{
    char path[256];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/state", folder->path);
    (void)mkdir(path, 0700); /* it may be there */
    (void)snprintf(path, sizeof(path), "%s/state/%s", folder->path, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, size), (ssize_t)size);
    ck_assert_int_eq(close(fd), 0);
}

static void put_mark(const struct state_folder *folder, const char *text, size_t size)
{
    put_file(folder, "data", "", 0);
    put_file(folder, "mark", text, size);
}

START_TEST(test_mark)
{
    struct state_mark mark = { .image_chosen = true, .image = "an image" }, read;
    struct state_folder folder = open_folder();
    char *text, path[256];

    memset(mark.digest, 'a', sizeof(mark.digest) - 1);
    text = state_mark_text(&mark);
    ck_assert_ptr_nonnull(text);
    state_folder_mark(&folder, &read);
    ck_assert_str_eq(read.digest, "");
    put_mark(&folder, text, strlen(text));
    state_folder_mark(&folder, &read);
    ck_assert_str_eq(read.digest, mark.digest);
    ck_assert(read.image_chosen);
    ck_assert_str_eq(read.image, "an image");
    (void)snprintf(path, sizeof(path), "%s/state/data", folder.path);
    ck_assert_int_eq(unlink(path), 0);
    state_folder_mark(&folder, &read); /* of nothing */
    ck_assert_str_eq(read.digest, "");
    free(text);
    state_folder_done(&folder);
}
END_TEST

/* A torn or strange one is none. */
START_TEST(test_bad_mark)
{
    static const char *const texts[] = { "", "abc", "abc 1 image", "abc 1", " ", "\n1 x" };
    struct state_folder folder = open_folder();
    struct state_mark read;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        put_mark(&folder, texts[i], strlen(texts[i]));
        state_folder_mark(&folder, &read);
        ck_assert_str_eq(read.digest, "");
        ck_assert_str_eq(read.image, "");
    }
    put_mark(&folder, "a\0b", 3);
    state_folder_mark(&folder, &read);
    ck_assert_str_eq(read.digest, "");
    state_folder_done(&folder);
}
END_TEST

UNIT_MAIN("state_folder", test_lock, test_inherited, test_holder, test_mark, test_bad_mark)
