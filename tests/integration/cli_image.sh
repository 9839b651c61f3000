#!/usr/bin/env bash
# iii sandbox image: what an operator sees of the images on disk, over a mock with a cache of its own.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

on_terminal=$SANDBOX_BIN/../tests/on_terminal
export TERM=xterm LC_ALL=C.UTF-8

# run CODE TEXT ARGUMENT...: of `iii sandbox image`; stdout in $out, stderr in $err.
run() {
    local wanted=$1 text=$2 code
    shift 2
    iii sandbox image "$@" >"$work/out" 2>"$work/err"
    code=$?
    out=$(cat "$work/out")
    err=$(cat "$work/err")
    is "$text: exit code" "$code" "$wanted"
}
state() { iii sandbox image ls | awk -v name="$1" '$1 == name { print $2 }'; }
installed() { find "$work/cache/images" -name image.json; }

start sandbox-mock "cache_dir: $work/cache"

run 0 "ls of nothing" ls
like "has the catalog" "$out" $'^IMAGE +STATE +SIZE +ALLOWED +SOURCE\npython +missing +- +yes +debian:'
like "and the sum" "$out" 'total 0 B of 20\.0 GiB$'
run 1 "pull of no image" pull nosuch
like "names it" "$err" '^error: \[S100\].*nosuch'
run 0 "pull" pull python
like "says what came" "$out" '^pulled python, [0-9.]+ KiB$'
is "and nothing else" "$err" ""
is "it is ready" "$(state python)" ready
run 0 "pull again" pull python
like "finds it" "$out" '^already there: python, '
run 0 "pull anew" pull python --anew
like "does not" "$out" '^pulled python, '
"$on_terminal" -- iii sandbox image pull python --anew >"$work/screen" 2>&1
like "on a terminal the stage is shown" "$(cat "$work/screen")" 'pulling image.*unpacking image'
ok "and wiped" grep -q $'\033\\[Kpulled python' "$work/screen"

run 0 "verify" verify
like "finds nothing" "$out" '^python  ready  [0-9a-f]{64}$'
printf x | dd of="$(dirname "$(installed)")/source" conv=notrunc 2>/dev/null
run 1 "verify of a file that was changed" verify python
like "tells which" "$out" '^python  damaged: .*source'
like "ls does not call it ready" "$(state python)" '^(unchecked|damaged)$'
run 0 "its next use" pull python
is "heals it" "$(state python)" ready

id=$(iii sandbox create python)
run 0 "ls while it is used" ls
iii sandbox stop "$id" >/dev/null
run 0 "rm" rm python
like "says what went" "$out" $'^removed [0-9a-f]{64}\nfreed [0-9.]+ KiB$'
is "it is gone" "$(installed)" ""
run 1 "rm again" rm python
like "says that it is not there" "$err" 'not on disk'

# By its digest, and by what there is room for.
iii sandbox image pull python >/dev/null
digest=$(basename "$(dirname "$(installed)")")
run 0 "prune within the limit" prune
is "removes nothing" "$out" "freed 0 B"
run 2 "prune of a wrong number" prune --max-mb x
run 0 "rm by digest" rm "$digest"
is "it is gone" "$(installed)" ""

run 2 "a wrong command" pul python
like "is told what was meant" "$err" 'did you mean pull'
run 1 "without a router" ls --port 1
like "says so" "$err" 'does the router run there'
finish
