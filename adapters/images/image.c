/* image.c - see image.h. */
#include "image.h"

#include <assert.h>
#include <stdlib.h>

#include "cleanup.h"
#include "codec.h"

void image_done(struct image *image)
{
    free(image->name);
    free(image->source);
    free(image->digest);
    free(image->content);
    free(image->directory);
    free(image->workdir);
    text_list_done(&image->env);
    *image = (struct image){ 0 };
}

const char *image_stage_name(enum image_stage stage)
{
    static const char *const names[] = { "pulling", "unpacking", "packing", "sealing" };
    static_assert(ARRAY_SIZE(names) == IMAGE_STAGE_MAX, "a word for each stage");

    return names[stage];
}
