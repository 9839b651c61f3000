/* image_operations.h - what operators do with the images of an adapter: its own operations
 * image::ls, pull, rm, prune and verify (docs/images.md, image_types.def). No part of the
 * contract; every adapter of this runtime has them. */
#pragma once

#include "image_cache.h"
#include "image_disk.h"
#include "request.h"

/* True: it was one of these, and took the request. */
bool image_operations_serve(struct request *request);

/* One that is not answered yet, at the head of its own struct. */
struct image_call {
    struct list node; /* in adapter_image_calls() */
    struct request *request;
    void (*free)(struct image_call *call); /* stops its work and frees it; answers nothing */
};

/* The process ends. */
void image_calls_drop(struct list *calls);
void image_call_begin(struct image_call *call, struct request *request,
                      void (*free)(struct image_call *call));
/* These two free the call. */
void image_call_reply(struct image_call *call, const struct type *type, const void *reply);
void image_call_fail(struct image_call *call, struct sandbox_error *err);

/* For image_operations.c: BODY is borrowed. */
void image_pull_serve(struct request *request, const void *body);
void image_verify_serve(struct request *request, const void *body);

/* The digest that TEXT names, a catalog name or the digest of one of IMAGES; else S100. */
int image_find(struct request *request, const char *text, const struct disk_images *images,
               char ret_digest[HASH_SHA256_HEX_BYTES], struct sandbox_error *err);
