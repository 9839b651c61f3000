/* test_template_cache.c - templates on disk: found again, and never trusted when anything about
 * them is not as it was written. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "scene.h"
#include "template_prune.h"
#include "template_state.h"
#include "turn.h"
#include "unit.h"
#include "vm_state.h"

/* The files. */

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define OTHER_KEY "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define MEMORY_BYTES (8u * 1024 * 1024)
#define DISK_BYTES (1u * 1024 * 1024)

static const atomic_bool go_on;

static void make_sample(struct template_parts *parts)
{
    *parts = TEMPLATE_NO_PARTS;
    parts->memory_fd = template_memory_new("memory", MEMORY_BYTES);
    parts->state_fd = template_memory_new("state", 0);
    parts->disk_fd = template_memory_new("disk", DISK_BYTES);
    ck_assert_int_eq(buf_append_text(&parts->hello, "hello"), 0);
    ck_assert_int_eq(pwrite(parts->state_fd, "state", 5, 0), 5);
    ck_assert_int_eq(pwrite(parts->disk_fd, "disk", 4, 4096), 4);
    ck_assert_int_eq(pwrite(parts->memory_fd, "low", 3, 100), 3);
    ck_assert_int_eq(pwrite(parts->memory_fd, "high", 4, MEMORY_BYTES - 4), 4);
}

static int read_back(const char *folder, const char *key, struct template_parts *parts,
                     const char **reason)
{
    return template_file_read(folder, key, MEMORY_BYTES, DISK_BYTES, folder, &go_on, parts,
                              reason);
}

static void check_bytes(int fd, off_t offset, const char *wanted)
{
    char bytes[16] = "";

    ck_assert_int_eq(pread(fd, bytes, strlen(wanted), offset), (ssize_t)strlen(wanted));
    ck_assert_str_eq(bytes, wanted);
}

static void make_file(char folder[64])
{
    struct template_parts parts;

    strcpy(folder, "/tmp/test-template-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    make_sample(&parts);
    ck_assert_int_eq(template_file_write(folder, KEY, &parts, &go_on), 0);
    template_parts_done(&parts);
}

static void remove_folder(const char *folder)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(test_written_and_read)
{
    char folder[64], path[256];
    struct template_parts parts;
    const char *reason;
    struct stat status;

    make_file(folder);
    ck_assert_msg(read_back(folder, KEY, &parts, &reason) == 0, "%s", reason);
    ck_assert_uint_eq(parts.hello.size, 5);
    check_bytes(parts.state_fd, 0, "state");
    check_bytes(parts.disk_fd, 4096, "disk");
    check_bytes(parts.memory_fd, 100, "low");
    check_bytes(parts.memory_fd, MEMORY_BYTES - 4, "high");
    ck_assert_int_eq(fstat(parts.memory_fd, &status), 0);
    ck_assert_int_eq(status.st_size, MEMORY_BYTES);
    ck_assert_int_lt(status.st_blocks, 64); /* holes are holes again */
    template_parts_done(&parts);
    (void)snprintf(path, sizeof(path), "%s/" KEY, folder);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_lt(status.st_size, 65536);
    remove_folder(folder);
}
END_TEST

/* Each byte of it matters. */
START_TEST(test_flipped_bytes)
{
    char folder[64], path[256];
    struct template_parts parts;
    const char *reason;
    struct stat status;
    int fd;

    make_file(folder);
    (void)snprintf(path, sizeof(path), "%s/" KEY, folder);
    fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(fstat(fd, &status), 0);
    for (off_t at = 0; at < status.st_size; at += at < 512 ? 1 : 61) {
        uint8_t byte, flipped;

        ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
        flipped = byte ^ 0x40;
        ck_assert_int_eq(pwrite(fd, &flipped, 1, at), 1);
        ck_assert_int_lt(read_back(folder, KEY, &parts, &reason), 0);
        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    }
    ck_assert_int_eq(read_back(folder, KEY, &parts, &reason), 0);
    template_parts_done(&parts);
    closep(&fd);
    remove_folder(folder);
}
END_TEST

START_TEST(test_cut_and_longer)
{
    char folder[64], path[256];
    struct template_parts parts;
    const char *reason;
    struct stat status;

    make_file(folder);
    (void)snprintf(path, sizeof(path), "%s/" KEY, folder);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(truncate(path, status.st_size + 1), 0);
    ck_assert_int_eq(read_back(folder, KEY, &parts, &reason), -EBADMSG);
    ck_assert_str_eq(reason, "something follows its end");
    for (off_t size = status.st_size - 1; size >= 0; size = size > 400 ? size / 2 : size - 7) {
        ck_assert_int_eq(truncate(path, size), 0);
        ck_assert_int_eq(read_back(folder, KEY, &parts, &reason), -EBADMSG);
        ck_assert_str_eq(reason, "it is cut short");
    }
    remove_folder(folder);
}
END_TEST

START_TEST(test_of_something_else)
{
    char folder[64], path[256], other[256];
    struct template_parts parts;
    const char *reason;

    make_file(folder);
    (void)snprintf(path, sizeof(path), "%s/" KEY, folder);
    (void)snprintf(other, sizeof(other), "%s/" OTHER_KEY, folder);
    ck_assert_int_eq(read_back(folder, OTHER_KEY, &parts, &reason), -ENOENT);
    ck_assert_int_eq(symlink(path, other), 0);
    ck_assert_int_eq(read_back(folder, OTHER_KEY, &parts, &reason), -ELOOP);
    ck_assert_int_eq(rename(path, other), 0);
    ck_assert_int_eq(read_back(folder, OTHER_KEY, &parts, &reason), -EBADMSG);
    ck_assert_str_eq(reason, "it is of something else");
    ck_assert_int_eq(rename(other, path), 0);
    ck_assert_int_eq(chmod(path, 0620), 0);
    ck_assert_int_eq(read_back(folder, KEY, &parts, &reason), -EBADMSG);
    ck_assert_str_eq(reason, "others could have written it");
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert_int_eq(template_file_read(folder, KEY, MEMORY_BYTES / 2, DISK_BYTES, folder,
                                        &go_on, &parts, &reason),
                     -EBADMSG);
    ck_assert_str_eq(reason, "a part has another size");
    remove_folder(folder);
}
END_TEST

START_TEST(test_writing_ends_early)
{
    const atomic_bool cancelled = true;
    char folder[64], other[64] = "/tmp/test-template-XXXXXX";
    struct template_parts parts;

    make_file(folder);
    ck_assert_ptr_nonnull(mkdtemp(other));
    make_sample(&parts);
    ck_assert_int_eq(template_file_write(other, KEY, &parts, &cancelled), -ECANCELED);
    ck_assert_int_eq(rmdir(other), 0); /* nothing was left */
    template_parts_done(&parts);
    remove_folder(folder);
}
END_TEST

static void make_aged(const char *folder, const char *name, time_t age_seconds)
{
    struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
                                 { .tv_sec = time(NULL) - age_seconds } };
    char path[256], block[65536] = "x";
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, block, sizeof(block)), sizeof(block));
    ck_assert_int_eq(futimens(fd, times), 0);
    closep(&fd);
}

START_TEST(test_pruning)
{
    char folder[64] = "/tmp/test-template-XXXXXX", path[256];

    ck_assert_ptr_nonnull(mkdtemp(folder));
    make_aged(folder, KEY, 20);
    make_aged(folder, OTHER_KEY, 10);
    make_aged(folder, KEY ".abcdef", 7200);
    make_aged(folder, OTHER_KEY ".abcdef", 10); /* being written */
    make_aged(folder, "notes", 7200);           /* not ours */
    template_prune(folder, 70000);
    (void)snprintf(path, sizeof(path), "cd %s && [ \"$(echo *)\" = '%s' ]", folder,
                   OTHER_KEY " " OTHER_KEY ".abcdef notes");
    ck_assert_int_eq(system(path), 0);
    remove_folder(folder);
}
END_TEST

/* The whole way. */

/* The one file of the cache; false: there is none (any more, or yet). */
static bool kept_file(const struct scene *scene, char path[512], struct stat *ret_status)
{
    char folder[128];
    struct dirent *entry;
    DIR *open_folder;
    bool found = false;

    (void)snprintf(folder, sizeof(folder), "%s/cache/templates", scene->folder);
    open_folder = opendir(folder);
    ck_assert_ptr_nonnull(open_folder);
    while (!found && (entry = readdir(open_folder))) {
        (void)snprintf(path, 512, "%s/%s", folder, entry->d_name);
        found = strlen(entry->d_name) == 64 && stat(path, ret_status) == 0;
    }
    (void)closedir(open_folder);
    return found;
}

/* One machine from start to stop, and whatever is to be kept is kept. */
static void use_once(struct scene *scene, char path[512], struct stat *ret_status)
{
    struct seen seen;

    scene_start(scene, &seen);
    TURN_UNTIL(scene->loop, seen.agents == 1);
    scene_check_hello(&seen);
    ck_assert_int_eq(LIST_ENTRY(scene->backend->vms.next, struct vm, node)->mode, QEMU_CLONE);
    TURN_UNTIL(scene->loop, kept_file(scene, path, ret_status));
    scene_stop(scene, &seen);
}

START_TEST(test_found_again)
{
    char path[512];
    struct stat first, second;
    struct scene scene;

    scene_begin(&scene, "fine", "    pool_size: 0\n");
    use_once(&scene, path, &first);
    scene_restart(&scene);
    use_once(&scene, path, &second);
    ck_assert_uint_eq(first.st_ino, second.st_ino); /* it was read, not made again */
    ck_assert_uint_eq(second.st_mode & 0777, 0600);
    scene_end(&scene);
}
END_TEST

/* Broken on disk: made again, and whole afterwards. */
START_TEST(test_broken_is_made_again)
{
    char path[512];
    struct stat broken, whole, again;
    struct scene scene;

    scene_begin(&scene, "fine", "    pool_size: 0\n");
    use_once(&scene, path, &broken);
    ck_assert_int_eq(truncate(path, broken.st_size / 2), 0);
    scene_restart(&scene);
    use_once(&scene, path, &whole);
    TURN_UNTIL(scene.loop, kept_file(&scene, path, &whole) && whole.st_size == broken.st_size);
    scene_restart(&scene);
    use_once(&scene, path, &again);
    ck_assert_uint_eq(whole.st_ino, again.st_ino);
    scene_end(&scene);
}
END_TEST

/* Whatever must match and does not makes another key. */
START_TEST(test_stale_is_not_found)
{
    /* The last is what QEMU would load by itself. */
    static const char *const changes[] = { "file", "q/bin/qemu-fine",
                                           "q/share/qemu/qboot.rom" };

    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        char path[512], second_path[512], command[512];
        struct stat first, second;
        struct scene scene;

        scene_begin(&scene, "fine", "    pool_size: 0\n    template_cache_mb: 1\n");
        use_once(&scene, path, &first);
        /* As packages do; at the end of an ELF file more bytes change nothing. */
        (void)snprintf(command, sizeof(command),
                       "cd %s && mkdir -p q/share/qemu && touch %s && cp -p %s new && "
                       "echo more >>new && mv new %s",
                       scene.folder, changes[i], changes[i], changes[i]);
        ck_assert_int_eq(system(command), 0);
        scene_restart(&scene);
        ck_assert_int_eq(unlink(path), 0); /* only the new one can appear */
        use_once(&scene, second_path, &second);
        ck_assert_str_ne(path, second_path);
        scene_end(&scene);
    }
}
END_TEST

/* Each part of a machine's shape makes another key, whether QEMU is told of it or not. */
START_TEST(test_key_tells_shapes)
{
    static const struct qemu_shape shapes[] = {
        { .cpus = 1, .memory_mb = 256, .disk_mb = 64 },
        { .cpus = 2, .memory_mb = 256, .disk_mb = 64 },
        { .cpus = 1, .memory_mb = 512, .disk_mb = 64 },
        { .cpus = 1, .memory_mb = 256, .disk_mb = 4096 },
        { .cpus = 1, .memory_mb = 256, .disk_mb = 64, .network = true },
    };
    char keys[ARRAY_SIZE(shapes)][HASH_SHA256_HEX_BYTES];
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
        const struct template_key_spec spec = {
            .args = { .program = "true", .mode = QEMU_TEMPLATE, .shape = shapes[i] },
            .image_digest = "digest",
            .rehearsal = "none",
            .kernel_fd = fd,
            .initrd_fd = fd,
        };

        ck_assert_int_eq(template_key(&spec, keys[i]), 0);
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(keys[i], keys[j]);
    }
    (void)close(fd);
}
END_TEST

START_TEST(test_nothing_is_kept)
{
    char path[512];
    struct stat status;
    struct scene scene;
    struct seen seen;

    scene_begin(&scene, "fine", "    pool_size: 0\n    template_cache_mb: 0\n");
    scene_start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.agents == 1);
    turn_for(scene.loop, 200);
    ck_assert(!kept_file(&scene, path, &status));
    scene_stop(&scene, &seen);
    scene_end(&scene);
}
END_TEST

UNIT_MAIN("qemu_template_cache", test_written_and_read, test_flipped_bytes, test_cut_and_longer,
          test_of_something_else, test_writing_ends_early, test_pruning, test_found_again,
          test_broken_is_made_again, test_stale_is_not_found, test_key_tells_shapes,
          test_nothing_is_kept)
