/* json_decode.h - what the files json_decode*.c share; nobody else includes it. */
#pragma once

#include "codec.h"
#include "json_place.h"

int json_decode_no_memory(struct sandbox_error *err); /* -1 */

/* A list's element of text, without limits of its own. */
extern const struct field json_decode_element;

/* VALUE must be text without NUL, of the bytes that FIELD allows. */
int json_decode_text(const struct field *field, struct span value, const struct place *place,
                     char **ret_text, struct sandbox_error *err);

/* Room for the elements of LIST, of SIZE bytes each, zeroed. *ret_items is NULL for none. */
int json_decode_prepare(struct span list, size_t size, const struct place *place,
                        void **ret_items, struct sandbox_error *err);

/* On failure ENV holds what was read so far, for codec_free(). */
int json_decode_env(const struct field *field, struct span value, const struct place *place,
                    struct env *env, struct sandbox_error *err);
