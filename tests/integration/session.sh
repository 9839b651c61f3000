#!/usr/bin/env bash
# docs/session.md: a session at a terminal against router and mock, recorded, and as it must come
# out again.
#   session.sh           compares
#   session.sh --write   records
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

document=$(cd "$(dirname "$0")/../.." && pwd)/docs/session.md
on_terminal=$(cd "$SANDBOX_BIN/../tests" && pwd)/on_terminal
export TERM=dumb LC_ALL=C.UTF-8

start sandbox-mock
iii trigger sandbox-mock::fault --json '{"fault": "deterministic"}' >/dev/null
mkdir "$work/home"
cd "$work/home" || exit 1

# typed COMMAND-LINE...: each as it is typed, what the terminal shows, and the exit code if not 0.
typed() {
    local line code
    for line; do
        printf '$ %s\n' "$line"
        "$on_terminal" -- bash -c "$line" >"$work/screen"
        code=$?
        # What no two runs share: seconds.
        tr -d '\r' <"$work/screen" | sed -E 's/ in [0-9]+\.[0-9]s$/ in 0.1s/; s/  +[0-9]+  demo$/         0  demo/'
        [ "$code" -eq 0 ] || echo "[exit code $code]"
        echo
    done
}

record() {
    local id
    cat <<'MD'
# A session

The command line at a terminal, against a router with `sandbox-mock`. `[exit code N]` stands where the code was not 0.
(`tests/integration/session.sh --write` records this; as a test it compares.)

```console
MD
    typed 'iii --help' 'iii sandbox --help' 'iii sandbox exec --help' 'iii trigger sandbox::fs::write --help' \
        'iii sandbox create python --name demo'
    id=$(iii trigger sandbox::list | jq -r '.[0].sandbox_id')
    typed 'iii sandbox list' \
        "iii sandbox exec $id -- sh -c 'echo to stdout; sleep 0.3; echo to stderr >&2; exit 7'" \
        "echo 'three short words' | iii sandbox exec $id -- wc -w" \
        "iii sandbox run python -- python3 -c 'print(6 * 7)'" \
        "iii sandbox run python -- sh -c 'exit 3'" \
        "iii sandbox run python python3 -c 'print(6 * 7)'" \
        "printf 'name,size\nü,1\n' >table.csv" \
        "iii sandbox upload $id table.csv /data/table.csv --parents" \
        "iii sandbox exec $id -- cat /data/table.csv" \
        "iii sandbox download $id /data/table.csv copy.csv" \
        'cmp table.csv copy.csv && echo same' \
        "iii sandbox download $id /data/missing copy.csv" \
        "iii sandbox exec $id --timeout 500ms -- sh -c 'echo begun; sleep 60'" \
        "iii sandbox exec $id -- no-such-program" \
        'iii sandbox run pyhton -- true' \
        'iii trigger sandbox::stop sandbox_id=nonsense' \
        "iii sandbox exce $id -- true" \
        "iii sandbox stop $id" \
        "iii sandbox stop $id" \
        'iii sandbox list' \
        'iii sandbox list --port 1' | sed '$d'
    echo '```'
}

record >"$work/session.md"
if [ "${1:-}" = --write ]; then
    cp "$work/session.md" "$document"
else
    ok "the session of the documents is what comes out" diff -u "$document" "$work/session.md"
fi
cd / || exit 1
finish
