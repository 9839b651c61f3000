/* catalog_list.c - catalog::list: the names that may be asked for (contract 7.1). */
#include "catalog.h"
#include "handlers.h"

static struct catalog_image describe(const char *name, const char *source, const char *kind)
{
    /* Borrowed from the settings: the reply is encoded at once. */
    return (struct catalog_image){ .has_name = true,
                                   .name = (char *)name,
                                   .has_oci_ref = true,
                                   .oci_ref = (char *)source,
                                   .has_kind = true,
                                   .kind = (char *)kind };
}

void handle_catalog_list(struct request *request)
{
    const struct adapter_settings *settings = request_settings(request);
    struct catalog_list_reply reply = { .has_images = true };
    struct sandbox_error err = { 0 };
    struct catalog_image *images = calloc(catalog_count(settings), sizeof(*images));
    const char *name;
    bool is_preset;

    if (!images) {
        sandbox_error_set(&err, S300, "no memory for the reply");
        request_fail(request, &err);
        return;
    }
    reply.images.items = images;
    for (size_t i = 0; (name = catalog_name(settings, i, &is_preset)); i++)
        images[reply.images.count++] = describe(name, catalog_source(settings, name),
                                                is_preset ? "preset" : "custom");
    request_reply(request, &reply);
    free(images);
}
