#!/usr/bin/env bash
# The published npm clients, unmodified, against router and mock. Skips only when npm cannot install
# them (exit 77).
# The packages are installed before lib.sh moves into a network namespace of its own.
set -u
here=$(cd "$(dirname "$0")" && pwd)
modules=${SANDBOX_SDK_MODULES:-$here}
if [ -z "${SANDBOX_TEST_NAMESPACE:-}" ]; then
    command -v npm >/dev/null || {
        echo "1..0 # SKIP no npm here"
        exit 77
    }
    mkdir -p "$modules"
    [ "$modules" = "$here" ] || cp "$here/package.json" "$here"/*.mjs "$modules/"
    (cd "$modules" && npm install --no-audit --no-fund --no-package-lock --ignore-scripts --silent \
        >npm.log 2>&1) || {
        echo "1..0 # SKIP npm could not install iii-sdk: $(tail -n 1 "$modules/npm.log")"
        exit 77
    }
fi
# shellcheck source-path=SCRIPTDIR source=../integration/lib.sh
. "$here/../integration/lib.sh"

start sandbox-mock

# run_version VERSION: the scenario, restarting the router when it asks for it.
run_version() {
    local version=$1 line began=0
    coproc SCENARIO { cd "$modules" && timeout 170 node scenario.mjs ws://localhost:49134 "$version" 2>&1; }
    local pid=$SCENARIO_PID
    exec 7<&"${SCENARIO[0]}" 8>&"${SCENARIO[1]}"
    while read -r -u 7 line; do
        case $line in
        RESTART)
            stop_router
            start_router "$work/config.yaml" listening bound
            echo go >&8
            ;;
        SHUTDOWN) began=$SECONDS ;;
        ok*) checks=$((checks + 1)) && echo "ok $checks - ${line#ok - }" ;;
        "not ok"*)
            checks=$((checks + 1))
            failures=$((failures + 1))
            echo "not ok $checks - ${line#not ok - }"
            ;;
        *) echo "# $line" ;;
        esac
    done
    exec 7<&- 8>&-
    wait "$pid"
    is "$version: the scenario ends well" "$?" 0
    ok "$version: shutdown() ends the process in under 2 s" \
        test "$began" -gt 0 -a $((SECONDS - began)) -le 2
}

versions=$(sed -n 's/.*"iii-sdk-\([0-9.]*\)".*/\1/p' "$here/package.json")
for version in ${SANDBOX_SDK_VERSIONS:-$versions}; do
    run_version "$version"
done
# shellcheck disable=SC2317 # called through ok
reattach() { (cd "$modules" && timeout 120 node reattach.mjs ws://127.0.0.1:49134 0.22.1); }
ok "0.22.1: a broken connection is taken up again, a slow reader gets all" reattach
finish
