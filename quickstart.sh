#!/usr/bin/env bash
# From a fresh checkout to untrusted code in a microVM: installs what is missing, builds, makes the
# python image, starts the router with the QEMU adapter, runs one snippet, prints its output (4) on
# stdout and stops everything. Progress is on stderr.
set -euo pipefail
cd "$(dirname "$0")"

step() {
    printf '== [%3ds] %s\n' "$SECONDS" "$*" >&2
}
die() {
    [ ! -s "${log:-}" ] || tail -n 20 "$log" | sed 's/^/   /' >&2
    echo "quickstart.sh: $*" >&2
    exit 1
}

work=$(mktemp -d "${TMPDIR:-/tmp}/iii-quickstart.XXXXXX")
log=
router=
stop_all() {
    if [ -n "$router" ]; then
        kill "$router" 2>/dev/null || true
        wait "$router" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

step "packages"
./setup.sh run || die "the packages could not be installed"

step "build"
log=$work/build.log
cmake -S . -B build -DCMAKE_BUILD_TYPE=RelWithDebInfo >"$log" 2>&1 || die "cmake failed"
cmake --build build -j "$(nproc)" --target programs >"$log" 2>&1 || die "the build failed"
PATH=$PWD/build/bin:$PATH

step "router and sandbox-qemu"
cat >"$work/config.yaml" <<YAML
sandbox:
  adapter: sandbox-qemu
  runtime_dir: $work/run
  settings:
    image_allowlist: [python]
YAML
log=$work/router.log
mkfifo "$work/ready"
sandbox-router --config "$work/config.yaml" --ready-fd 3 3<>"$work/ready" 2>"$log" &
router=$!
# The router writes a line when it listens and another when the adapter is bound.
exec 4<>"$work/ready"
for wanted in listening bound; do
    while ! read -r -t 1 -u 4 line; do
        kill -0 "$router" 2>/dev/null || die "the router ended"
        [ "$SECONDS" -lt 600 ] || die "the router was not $wanted in time"
    done
    [ "${line%% *}" = "$wanted" ] || die "the router said '$line', not '$wanted'"
done

step "kernel and image (made at the first use)"
sandbox=$(iii sandbox create python) || die "no sandbox could be made"
iii sandbox stop "$sandbox" >&2 || die "the sandbox could not be stopped"

step "iii trigger sandbox::run image=python lang=python code='print(2+2)' | jq -r .stdout"
iii trigger sandbox::run image=python lang=python code='print(2+2)' | jq -r .stdout ||
    die "sandbox::run failed"

step "stopping"
