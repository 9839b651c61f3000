/* options.h - the command line of sandbox-conformance. */
#pragma once

#include "report.h"

#define OPTIONS_SETS_MAX 32

struct options {
    struct subject_options subject;
    const char *image;
    size_t set_count;
    const char *compare_a;
    const char *compare_b;
    const char *cases; /* NULL: those that belong to the program */
    char *sources;     /* the folder `sources` beside the cases, resolved; owned; NULL: none */
    const char *only;
    unsigned jobs;
    const char *junit;
    const char *answers; /* file to write */
    const char *against; /* file to compare with */
    const char *section_file;
    const char *sets[OPTIONS_SETS_MAX];
    struct report report;
    bool partial;
};

extern const char options_usage[];
/* False: the usage is to be shown. */
bool options_read(int argc, char **argv, struct options *options);
