/* older.h - answers as an adapter of another minor of the contract gives them (contract 2.1).
 *
 * Which key came when is said by the `since` of the tables. */
#pragma once

#include "buf.h"
#include "tables.h"

/* Appends JSON, a reply of OPERATION (NULL: in no table) or an error, without the keys that are
 * newer than MINOR. EXTRA_KEYS: with one of a minor yet to come. 0, -EBADMSG, -ENOMEM. */
int older_answer(const struct operation *operation, const char *json, size_t size,
                 unsigned minor, bool extra_keys, struct buf *to);
