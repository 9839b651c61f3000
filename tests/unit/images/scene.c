/* scene.c - see scene.h. */
#include "scene.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct scene scene;

/* Life. */

void scene_settings(const char *lines)
{
    char path[FOLDER_PATH_BYTES + 16], why[SETTINGS_ERROR_MAX];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/settings.yaml", scene.directory);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "sandbox:\n  settings:\n    cache_dir: %s/cache\n    state_dir: %s/state\n%s",
            scene.directory, scene.directory, lines);
    ck_assert_int_eq(fclose(file), 0);
    settings_free(take_ptr(scene.settings));
    ck_assert_msg(settings_load(path, &scene.settings, why) == 0, "%s", why);
}

void scene_prepare(const char *extra)
{
    char lines[1024], cache_directory[FOLDER_PATH_BYTES + 16];

    folder_make(scene.directory);
    (void)snprintf(scene.installer, sizeof(scene.installer), "%s/installer", scene.directory);
    (void)snprintf(lines, sizeof(lines), SCENE_CATALOG "%s", extra);
    scene_settings(lines);
    (void)snprintf(cache_directory, sizeof(cache_directory), "%s/cache", scene.directory);
    ck_assert_int_eq(mkdir(cache_directory, 0700), 0);
    ck_assert_int_eq(loop_new(&scene.loop), 0);
}

static void on_installed(void *ctx, const char *digest)
{
    scene.installed++;
    (void)snprintf(scene.installed_digest, sizeof(scene.installed_digest), "%s", digest);
}

void scene_start_cache(void)
{
    const struct image_cache_options options = { .loop = scene.loop,
                                                 .installer = scene.installer,
                                                 .flavor = "test",
                                                 .installed = on_installed };

    ck_assert_int_eq(image_cache_new(&options, &scene.settings->adapter, &scene.cache), 0);
}

void scene_open(const char *extra)
{
    scene_prepare(extra);
    scene_start_cache();
}

void scene_close(void)
{
    image_cache_free(take_ptr(scene.cache));
    loop_free(take_ptr(scene.loop));
    settings_free(take_ptr(scene.settings));
    folder_remove(scene.directory);
}

/* The installer. */

void scene_installer(const char *script)
{
    char text[4096];

    (void)snprintf(text, sizeof(text),
                   "echo \"$@\" >>${0%%/*}/starts\n"
                   "while [ $# -gt 0 ]; do case $1 in\n"
                   "--insecure) insecure=1; shift;;\n"
                   "--max-mb) max_mb=$2; shift 2;;\n"
                   "--*) eval ${1#--}='\"$2\"'; shift 2;;\n"
                   "esac; done\n"
                   "%s",
                   script);
    folder_script(scene.directory, "installer", text);
}

unsigned scene_starts(void)
{
    char path[128], line[1024];
    unsigned lines = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/starts", scene.directory);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        lines++;
    if (file)
        fclose(file);
    return lines;
}

/* The folder. */

bool scene_exists(const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", scene.directory, name);
    return access(path, F_OK) == 0;
}

void scene_touch(const char *name)
{
    char path[128];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", scene.directory, name);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

void scene_count(unsigned *ret_images, unsigned *ret_temporary)
{
    char path[128];
    DIR *directory;
    struct dirent *entry;

    *ret_images = *ret_temporary = 0;
    (void)snprintf(path, sizeof(path), "%s/cache/images", scene.directory);
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

bool scene_is_empty(void)
{
    unsigned images, temporary;

    scene_count(&images, &temporary);
    return images == 0 && temporary == 0;
}

/* Those who wait. */

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

void waiter_get_with(struct waiter *waiter, const char *image, unsigned flags)
{
    static const struct image_wait_events events = { on_progress, on_done };

    ck_assert_int_eq(image_cache_get(scene.cache, &scene.settings->adapter, image, flags,
                                     &events, waiter, &waiter->wait),
                     0);
    ck_assert_uint_eq(waiter->done, 0); /* never from inside */
}

void waiter_get(struct waiter *waiter, const char *image)
{
    waiter_get_with(waiter, image,
                    scene.settings->adapter.auto_install ? IMAGE_MAY_INSTALL : 0);
}

void waiter_await(struct waiter *waiter)
{
    TURN_UNTIL(scene.loop, waiter->done == 1);
    image_wait_free(take_ptr(waiter->wait));
}

void waiter_take(struct waiter *waiter, const char *image)
{
    waiter_get(waiter, image);
    waiter_await(waiter);
    ck_assert_msg(waiter->image != NULL, "%s", waiter->message);
}

void waiter_give_back(struct waiter *waiter)
{
    image_unref(waiter->image);
    *waiter = (struct waiter){ 0 };
}

void scene_expect_failure(const char *image, enum sandbox_code code, const char *part)
{
    struct waiter waiter = { 0 };

    waiter_get(&waiter, image);
    waiter_await(&waiter);
    ck_assert_int_eq(waiter.code, code);
    ck_assert_msg(strstr(waiter.message, part) && strstr(waiter.message, image),
                  "%s does not hold %s", waiter.message, part);
}
