/* image_held.h - images that somebody holds, each loaded once however many hold it.
 *
 * While one is held a shared flock lies on its image.json: no process removes it then. One that
 * was installed anew meanwhile is another image; the old one lives on with its holders. */
#pragma once

#include "image.h"
#include "table.h"

struct held_images {
    struct table *by_directory; /* struct held_image; the newest of each folder */
};

int held_images_init(struct held_images *held);  /* 0 or -errno */
void held_images_done(struct held_images *held); /* nobody holds one any more */

/* One reference to the image in DIRECTORY, which was found right; notes that it was used.
 * -ENOENT, or another -errno when it is not usable. */
int image_hold(struct held_images *held, const char *directory, const char *digest,
               const struct image **ret_image);
/* An image lives as long as somebody holds it; machines borrow it from their sandbox. */
const struct image *image_ref(const struct image *image);
void image_unref(const struct image *image);
