/* libexec.h - where the helpers of this program are. */
#pragma once

/* The path of NAME: beside this program, or in ../libexec/iii-sandbox as when installed. NULL:
 * in neither. The caller frees. */
char *libexec_find(const char *name);
