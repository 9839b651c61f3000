/* transcript.h - answers written down so that those of two adapters can be compared.
 *
 * Keys and kinds always; values where two adapters must agree on them. Ids, times, texts for
 * people and what an adapter says of itself are masked. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "buf.h"

/* Appends one line; OK tells a reply from an error. TO NULL: nothing. */
void transcript_add(bool ok, const json_t *body, struct buf *to);
