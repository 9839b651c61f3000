/* options.c - see options.h. */

#include "options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

const char options_usage[] =
    "usage: sandbox-conformance --adapter PROGRAM | --router URL | --compare PROGRAM PROGRAM\n"
    "  --cases DIR      case files (default: those that came with the program)\n"
    "  --only PREFIX    only rules whose id begins so\n"
    "  --image NAME     image to boot (default python)\n"
    "  --set KEY=VALUE  a line of sandbox.settings\n"
    "  --section FILE   YAML put below `sandbox`\n"
    "  --jobs N         files with settings of their own run beside the others (default 8)\n"
    "  --tap            TAP on stdout\n"
    "  --junit FILE     JUnit XML\n"
    "  --answers FILE   writes what the adapter answered, for --against\n"
    "  --against FILE   compares with the answers of another adapter's run\n"
    "  --partial        operations and codes that were never seen are no failure\n"
    "  --verbose        passed rules too, and the log of router and adapter\n";

static bool take_jobs(const char *text, unsigned *ret_jobs)
{
    char *end;
    unsigned long jobs = strtoul(text, &end, 10);
    if (end == text || *end || jobs < 1 || jobs > SUITE_JOBS_MAX)
        return false;
    *ret_jobs = (unsigned)jobs;
    return true;
}

static bool take_option(struct options *options, int option, char **argv)
{
    switch (option) {
    case 'a':
        options->subject.adapter = optarg;
        return true;
    case 'r':
        options->subject.router_url = optarg;
        return true;
    case 'c':
        options->compare_a = optarg;
        options->compare_b = argv[optind] ? argv[optind++] : NULL;
        return options->compare_b != NULL;
    case 'd':
        options->cases = optarg;
        return true;
    case 'o':
        options->only = optarg;
        return true;
    case 'i':
        options->image = optarg;
        return true;
    case 's':
        if (!strchr(optarg, '=') || options->set_count == OPTIONS_SETS_MAX)
            return false;
        options->sets[options->set_count++] = optarg;
        return true;
    case 'f':
        options->section_file = optarg;
        return true;
    case 't':
        options->report.tap = true;
        return true;
    case 'j':
        options->junit = optarg;
        return true;
    case 'w':
        options->answers = optarg;
        return true;
    case 'g':
        options->against = optarg;
        return true;
    case 'n':
        return take_jobs(optarg, &options->jobs);
    case 'p':
        options->partial = true;
        return true;
    case 'v':
        options->report.verbose = options->subject.verbose = true;
        return true;
    default:
        return false;
    }
}

bool options_read(int argc, char **argv, struct options *options)
{
    static const struct option names[] = {
        { "adapter", required_argument, NULL, 'a' },
        { "router", required_argument, NULL, 'r' },
        { "compare", required_argument, NULL, 'c' },
        { "cases", required_argument, NULL, 'd' },
        { "only", required_argument, NULL, 'o' },
        { "image", required_argument, NULL, 'i' },
        { "set", required_argument, NULL, 's' },
        { "section", required_argument, NULL, 'f' },
        { "tap", no_argument, NULL, 't' },
        { "junit", required_argument, NULL, 'j' },
        { "answers", required_argument, NULL, 'w' },
        { "against", required_argument, NULL, 'g' },
        { "jobs", required_argument, NULL, 'n' },
        { "partial", no_argument, NULL, 'p' },
        { "verbose", no_argument, NULL, 'v' },
        { NULL, 0, NULL, 0 },
    };
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (!take_option(options, option, argv))
            return false;
    }
    int ways = (options->subject.adapter != NULL) + (options->subject.router_url != NULL) +
               (options->compare_a != NULL);
    return optind == argc && ways == 1;
}
