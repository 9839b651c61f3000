/* info.h - what this adapter says of itself: in its HELLO and in adapter::info (contract 13).
 */
#pragma once

#include "adapter.h"
#include "envelope.h"

/* Fills name, version, contract and features; borrowed from the adapter. */
void info_announce(const struct adapter *adapter, struct envelope *hello);

/* Whether FEATURE is announced by the runtime or the back end (contract 2.1). */
bool info_has_feature(const struct adapter *adapter, const char *feature);
