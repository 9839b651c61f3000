#!/usr/bin/env bash
# Installs what is missing, builds and runs all tests.
#   ./test.sh            everything, as CI does
#   ./test.sh quick      the plain build only: unit, conformance on the mock, integration
# Stages: format and shell checks; gcc: everything, real QEMU too; clang with the address and
# undefined-behaviour sanitizers: all but QEMU, and a short run of each fuzz target; clang with the
# thread sanitizer: what talks over nng.
set -euo pipefail
cd "$(dirname "$0")"

step() {
    printf '\n== [%4ds] %s\n' "$SECONDS" "$*" >&2
}
die() {
    echo "test.sh: $*" >&2
    exit 1
}

total=0
# build FOLDER TARGET CMAKE-ARGUMENT...
build() {
    local folder=$1 target=$2
    shift 2
    if ! { cmake -S . -B "$folder" "$@" && cmake --build "$folder" -j "$(nproc)" --target "$target"; } \
        >"$folder.log" 2>&1; then
        grep -E -A3 'error|Error|undefined' "$folder.log" | tail -n 40 >&2
        die "the build in $folder failed (whole log: $folder.log)"
    fi
}
# run_tests FOLDER CTEST-ARGUMENT...
run_tests() {
    local folder=$1 count
    shift
    # A noisy machine may break a deadline once; a test that fails twice is wrong.
    ctest --test-dir "$folder" --output-on-failure --no-tests=error --repeat until-pass:2 "$@" | tee "$folder.tests" ||
        die "tests failed in $folder"
    count=$(sed -n 's/.* tests failed out of \([0-9]*\)$/\1/p' "$folder.tests")
    total=$((total + count))
}

quick=false
case "${1:-}" in
"") ;;
quick) quick=true ;;
*) die "unknown argument '$1': ./test.sh [quick]" ;;
esac

step "packages"
./setup.sh

step "format, shell"
# Each version of clang-format has a taste of its own; the files are to the one's of Debian 12.
if clang-format --version | grep -q ' version 14\.'; then
    git ls-files '*.c' '*.h' | xargs -r clang-format --dry-run --Werror || die "clang-format differs"
else
    echo "not checked here: the format is clang-format 14's, this is $(clang-format --version)" >&2
fi
git ls-files '*.sh' 'adapters/*/libexec/*' .ci/run | xargs -r shellcheck -x || die "shellcheck"

step "gcc: build"
build build all -DCMAKE_BUILD_TYPE=RelWithDebInfo
step "gcc: tests"
run_tests build -j 2

if ! $quick; then
    step "clang, address and undefined, fuzz targets: build"
    CC=clang build build-asan all -DCMAKE_BUILD_TYPE=Debug -DSANDBOX_FUZZ=ON \
        -DSANDBOX_SANITIZE=address,undefined
    step "clang, address and undefined: tests, a short run of each fuzz target"
    run_tests build-asan -j 2 -LE 'vm|network'

    step "clang, thread: build"
    CC=clang build build-tsan nng-tests -DCMAKE_BUILD_TYPE=Debug -DSANDBOX_SANITIZE=thread
    step "clang, thread: tests"
    run_tests build-tsan -j 2 -L nng
fi

step "done"
echo "$total passed, 0 failed"
