/* schema.h - a type of the tables as JSON Schema, for engine::functions::list and info. */
#pragma once

#include "buf.h"
#include "tables.h"

/* Both append one compact JSON object. 0, -ENOMEM or -ENOBUFS. */

/* {"type":"object","properties":{…},"required":[…]}. Required are the fields that must be
 * given. */
int schema_request(const struct type *type, struct buf *to);
/* The same for what comes back; an array where the reply is one. Required are the keys that are
 * always there. */
int schema_reply(const struct operation *operation, struct buf *to);
