/* uuid.h - random UUIDs and the forms of one that are accepted. */
#pragma once

#define UUID_TEXT_BYTES 37 /* 36 characters and the NUL */

/* A version 4 UUID, lower case, hyphenated. 0, or -errno of getrandom(2). */
int uuid_random(char ret_text[UUID_TEXT_BYTES]);

/* Reads, in any letter case: hyphenated, 32 hex digits, {hyphenated}, urn:uuid:hyphenated.
 * Gives the lower-case hyphenated form. -EINVAL: anything else. */
int uuid_parse(const char *text, char ret_canonical[UUID_TEXT_BYTES]);
