/* publish.h - a prepared folder takes the place of the one that is used, in one step. */
#pragma once

/* NEXT and CURRENT lie in one folder; CURRENT may be missing. Either all of the old or all of
 * the new is there, also after a power cut; the old one is at NEXT afterwards. 0 or -errno. */
int publish(const char *next, const char *current);
