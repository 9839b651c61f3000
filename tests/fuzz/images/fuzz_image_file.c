/* fuzz_image_file.c - image.json and config.json with any content. */
#include "image_file.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char directory[] = "/tmp/fuzz-image-XXXXXX";

static void put(const char *name, const uint8_t *data, size_t size)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    file = fopen(path, "w");
    assert(file && fwrite(data, 1, size, file) == size);
    assert(fclose(file) == 0);
}

static void take_away(const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    (void)unlink(path); /* it may not be there */
}

static void remove_directory(void)
{
    take_away("root.img");
    (void)rmdir(directory); /* at worst an empty folder is left in /tmp */
}

static int read_back(void)
{
    struct image image = { 0 };
    int ret = image_file_read(directory, &image);

    if (ret == 0)
        assert(image.name && image.workdir && image.workdir[0] == '/');
    image_done(&image);
    return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[IMAGE_WHY_MAX] = "";

    if (directory[strlen(directory) - 1] == 'X') {
        assert(mkdtemp(directory));
        assert(atexit(remove_directory) == 0);
        put("root.img", (const uint8_t *)"x", 1);
    }
    put(IMAGE_FILE_NAME, data, size);
    (void)read_back();
    take_away(IMAGE_FILE_NAME);
    put(IMAGE_CONFIG_NAME, data, size);
    if (image_file_write(directory, "name", "source", why) == 0)
        assert(read_back() == 0);
    else
        assert(*why);
    take_away(IMAGE_FILE_NAME);
    take_away(IMAGE_CONFIG_NAME);
    return 0;
}
