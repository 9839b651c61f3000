/* web_engine.h - what the front answers itself: `engine::workers::*`, `engine::functions::*`
 * (iii-wire 3.2). */
#pragma once

#include "web_main.h"

enum web_engine_result {
    WEB_ENGINE_NOT_MINE,
    WEB_ENGINE_DONE,    /* the buffer holds the result's JSON */
    WEB_ENGINE_REFUSED, /* no such function; the buffer holds the message */
    WEB_ENGINE_NO_MEMORY
};

enum web_engine_result web_engine_serve(struct web_main *client, const char *function,
                                        struct span data, struct buf *ret_result);
