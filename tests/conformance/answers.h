/* answers.h - what an adapter answered to each rule, as a file that the run of another adapter
 * is compared with; so that neither has to run twice. */
#pragma once

#include "suite.h"

/* 0 or -errno. */
int answers_write(const struct suite *suite, const char *path);
/* The results that PATH holds, in the order of SUITE's; rules that it lacks count as skipped.
 * 0 or -errno (-EINVAL: no such file's text); suite_done() frees. */
int answers_read(const struct suite *suite, const char *path, struct suite *ret_recorded);
