/* codec.h - bodies to structs and back, by walking the field tables of the contract.
 *
 * Callers' bodies are JSON, the guest's are msgpack; both are checked by the same tables. */
#pragma once

#include "buf.h"
#include "error.h"
#include "tables.h"

/* Members of one type; a test checks the tables against it. */
#define CODEC_FIELDS_MAX 32

/* Decodes one JSON object into *ret_value (zeroed first). Contract 4.1: S001 names field, wish
 * and value; defaults are filled in. On failure *ret_value is empty again. */
int codec_decode_json(const struct type *type, const char *json, size_t size, void *ret_value,
                      struct sandbox_error *err);

/* Appends the value as compact JSON. ARRAY: the type's only field, bare. 0, -ENOMEM, -ENOBUFS.
 */
int codec_encode_json(const struct type *type, const void *value, bool array, struct buf *to);

/* The same over msgpack, for the guest link. A guest's malformed map: -EPROTO; the value is
 * empty again. Limits: every count is checked against the bytes that are there. */
int codec_decode_msgpack(const struct type *type, const uint8_t *data, size_t size,
                         void *ret_value);
/* 0, -ENOMEM, -ENOBUFS; -EINVAL: a member of a kind that only callers use (env, channels). */
int codec_encode_msgpack(const struct type *type, const void *value, struct buf *to);

/* Sets the member of FIELD, which has FIELD_DEFAULT, in the struct VALUE. 0 or -ENOMEM. */
int codec_set_default(const struct field *field, void *value);

/* Releases what the struct owns and zeroes it. Accepts a half-filled one. */
void codec_free(const struct type *type, void *value);

/* Contract 4.3: S001 that lists all bad names of an env object; fine for lists. */
int env_check(const struct env *env, struct sandbox_error *err);
/* Appends the entries as "NAME=VALUE", in the order in which later ones win; list entries
 * without `=` or with an empty name are left out. 0 or -ENOMEM. */
int env_append(const struct env *env, struct text_list *to);
int text_list_append(struct text_list *list, const char *text); /* copies */
void text_list_done(struct text_list *list);
