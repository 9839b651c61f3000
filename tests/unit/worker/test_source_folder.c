/* test_source_folder.c - where a source may lie, and that what was checked is what is used. */
#include "source_folder.h"
#include "unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[] = "/tmp/source-folder-XXXXXX";
static char root[64];
static char *root_items[] = { root };
static const struct text_list roots = { 1, root_items };

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    return remove(path);
}

static void remove_base(void)
{
    (void)nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* else left in /tmp */
}

static const char *in(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];

    (void)snprintf(path, sizeof(paths[0]), "%s/%s", base, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(in(name), "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void make_folder(const char *name)
{
    ck_assert_int_eq(mkdir(in(name), 0755), 0);
}

/* root/good is a worker, beside/ is one outside. */
static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(base));
    (void)atexit(remove_base);
    (void)snprintf(root, sizeof(root), "%s/root", base);
    make_folder("root");
    make_folder("root/good");
    make_folder("root2");
    make_folder("root2/w");
    put("root/good/iii.worker.yaml", "name: good\n");
    put("root2/w/iii.worker.yaml", "name: outside\n");
}

static int try(const char *path, struct sandbox_error *err)
{
    struct source_folder source;
    int result = source_folder_open(path, &roots, &source, err);

    if (result == 0) {
        ck_assert_str_eq(source.manifest.name, "good");
        source_folder_done(&source);
    } else {
        ck_assert_int_eq(err->code, S501);
    }
    return result;
}

START_TEST(test_inside)
{
    struct sandbox_error err = { 0 };

    set_up();
    ck_assert_int_eq(symlink("good", in("root/link")), 0);
    ck_assert_int_eq(symlink(in("root/good"), in("into")), 0);
    ck_assert_int_eq(try(in("root/good"), &err), 0);
    ck_assert_int_eq(try(in("root/good/"), &err), 0);
    ck_assert_int_eq(try(in("root/../root/good/../good"), &err), 0);
    ck_assert_int_eq(try(in("root/link"), &err), 0);
    ck_assert_int_eq(try(in("into"), &err), 0);
}
END_TEST

START_TEST(test_outside)
{
    static const char *const names[] = { "root2/w", "root/out", "root/good/../../root2/w",
                                         "none", "root/good/iii.worker.yaml" };

    set_up();
    ck_assert_int_eq(symlink("../root2/w", in("root/out")), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct sandbox_error err = { 0 };

        ck_assert_msg(try(in(names[i]), &err) == -1, "%s", names[i]);
        ck_assert_msg(strstr(err.message, base) != NULL, "%s", err.message);
    }
}
END_TEST

START_TEST(test_no_roots)
{
    static const struct text_list none = { 0 };
    struct source_folder source;
    struct sandbox_error err = { 0 };

    set_up();
    ck_assert_int_eq(source_folder_open(in("root/good"), &none, &source, &err), -1);
    ck_assert_int_eq(err.code, S501);
}
END_TEST

/* The manifest may be a link inside the folder; nothing else than a regular file in it. */
START_TEST(test_manifest_file)
{
    struct sandbox_error err = { 0 };

    set_up();
    make_folder("root/w");
    ck_assert_int_eq(try(in("root/w"), &err), -1);
    ck_assert_int_eq(symlink(in("root/good/iii.worker.yaml"), in("root/w/iii.worker.yaml")), 0);
    ck_assert_int_eq(try(in("root/w"), &err), -1);
    ck_assert_int_eq(unlink(in("root/w/iii.worker.yaml")), 0);
    ck_assert_int_eq(mkfifo(in("root/w/iii.worker.yaml"), 0644), 0);
    ck_assert_int_eq(try(in("root/w"), &err), -1);
    ck_assert_int_eq(unlink(in("root/w/iii.worker.yaml")), 0);
    put("root/w/real", "name: good\n");
    ck_assert_int_eq(symlink("real", in("root/w/iii.worker.yaml")), 0);
    ck_assert_int_eq(try(in("root/w"), &err), 0);
}
END_TEST

START_TEST(test_manifest_too_large)
{
    struct sandbox_error err = { 0 };

    set_up();
    ck_assert_int_eq(truncate(in("root/good/iii.worker.yaml"), MANIFEST_MAX_BYTES + 1), 0);
    ck_assert_int_eq(try(in("root/good"), &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "1048576"));
}
END_TEST

static atomic_bool swapping = true;

/* root/w is the worker, then a link to the one outside, and so on. */
static void *swap(void *ctx)
{
    while (atomic_load(&swapping)) {
        (void)renameat2(AT_FDCWD, in("root/w"), AT_FDCWD, in("root/x"), RENAME_EXCHANGE);
    }
    return NULL;
}

START_TEST(test_swapped)
{
    unsigned inside = 0, refused = 0;
    pthread_t thread;

    set_up();
    make_folder("root/w");
    put("root/w/iii.worker.yaml", "name: good\n");
    ck_assert_int_eq(symlink(in("root2/w"), in("root/x")), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, swap, NULL), 0);
    for (unsigned i = 0; i < 1000000 && (inside < 100 || refused < 100); i++) {
        struct sandbox_error err = { 0 };
        char path[128];

        (void)snprintf(path, sizeof(path), "%s/root/w", base);
        if (try(path, &err) == 0) /* asserts that it is the one inside */
            inside++;
        else
            refused++;
    }
    atomic_store(&swapping, false);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_ge(inside, 1);
    ck_assert_uint_ge(refused, 1);
}
END_TEST

UNIT_MAIN("source_folder", test_inside, test_outside, test_no_roots, test_manifest_file,
          test_manifest_too_large, test_swapped)
