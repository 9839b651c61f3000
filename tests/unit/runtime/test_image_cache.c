/* test_image_cache.c - images on disk, shared installs, failures (contract 7.3), with shell
 * scripts as installers. */
#include "fixture.h"
#include "image_cache.h"
#include "image_lock.h"
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define SETTINGS                                                                               \
    "    image_allowlist: [one, two, bad]\n"                                                   \
    "    custom_images:\n"                                                                     \
    "      one: rootfs:/srv/one\n"                                                             \
    "      two: localhost:5000/two\n"                                                          \
    "      bad: 'no source'\n"

/* Reads its options into variables of their names; the log tells each start. */
#define OPTIONS                                                                                \
    "echo \"$@\" >>${0%/*}/starts\n"                                                           \
    "while [ $# -gt 0 ]; do case $1 in\n"                                                      \
    "--insecure) insecure=1; shift;;\n"                                                        \
    "--max-mb) max_mb=$2; shift 2;;\n"                                                         \
    "--*) eval ${1#--}='\"$2\"'; shift 2;;\n"                                                  \
    "esac; done\n"

struct waiter {
    struct image_wait *wait;
    const struct image *image;
    unsigned done;
    bool installed;
    unsigned progress[IMAGE_STAGE_MAX];
    uint64_t bytes, total_bytes;
    enum sandbox_code code;
    char message[ERROR_MESSAGE_MAX];
};

static void on_progress(void *ctx, const struct image_progress *progress)
{
    struct waiter *waiter = ctx;

    waiter->progress[progress->stage]++;
    if (progress->stage == IMAGE_SEALING)
        return;
    waiter->bytes = progress->bytes;
    waiter->total_bytes = progress->total_bytes;
}

static void on_done(void *ctx, const struct image *own_image, bool installed,
                    struct sandbox_error *err)
{
    struct waiter *waiter = ctx;

    ck_assert(!own_image != !err);
    waiter->done++;
    waiter->installed = installed;
    waiter->image = own_image;
    waiter->code = err ? err->code : SANDBOX_OK;
    if (err)
        (void)snprintf(waiter->message, sizeof(waiter->message), "%s", err->message);
}

static const struct image_wait_events wait_events = { on_progress, on_done };

static void get_with(struct waiter *waiter, const char *image, unsigned flags)
{
    ck_assert_int_eq(image_cache_get(adapter_images(fixture.adapter),
                                     adapter_snapshot(fixture.adapter), image, flags,
                                     &wait_events, waiter, &waiter->wait),
                     0);
    ck_assert_uint_eq(waiter->done, 0); /* never from inside */
}

/* As `create` does. */
static void get(struct waiter *waiter, const char *image)
{
    bool may_install = adapter_settings(fixture.adapter)->auto_install;

    get_with(waiter, image, may_install ? IMAGE_MAY_INSTALL : 0);
}

static void await(struct waiter *waiter)
{
    TURN_UNTIL(fixture.loop, waiter->done == 1);
    image_wait_free(take_ptr(waiter->wait));
}

static void give_back(struct waiter *waiter)
{
    image_unref(waiter->image);
    *waiter = (struct waiter){ 0 };
}

static void expect_failure(const char *image, enum sandbox_code code, const char *part)
{
    struct waiter waiter = { 0 };

    get(&waiter, image);
    await(&waiter);
    ck_assert_int_eq(waiter.code, code);
    ck_assert_msg(strstr(waiter.message, part) && strstr(waiter.message, image),
                  "%s does not hold %s", waiter.message, part);
}

/* What is in the cache: `images` and `temporary` folders. */
static void count(unsigned *ret_images, unsigned *ret_temporary)
{
    char path[128];
    DIR *directory;
    struct dirent *entry;

    *ret_images = *ret_temporary = 0;
    (void)snprintf(path, sizeof(path), "%s/cache/images", fixture.directory);
    directory = opendir(path);
    while (directory && (entry = readdir(directory))) {
        if (strstr(entry->d_name, ".tmp-"))
            ++*ret_temporary;
        else if (strlen(entry->d_name) == 64)
            ++*ret_images;
    }
    if (directory)
        closedir(directory);
}

static bool nothing_is_left(void)
{
    unsigned images, temporary;

    count(&images, &temporary);
    return images == 0 && temporary == 0;
}

static unsigned starts(void)
{
    char path[128], line[1024];
    unsigned lines = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/starts", fixture.directory);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        lines++;
    if (file)
        fclose(file);
    return lines;
}

static bool exists(const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", fixture.directory, name);
    return access(path, F_OK) == 0;
}

static void touch(const char *name)
{
    char path[128];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", fixture.directory, name);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

START_TEST(test_install_and_take)
{
    struct waiter first = { 0 }, again = { 0 };

    fixture_open(SETTINGS);
    fixture_script("installer", OPTIONS
                   "echo 'progress pulling 10 100'\n"
                   "echo 'noise'\n"
                   "echo 'progress unpacking 7'\n"
                   "echo 'progress pulling 20 100'\n"
                   "echo \"$kind $source $arch\" >$dir/root.img\n"
                   "echo '{\"env\":[\"A=1\",\"B=\"],\"workdir\":\"/w\"}' >$dir/config.json\n"
                   "mkdir $dir/tree\n"
                   "echo done");
    get(&first, "one");
    await(&first);
    ck_assert_msg(first.image != NULL, "%s", first.message);
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
    get(&again, "one");
    await(&again);
    ck_assert_ptr_eq(again.image, first.image);
    ck_assert_uint_eq(again.progress[IMAGE_PULLING] + again.progress[IMAGE_UNPACKING], 0);
    ck_assert_uint_eq(starts(), 1);
    give_back(&first);
    give_back(&again);
    get(&again, "one"); /* nobody holds it: read from the disk */
    await(&again);
    ck_assert_str_eq(again.image->workdir, "/w");
    ck_assert_uint_eq(starts(), 1);
    give_back(&again);
    fixture_close();
}
END_TEST

START_TEST(test_arguments)
{
    struct waiter waiter = { 0 };
    char path[128], line[1024] = "";
    FILE *file;

    fixture_open(SETTINGS);
    fixture_script("installer", OPTIONS "[ \"$insecure\" = 1 ] || exit 1\n"
                                        "[ -z \"$(ls -A $dir)\" ] || exit 1\n"
                                        "echo x >$dir/x; echo done");
    get(&waiter, "two");
    await(&waiter);
    ck_assert_msg(waiter.image != NULL, "%s", waiter.message);
    ck_assert_str_eq(waiter.image->workdir, "/");
    give_back(&waiter);
    (void)snprintf(path, sizeof(path), "%s/starts", fixture.directory);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
    fclose(file);
    ck_assert_ptr_nonnull(
        strstr(line, "--source docker://localhost:5000/two:latest --kind registry --dir /tmp"));
    ck_assert_ptr_nonnull(strstr(line, " --max-mb 20480"));
    fixture_close();
}
END_TEST

START_TEST(test_one_install_for_all)
{
    struct waiter waiters[3] = { 0 }, late = { 0 };

    fixture_open(SETTINGS);
    fixture_script("installer", OPTIONS "while [ ! -e ${0%/*}/go ]; do sleep 0.05; done\n"
                                        "echo 'progress pulling 1'\n"
                                        "echo x >$dir/x; echo done");
    for (unsigned i = 0; i < 3; i++)
        get(&waiters[i], "one");
    TURN_UNTIL(fixture.loop, starts() == 1);
    get(&late, "one");
    image_wait_free(take_ptr(waiters[1].wait));
    touch("go");
    await(&waiters[0]);
    await(&waiters[2]);
    await(&late);
    ck_assert_ptr_nonnull(waiters[0].image);
    ck_assert_ptr_eq(waiters[0].image, late.image);
    ck_assert_ptr_eq(waiters[2].image, late.image);
    ck_assert_uint_eq(waiters[1].done, 0);
    ck_assert_uint_eq(late.progress[IMAGE_PULLING], 1);
    ck_assert_uint_eq(starts(), 1);
    give_back(&waiters[0]);
    give_back(&waiters[2]);
    give_back(&late);
    fixture_close();
}
END_TEST

START_TEST(test_nobody_waits_any_more)
{
    struct waiter waiter = { 0 };

    fixture_open(SETTINGS);
    /* The child in another session holds `alive` open as long as it lives. */
    fixture_script("installer", OPTIONS
                   "echo x >$dir/half\n"
                   "setsid sh -c \"trap '' TERM; exec flock ${0%/*}/alive sleep 600\" &\n"
                   "while ! [ -e ${0%/*}/alive ]; do sleep 0.05; done\n"
                   "touch ${0%/*}/begun; wait");
    get(&waiter, "one");
    TURN_UNTIL(fixture.loop, exists("begun"));
    image_wait_free(take_ptr(waiter.wait));
    TURN_UNTIL(fixture.loop, nothing_is_left());
    ck_assert_uint_eq(waiter.done, 0);
    char path[128];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/alive", fixture.directory);
    fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    TURN_UNTIL(fixture.loop, flock(fd, LOCK_EX | LOCK_NB) == 0);
    close(fd);
    fixture_close();
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
    char script[2048];

    fixture_open(SETTINGS);
    (void)snprintf(script, sizeof(script), "%s%s", OPTIONS, failures[_i].script);
    fixture_script("installer", script);
    expect_failure("one", S102, failures[_i].part);
    TURN_UNTIL(fixture.loop, nothing_is_left());
    expect_failure("one", S102, "rootfs:/srv/one"); /* tried anew */
    ck_assert_uint_eq(starts(), 2);
    fixture_close();
}
END_TEST

START_TEST(test_no_installer)
{
    fixture_open(SETTINGS);
    expect_failure("one", S102, "cannot be started");
    TURN_UNTIL(fixture.loop, nothing_is_left());
    fixture_close();
}
END_TEST

START_TEST(test_bad_source)
{
    fixture_open(SETTINGS);
    fixture_script("installer", OPTIONS "echo x >$dir/x; echo done");
    expect_failure("bad", S102, "step source");
    ck_assert_uint_eq(starts(), 0);
    fixture_close();
}
END_TEST

START_TEST(test_timeout)
{
    fixture_open(SETTINGS "    pull_timeout_ms: 1000\n");
    fixture_script("installer", OPTIONS "echo 'progress pulling 5'; sleep 600");
    expect_failure("one", S102, "step pulling: not finished after pull_timeout_ms 1000");
    TURN_UNTIL(fixture.loop, nothing_is_left());
    fixture_close();
}
END_TEST

/* A pull that trickles, or says nothing more, ends; how long the rest takes is not judged. */
START_TEST(test_stall)
{
    fixture_open(SETTINGS "    pull_stall_timeout_ms: 1000\n");
    fixture_script("installer", OPTIONS "echo 'progress pulling 5'; sleep 600");
    expect_failure("two", S102,
                   "step pulling: less than 1024 bytes came within pull_stall_timeout_ms 1000");
    fixture_script("installer", OPTIONS "bytes=0; while sleep 0.2; do "
                                        "echo progress pulling $((bytes += 10)); done");
    expect_failure("two", S102, "less than 1024 bytes came");
    TURN_UNTIL(fixture.loop, nothing_is_left());
    fixture_close();
}
END_TEST

/* IMAGE is installed by this SCRIPT, with a second as the time without progress. */
static void check_no_stall(const char *image, const char *script)
{
    struct waiter waiter = { 0 };

    fixture_open(SETTINGS "    pull_stall_timeout_ms: 1000\n");
    fixture_script("installer", script);
    get(&waiter, image);
    await(&waiter);
    ck_assert_msg(waiter.image != NULL, "%s", waiter.message);
    give_back(&waiter);
    fixture_close();
}

START_TEST(test_no_stall)
{
    check_no_stall(
        "two",
        OPTIONS "for bytes in 0 4000 8000; do echo progress pulling $bytes; sleep 0.5; done; "
                "echo progress unpacking 0; sleep 1.2; echo x >$dir/x; echo done");
}
END_TEST

START_TEST(test_no_stall_on_the_own_disk)
{
    check_no_stall("one",
                   OPTIONS "echo progress pulling 0; sleep 1.2; echo x >$dir/x; echo done");
}
END_TEST

START_TEST(test_auto_install_off)
{
    struct waiter waiter = { 0 };

    fixture_open(SETTINGS);
    fixture_script("installer", OPTIONS "echo x >$dir/x; echo done");
    get(&waiter, "one");
    await(&waiter);
    give_back(&waiter);
    fixture_write_settings(SETTINGS "    auto_install: false\n");
    adapter_reload(fixture.adapter);
    get(&waiter, "one");
    await(&waiter);
    ck_assert_ptr_nonnull(waiter.image);
    give_back(&waiter);
    expect_failure("two", S101, "/cache/images/");
    ck_assert_uint_eq(starts(), 1);
    fixture_close();
}
END_TEST

START_TEST(test_changed_source_is_missing)
{
    struct waiter old = { 0 }, new = { 0 };

    fixture_open(SETTINGS);
    fixture_script("installer", OPTIONS "echo $source >$dir/x; echo done");
    get(&old, "one");
    await(&old);
    fixture_write_settings("    image_allowlist: [one]\n"
                           "    custom_images: {one: 'rootfs:/srv/other'}\n");
    adapter_reload(fixture.adapter);
    get(&new, "one");
    await(&new);
    ck_assert_ptr_nonnull(new.image);
    ck_assert_str_ne(old.image->digest, new.image->digest);
    ck_assert_uint_eq(starts(), 2);
    give_back(&old);
    give_back(&new);
    fixture_close();
}
END_TEST

START_TEST(test_damaged_image_is_missing)
{
    struct waiter waiter = { 0 };
    char path[512];
    FILE *file;

    fixture_open(SETTINGS);
    fixture_script("installer", OPTIONS "echo $source >$dir/x; echo done");
    get(&waiter, "one");
    await(&waiter);
    (void)snprintf(path, sizeof(path), "%s/x", waiter.image->directory);
    give_back(&waiter);
    file = fopen(path, "a");
    ck_assert_ptr_nonnull(file);
    fputs("longer", file);
    fclose(file);
    get(&waiter, "one");
    await(&waiter);
    ck_assert_msg(waiter.image != NULL, "%s", waiter.message);
    ck_assert_uint_eq(starts(), 2);
    give_back(&waiter);
    fixture_close();
}
END_TEST

/* Whoever put them there. */
START_TEST(test_fifos_are_not_waited_for)
{
    static const char *const names[] = { "image.json", "SHA256SUMS", "checked", "x" };
    struct waiter waiter = { 0 };
    char path[512];

    fixture_open(SETTINGS);
    fixture_script("installer", OPTIONS "echo $source >$dir/x; echo done");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        get(&waiter, "one");
        await(&waiter);
        ck_assert_msg(waiter.image != NULL, "%s: %s", names[i], waiter.message);
        (void)snprintf(path, sizeof(path), "%s/%s", waiter.image->directory, names[i]);
        give_back(&waiter);
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_int_eq(mkfifo(path, 0600), 0);
    }
    get(&waiter, "one");
    await(&waiter);
    ck_assert_msg(waiter.image != NULL, "%s", waiter.message);
    give_back(&waiter);
    fixture_close();
}
END_TEST

/* Writes one byte of FILE in the image's folder over. */
static void flip_byte(const char *directory, const char *name)
{
    char path[512];
    unsigned char byte;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, &byte, 1, 2), 1);
    byte ^= 1;
    ck_assert_int_eq(pwrite(fd, &byte, 1, 2), 1);
    close(fd);
}

/* One flipped byte, in each of an image's files. */
START_TEST(test_flipped_byte_heals)
{
    static const char *const files[] = { "x", "image.json", "SHA256SUMS", "checked" };
    struct waiter waiter = { 0 };
    char directory[512];

    fixture_open(SETTINGS);
    fixture_script("installer", OPTIONS "echo $source >$dir/x; echo done");
    get(&waiter, "one");
    await(&waiter);
    ck_assert(waiter.installed);
    (void)snprintf(directory, sizeof(directory), "%s", waiter.image->directory);
    give_back(&waiter);
    flip_byte(directory, files[_i]);
    get(&waiter, "one");
    await(&waiter);
    ck_assert_msg(waiter.image != NULL, "%s", waiter.message);
    ck_assert_int_eq(waiter.installed, strcmp(files[_i], "checked") != 0);
    give_back(&waiter);
    get(&waiter, "one"); /* and it is known to be right from then on */
    ck_assert(!image_cache_installs(adapter_images(fixture.adapter),
                                    adapter_settings(fixture.adapter),
                                    strrchr(directory, '/') + 1));
    await(&waiter);
    ck_assert(!waiter.installed);
    give_back(&waiter);
    fixture_close();
}
END_TEST

START_TEST(test_damaged_and_auto_install_off)
{
    struct waiter waiter = { 0 };
    char directory[512];

    fixture_open(SETTINGS);
    fixture_script("installer", OPTIONS "echo $source >$dir/x; echo done");
    get(&waiter, "one");
    await(&waiter);
    (void)snprintf(directory, sizeof(directory), "%s", waiter.image->directory);
    give_back(&waiter);
    fixture_write_settings(SETTINGS "    auto_install: false\n");
    adapter_reload(fixture.adapter);
    flip_byte(directory, "x");
    expect_failure("one", S101, "x: FAILED");
    expect_failure("one", S101, directory);
    flip_byte(directory, "x"); /* as it was */
    get(&waiter, "one");
    await(&waiter);
    ck_assert_msg(waiter.image != NULL, "%s", waiter.message);
    give_back(&waiter);
    ck_assert_uint_eq(starts(), 1);
    fixture_close();
}
END_TEST

/* Whoever may install joins one who only looks: it is installed. */
START_TEST(test_permission_of_a_later_one)
{
    struct waiter waiter = { 0 }, looker = { 0 }, later = { 0 };

    fixture_open(SETTINGS);
    fixture_script("installer", OPTIONS "echo $source >$dir/x; echo done");
    get(&waiter, "one");
    await(&waiter);
    flip_byte(waiter.image->directory, "x");
    give_back(&waiter);
    get_with(&looker, "one", 0);
    get_with(&later, "one", IMAGE_MAY_INSTALL);
    await(&looker);
    await(&later);
    ck_assert_ptr_nonnull(looker.image);
    ck_assert_ptr_eq(looker.image, later.image);
    give_back(&looker);
    give_back(&later);
    fixture_close();
}
END_TEST

START_TEST(test_anew)
{
    struct waiter old = { 0 }, same = { 0 }, new = { 0 };
    unsigned images, temporary;

    fixture_open(SETTINGS);
    fixture_script("installer", OPTIONS "cat ${0%/*}/starts >$dir/x; echo done");
    get(&old, "one");
    await(&old);
    get_with(&new, "one", IMAGE_MAY_INSTALL | IMAGE_ANEW);
    await(&new);
    ck_assert(new.installed);
    ck_assert_str_eq(new.image->directory, old.image->directory);
    ck_assert_str_ne(new.image->content, old.image->content);
    get(&same, "one");
    await(&same);
    ck_assert_ptr_eq(same.image, new.image);
    give_back(&old);
    give_back(&same);
    give_back(&new);
    TURN_UNTIL(fixture.loop, (count(&images, &temporary), temporary == 0));
    ck_assert_uint_eq(images, 1);
    fixture_close();
}
END_TEST

START_TEST(test_another_process_installs)
{
    struct waiter waiter = { 0 };
    char digest[65], path[256];
    int fd;

    fixture_open(SETTINGS);
    fixture_script("installer", OPTIONS "echo x >$dir/x; echo done");
    get(&waiter, "one");
    await(&waiter);
    (void)snprintf(digest, sizeof(digest), "%s", waiter.image->digest);
    give_back(&waiter);
    /* The other one holds the lock, and its image is not there yet. */
    (void)snprintf(path, sizeof(path), "%s/cache/images/%s.lock", fixture.directory, digest);
    fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    (void)snprintf(path, sizeof(path), "cd %s/cache/images && mv %.64s aside",
                   fixture.directory, digest);
    ck_assert_int_eq(system(path), 0);
    get(&waiter, "one");
    turn_for(fixture.loop, 300);
    ck_assert_uint_eq(waiter.done, 0);
    (void)snprintf(path, sizeof(path), "cd %s/cache/images && mv aside %.64s",
                   fixture.directory, digest);
    ck_assert_int_eq(system(path), 0);
    close(fd);
    await(&waiter);
    ck_assert_msg(waiter.image != NULL, "%s", waiter.message);
    ck_assert_uint_eq(starts(), 1);
    give_back(&waiter);
    fixture_close();
}
END_TEST

static unsigned lock_files(void)
{
    char command[256];
    unsigned found = 0;
    FILE *pipe;

    (void)snprintf(command, sizeof(command), "find %s/cache/images -name '*.lock' | wc -l",
                   fixture.directory);
    pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    ck_assert_int_eq(fscanf(pipe, "%u", &found), 1);
    (void)pclose(pipe);
    return found;
}

/* They stay as long as there is something to lock. */
START_TEST(test_lock_files_go)
{
    struct waiter waiter = { 0 };
    char command[512];

    fixture_prepare(SETTINGS);
    (void)snprintf(command, sizeof(command),
                   "mkdir -p %s/cache/images && cd %s/cache/images && touch aa.lock bb.lock && "
                   "mkdir bb",
                   fixture.directory, fixture.directory);
    ck_assert_int_eq(system(command), 0);
    fixture_start_adapter();
    ck_assert_uint_eq(lock_files(), 1); /* that of bb */
    fixture_script("installer", OPTIONS "exit 1");
    expect_failure("one", S102, "exited with 1");
    TURN_UNTIL(fixture.loop, nothing_is_left());
    TURN_UNTIL(fixture.loop, lock_files() == 1);
    fixture_script("installer", OPTIONS "echo x >$dir/x; echo done");
    get(&waiter, "one");
    await(&waiter);
    ck_assert_msg(waiter.image != NULL, "%s", waiter.message);
    ck_assert_uint_eq(lock_files(), 2);
    give_back(&waiter);
    fixture_close();
}
END_TEST

/* Whoever waited for a file that its holder then took away locks the one that has the name. */
START_TEST(test_lock_of_a_file_that_went)
{
    char path[128];
    int fd, taken;

    fixture_prepare(SETTINGS);
    (void)snprintf(path, sizeof(path), "%s/x.lock", fixture.directory);
    fd = image_lock_take(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(image_lock_take(path), -EWOULDBLOCK);
    image_lock_give(path, "/nonexistent", fd);
    ck_assert_int_eq(access(path, F_OK), -1);
    taken = image_lock_take(path);
    ck_assert_int_ge(taken, 0);
    ck_assert_int_eq(access(path, F_OK), 0);
    image_lock_give(path, fixture.directory, taken); /* its image is there: it stays */
    ck_assert_int_eq(access(path, F_OK), 0);
    fixture_start_adapter();
    fixture_close();
}
END_TEST

START_TEST(test_leftovers_are_removed)
{
    char command[512];
    unsigned images, temporary;

    fixture_prepare(SETTINGS);
    (void)snprintf(command, sizeof(command),
                   "mkdir -p %s/cache/images && cd %s/cache/images && mkdir aa.tmp-1 bb.tmp-2 "
                   "&& echo x >aa.tmp-1/x",
                   fixture.directory, fixture.directory);
    ck_assert_int_eq(system(command), 0);
    (void)snprintf(command, sizeof(command), "%s/cache/images/bb.lock", fixture.directory);
    int fd = open(command, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    fixture_start_adapter();
    TURN_UNTIL(fixture.loop, (count(&images, &temporary), temporary == 1));
    close(fd); /* bb's installer is alive until here */
    fixture_close();
}
END_TEST

START_TEST(test_end_while_installing)
{
    struct waiter waiter = { 0 };

    fixture_open(SETTINGS);
    fixture_script("installer", OPTIONS "touch ${0%/*}/begun; sleep 600");
    get(&waiter, "one");
    TURN_UNTIL(fixture.loop, exists("begun"));
    image_wait_free(take_ptr(waiter.wait));
    fixture_close(); /* under the leak checker */
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        test_install_and_take,
        test_arguments,
        test_one_install_for_all,
        test_nobody_waits_any_more,
        test_no_installer,
        test_bad_source,
        test_timeout,
        test_stall,
        test_no_stall,
        test_no_stall_on_the_own_disk,
        test_fifos_are_not_waited_for,
        test_auto_install_off,
        test_changed_source_is_missing,
        test_damaged_image_is_missing,
        test_damaged_and_auto_install_off,
        test_permission_of_a_later_one,
        test_anew,
        test_another_process_installs,
        test_lock_files_go,
        test_lock_of_a_file_that_went,
        test_leftovers_are_removed,
        test_end_while_installing,
    };
    Suite *suite = suite_create("image_cache");
    TCase *test_case = tcase_create("image_cache");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, test_case);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(test_case, tests[i]);
    tcase_add_loop_test(test_case, test_failure_is_told_and_leaves_nothing, 0,
                        ARRAY_SIZE(failures));
    tcase_add_loop_test(test_case, test_flipped_byte_heals, 0, 4);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
