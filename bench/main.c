/* main.c - sandbox-bench: which rows, against which adapter, written where. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "calibration.h"
#include "document.h"
#include "proc.h"

static const char usage[] =
    "usage: sandbox-bench [OPTION]...\n"
    "                     "
    "[router|stream|create|burst|exec|run|files|density|worker|network|calls]...\n"
    "  --adapter PROGRAM  under test; default sandbox-qemu beside this program\n"
    "  --bare PROGRAM     the adapter that `network` is compared with; default of the build\n"
    "  --image NAME       default python\n"
    "  --router PROGRAM   in place of sandbox-router beside this program\n"
    "  --quick            few repetitions, to see that all of it runs\n"
    "  --count N          calls of `calls`; default 1000\n"
    "  --json FILE        the rows and the calibration as JSON\n"
    "  --document FILE    docs/benchmarks.md out of such a file, and nothing else\n"
    "Without a name: all but `stream`, the part of `router` about streams, and `calls`,\n"
    "which makes --count N calls through router and mock and measures nothing\n"
    "(bench/instructions.sh counts the router's instructions). Ratios are of medians of one "
    "run;\n"
    "absolute times mean little elsewhere.\n";

static const struct {
    const char *name;
    int (*run)(struct bench *bench);
    bool only_by_name;
    bool on_mock; /* needs neither the adapter under test nor a calibration */
} parts[] = {
    { "router", bench_router, false, true },  { "stream", bench_stream, true, true },
    { "create", bench_create, false, false }, { "burst", bench_burst, false, false },
    { "exec", bench_exec, false, false },     { "run", bench_run, false, false },
    { "files", bench_files, false, false },   { "density", bench_density, false, false },
    { "worker", bench_worker, false, false }, { "network", bench_network, false, false },
    { "calls", bench_calls, true, true },
};

static bool wanted(size_t part, char **names, int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], parts[part].name) == 0)
            return true;
    }
    return count == 0 && !parts[part].only_by_name;
}

static bool all_known(char **names, int count)
{
    for (int i = 0; i < count; i++) {
        bool known = false;
        for (size_t j = 0; j < ARRAY_SIZE(parts); j++)
            known = known || strcmp(names[i], parts[j].name) == 0;
        if (!known)
            return false;
    }
    return true;
}

static bool only_on_mock(char **names, int count)
{
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (wanted(i, names, count) && !parts[i].on_mock)
            return false;
    }
    return true;
}

static int run(struct bench *bench, char **names, int count)
{
    int failed = 0;
    if (!only_on_mock(names, count) && calibrate(bench) < 0)
        return 1;
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (wanted(i, names, count) && parts[i].run(bench) < 0) {
            fprintf(stderr, "sandbox-bench: %s failed\n", parts[i].name);
            failed = 1;
        }
    }
    return failed;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        { "adapter", required_argument, NULL, 'a' },
        { "image", required_argument, NULL, 'i' },
        { "json", required_argument, NULL, 'j' },
        { "router", required_argument, NULL, 'r' },
        { "count", required_argument, NULL, 'c' },
        { "quick", no_argument, NULL, 'q' },
        { "bare", required_argument, NULL, 'b' },
        { "document", required_argument, NULL, 'd' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    char router[4096], adapter[4096], mock[4096], bare[4096];
    const char *folder = proc_self_directory(), *json = NULL;
    static struct bench bench;
    int option;
    snprintf(router, sizeof(router), "%s/sandbox-router", folder ? folder : ".");
    snprintf(adapter, sizeof(adapter), "%s/sandbox-qemu", folder ? folder : ".");
    snprintf(mock, sizeof(mock), "%s/sandbox-mock", folder ? folder : ".");
    snprintf(bare, sizeof(bare), "%s/../bench-bare/bin/sandbox-qemu", folder ? folder : ".");
    bench = (struct bench){ .router_program = router,
                            .adapter = adapter,
                            .mock = mock,
                            .bare = bare,
                            .image = "python" };
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'a')
            bench.adapter = optarg;
        else if (option == 'b')
            bench.bare = optarg;
        else if (option == 'i')
            bench.image = optarg;
        else if (option == 'r')
            bench.router_program = optarg;
        else if (option == 'c')
            bench.count = strtoul(optarg, NULL, 10);
        else if (option == 'd')
            return document_write(optarg, stdout) < 0;
        else if (option == 'j')
            json = optarg;
        else if (option == 'q')
            bench.quick = true;
        else {
            fputs(usage, option == 'h' ? stdout : stderr);
            return option == 'h' ? 0 : 2;
        }
    }
    if (!all_known(argv + optind, argc - optind)) {
        fputs(usage, stderr);
        return 2;
    }
    int failed = run(&bench, argv + optind, argc - optind);
    int ret = json ? report_write_json(&bench.report, json) : 0;
    if (ret < 0)
        fprintf(stderr, "sandbox-bench: %s: %s\n", json, strerror(-ret));
    return failed || ret < 0;
}
