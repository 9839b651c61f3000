/* payload.h - a call's body, written member by member. The first failure sticks and comes out
 * of payload_end(). Zero-initialised is empty. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "span.h"

struct payload {
    struct buf json;
    int result;
};

void payload_text(struct payload *payload, const char *key, const char *value);
void payload_number(struct payload *payload, const char *key, uint64_t value);
void payload_bool(struct payload *payload, const char *key, bool value);
void payload_texts(struct payload *payload, const char *key, char *const *values, size_t count);
void payload_json(struct payload *payload, const char *key, struct span value);
/* Closes the object; the span is the payload's. 0, -ENOMEM. */
int payload_end(struct payload *payload, struct span *ret_json);
void payload_done(struct payload *payload);
