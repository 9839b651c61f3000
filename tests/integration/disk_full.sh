#!/usr/bin/env bash
# The disk of this machine is full while a guest writes: its program is told, and the sandbox can be
# used and stopped. The disk is a small tmpfs in a mount namespace of the test's own.
# shellcheck source-path=SCRIPTDIR source=lib.sh
if [ "$(id -u)" -ne 0 ]; then
    echo "1..0 # skipped: only root mounts"
    exit 77
fi
if [ -z "${DISK_FULL_NAMESPACE:-}" ]; then
    export DISK_FULL_NAMESPACE=1
    exec unshare -m -- bash "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"

scratch=${SANDBOX_TEST_CACHE:-/var/cache/iii-sandbox}/scratch
mkdir -p "$scratch"
mount -t tmpfs -o size=16m tmpfs "$scratch" || exit 1
start sandbox-qemu "default_memory_mb: 128" "max_disk_mb: 256" "disk_promise_percent: 100000"

exec_in() {
    iii trigger sandbox::exec "sandbox_id=$1" "cmd=$2" timeout_ms=60000
}
id=$(iii sandbox create python)
like "a sandbox comes up" "$id" '^[0-9a-f-]{36}$'
said=$(exec_in "$id" "sh -c 'dd if=/dev/zero of=/big bs=1M count=64 conv=fsync 2>&1'")
like "who writes too much is told" "$(jq -r .stdout <<<"$said")" 'Input/output error|No space left'
is "and has failed" "$(jq -r '.exit_code != 0 and (.timed_out | not)' <<<"$said")" true
is "the disk is full" "$(df --output=avail "$scratch" | tail -n 1 | tr -d ' ')" 0
is "other programs run" "$(exec_in "$id" 'echo alive' | jq -r .stdout)" alive
is "it is listed" "$(iii trigger sandbox::list | jq -r '.[].sandbox_id')" "$id"
ok "and is stopped" iii sandbox stop "$id"
# shellcheck disable=SC2317 # called through eventually
room() { [ "$(df --output=used "$scratch" | tail -n 1)" -lt 4096 ]; }
ok "its room is free again" eventually 20 room
second=$(iii sandbox create python)
is "for the next one" "$(exec_in "$second" 'echo alive' | jq -r .stdout)" alive
finish
