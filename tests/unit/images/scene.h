/* scene.h - a cache in a folder of the test's own, with a shell script as the installer, and
 * those who wait for its images. */
#pragma once

#include "folder.h"
#include "image_cache.h"
#include "turn.h"
#include "unit.h"

/* The catalog of scene_open(). */
#define SCENE_CATALOG                                                                          \
    "    image_allowlist: [one, two, bad]\n"                                                   \
    "    custom_images:\n"                                                                     \
    "      one: rootfs:/srv/one\n"                                                             \
    "      two: localhost:5000/two\n"                                                          \
    "      bad: 'no source'\n"

struct scene {
    struct loop *loop;
    char directory[FOLDER_PATH_BYTES];
    char installer[FOLDER_PATH_BYTES + 16];
    struct settings *settings;
    struct image_cache *cache;
    unsigned installed; /* so often the cache has told it */
    char installed_digest[HASH_SHA256_HEX_BYTES];
};

/* The one of this test's process. */
extern struct scene scene;

/* Folder and settings; EXTRA: further lines of sandbox.settings, or "". */
void scene_prepare(const char *extra);
void scene_start_cache(void);
/* Both. */
void scene_open(const char *extra);
void scene_close(void);
/* These LINES are all of sandbox.settings from now on. */
void scene_settings(const char *lines);

/* The installer does what SCRIPT says. Its options are in variables of their names (`dir`,
 * `source`, ...); the file `starts` gets a line each time. */
void scene_installer(const char *script);
unsigned scene_starts(void);

/* In the folder of the scene. */
bool scene_exists(const char *name);
void scene_touch(const char *name);
/* What is in the cache: `images` and `temporary` folders. */
void scene_count(unsigned *ret_images, unsigned *ret_temporary);
bool scene_is_empty(void);

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

/* As `create` does. */
void waiter_get(struct waiter *waiter, const char *image);
void waiter_get_with(struct waiter *waiter, const char *image, unsigned flags);
void waiter_await(struct waiter *waiter);
/* Both; the image is had. */
void waiter_take(struct waiter *waiter, const char *image);
void waiter_give_back(struct waiter *waiter);
/* IMAGE is not had; the message holds PART. */
void scene_expect_failure(const char *image, enum sandbox_code code, const char *part);
