# lib.sh - what the integration tests share. Each test sources it, in a folder and a network namespace
# of its own, so that the default port is free and nothing of the machine is touched.
#
#   start ADAPTER [SETTINGS-LINE...]   router and adapter, until the adapter is bound
#   start_router_only CONFIG           until the router listens
#   ok TEXT COMMAND...                 one check; the test goes on after a failure
#   is TEXT GOT WANTED
#   eventually SECONDS COMMAND...      for states that no event tells a caller of
#   finish                             stops all and ends with the result
# shellcheck shell=bash

set -uo pipefail

: "${SANDBOX_BIN:?set SANDBOX_BIN to the folder of the programs}"

# A private loopback: the shipped default ports can be used as they are.
if [ -z "${SANDBOX_TEST_NAMESPACE:-}" ]; then
    export SANDBOX_TEST_NAMESPACE=1
    flags=(-n)
    [ "$(id -u)" -eq 0 ] || flags=(-rn)
    exec unshare "${flags[@]}" -- bash "$0" "$@"
fi
ip link set lo up 2>/dev/null || {
    echo "integration: no loopback in the namespace" >&2
    exit 1
}

PATH=$SANDBOX_BIN:$PATH
work=$(mktemp -d /tmp/iii-integration.XXXXXX)
checks=0
failures=0
router_pid=

ok() {
    local text=$1
    shift
    checks=$((checks + 1))
    if "$@"; then
        echo "ok $checks - $text"
    else
        echo "not ok $checks - $text"
        failures=$((failures + 1))
    fi
}

is() {
    checks=$((checks + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $checks - $1"
    else
        printf 'not ok %d - %s\n#   got:    %q\n#   wanted: %q\n' "$checks" "$1" "$2" "$3"
        failures=$((failures + 1))
    fi
}

# like TEXT GOT REGEX
like() {
    checks=$((checks + 1))
    if [[ $2 =~ $3 ]]; then
        echo "ok $checks - $1"
    else
        printf 'not ok %d - %s\n#   got:     %s\n#   matches: %s\n' "$checks" "$1" "$2" "$3"
        failures=$((failures + 1))
    fi
}

eventually() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.1
    done
}

# write_config ADAPTER [SETTINGS-LINE...]; SANDBOX_SECTION is a line below `sandbox`, such as `qemu: {…}`
write_config() {
    local adapter=$1
    shift
    {
        echo "sandbox:"
        echo "  adapter: $adapter"
        echo "  runtime_dir: $work/run"
        echo "${SANDBOX_SECTION:+  $SANDBOX_SECTION}"
        echo "  settings:"
        echo "    image_allowlist: [python]"
        printf '    %s\n' "$@"
    } >"$work/config.yaml"
}

# start_router CONFIG WORD...: waits for each ready line in turn.
start_router() {
    local config=$1 word line
    shift
    rm -f "$work/ready"
    mkfifo "$work/ready"
    exec 9<>"$work/ready"
    sandbox-router --config "$config" --ready-fd 9 2>>"$work/log" &
    router_pid=$!
    for word in "$@"; do
        if ! read -r -t 60 -u 9 line || [ "${line%% *}" != "$word" ]; then
            echo "Bail out! the router is not $word: '${line:-}'"
            failures=$((failures + 1))
            finish
        fi
    done
}

start() {
    write_config "$@"
    start_router "$work/config.yaml" listening bound
}

stop_router() {
    [ -n "$router_pid" ] || return 0
    kill "$router_pid" 2>/dev/null
    wait "$router_pid" 2>/dev/null
    router_pid=
}

# The pids below PID, itself left out.
descendants() {
    local child
    for child in $(ps -o pid= --sort=start_time --ppid "$1"); do
        echo "$child"
        descendants "$child"
    done
}

# pid_of NAME: the one process of that name below the router.
pid_of() {
    local pid
    for pid in $(descendants "$router_pid"); do
        [[ $(ps -o comm= -p "$pid") = "$1"* ]] && echo "$pid"
    done | head -n 1
}

all_gone() {
    local pid
    for pid in "$@"; do
        [ ! -d "/proc/$pid" ] || grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null || return 1
    done
}

finish() {
    local code=0
    stop_router
    if [ "$failures" -gt 0 ]; then
        code=1
        [ ! -s "$work/log" ] || { echo "# end of the log:"; tail -n 40 "$work/log" | sed 's/^/# /'; }
    fi
    rm -rf "$work"
    echo "1..$checks"
    echo "$((checks - failures)) passed, $failures failed"
    exit "$code"
}
trap 'failures=$((failures + 1)); finish' INT TERM
