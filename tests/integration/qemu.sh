#!/usr/bin/env bash
# Real microVMs: boot, exec, files, stop; kill -9 of each process; nothing left behind.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

start sandbox-qemu "default_memory_mb: 256"
first=$(iii sandbox create python)
like "a sandbox boots" "$first" '^[0-9a-f-]{36}$'

exec_in() {
    iii trigger sandbox::exec "sandbox_id=$1" "cmd=$2"
}
is "python runs in it" "$(exec_in "$first" "python3 -c 'print(6*7)'" | jq -r .stdout)" 42
like "it has a kernel of its own" "$(exec_in "$first" 'uname -r' | jq -r .stdout)" 'cloud|[0-9]'
ok "the kernel is not the host's boot" test \
    "$(exec_in "$first" 'cat /proc/sys/kernel/random/boot_id' | jq -r .stdout)" != \
    "$(cat /proc/sys/kernel/random/boot_id)"
like "uid 0 inside" "$(exec_in "$first" 'id -u' | jq -r .stdout)" '^0'
is "no interface but loopback" "$(exec_in "$first" 'ls /sys/class/net' | jq -r .stdout | tr -d '\n')" lo
is "a file is written" "$(iii trigger sandbox::fs::write "sandbox_id=$first" path=/srv/a.txt \
    parents=true content=hello | jq .bytes_written)" 5
is "and read" "$(iii trigger sandbox::fs::read "sandbox_id=$first" path=/srv/a.txt | jq -r .body)" hello

# What TCG has translated is found again only at the same address.
layout() { exec_in "$first" 'head -n 1 /proc/self/maps' | jq -r .stdout; }
if [ "$(iii trigger sandbox::adapter::info | jq -r .info.acceleration)" = tcg ]; then
    is "emulated programs lie at the same addresses each time" "$(layout)" "$(layout)"
fi

# shellcheck disable=SC2317 # called through eventually
in_flight() { iii trigger sandbox::list | jq -e '.[0].exec_in_flight == 1' >/dev/null; }

# Whatever programs do, the agent answers: their processes are counted, and half of the processor is its own.
limit=$(exec_in "$first" 'cat /sys/fs/cgroup/programs/pids.max' | jq -r .stdout)
threads=$(jq -n --arg id "$first" '{sandbox_id: $id, argv: ["python3", "-c", "
import os, threading, time
threading.stack_size(65536)
count = 0
try:
    while count < 5000:
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        count += 1
except RuntimeError as error:
    print(count, str(error), flush=True)
os._exit(0)"]}' | iii trigger sandbox::exec --json "$(cat)" | jq -r .stdout)
like "a program that starts threads without end is told no" "$threads" "can't start new thread"
ok "at the limit of the sandbox" test "$((limit - ${threads%% *}))" -le 4
# The second also wants all of the processor.
for bomb in 'b() { b | b & }; b; sleep 60' 'for i in 1 2 3 4 5 6 7 8; do while :; do :; done & done; b() { b | b & }; b; wait'; do
    iii trigger sandbox::exec "sandbox_id=$first" cmd=sh "args=$(jq -n --arg bomb "$bomb" '["-c", $bomb]')" \
        timeout_ms=4000 2>"$work/bomb" &
    call=$!
    ok "a fork bomb is under way" eventually 10 in_flight
    refused=0
    while kill -0 "$call" 2>/dev/null; do
        iii trigger sandbox::fs::stat "sandbox_id=$first" path=/ >/dev/null 2>&1 || refused=$((refused + 1))
    done
    wait "$call"
    is "each file call beside it is answered" "$refused" 0
    like "it ends at its timeout" "$(cat "$work/bomb")" '"code": "S200"'
    is "with all of its processes" "$(exec_in "$first" 'cat /sys/fs/cgroup/programs/pids.current' | jq -r '.stdout | tonumber < 5')" true
done

# The command line: output as it comes, since the program waits for an answer to its first line.
mkfifo "$work/in" "$work/seen"
iii sandbox run python --memory 256 -- python3 -c 'print("ready", flush=True); print("got", input()); exit(5)' \
    <"$work/in" >"$work/seen" &
run=$!
exec 7>"$work/in" 8<"$work/seen"
is "run shows the first line while its program waits" "$(read -r -t 120 -u 8 line && echo "$line")" ready
echo word >&7
is "and hands on what is typed" "$(read -r -t 30 -u 8 line && echo "$line")" "got word"
wait "$run"
is "with the program's exit code" $? 5
exec 7>&- 8<&-
"$SANDBOX_BIN/../tests/on_terminal" ready ^C -- \
    iii sandbox run python --memory 256 -- sh -c 'echo ready; sleep 60' >"$work/screen" 2>&1
is "Ctrl-C ends run with 130" $? 130
is "and its machine" "$(iii trigger sandbox::list | jq -r '.[].sandbox_id')" "$first"

qemu=$(pid_of qemu-system)
ok "QEMU runs" test -n "$qemu"
ok "not as root" test "$(awk '/^Uid:/ { print $2 }' "/proc/$qemu/status")" != 0
is "without new privileges" "$(awk '/^NoNewPrivs:/ { print $2 }' "/proc/$qemu/status")" 1
is "under seccomp" "$(awk '/^Seccomp:/ { print $2 }' "/proc/$qemu/status")" 2
is "without capabilities" "$(awk '/^CapEff:/ { print $2 }' "/proc/$qemu/status")" 0000000000000000

# kill -9 of the VM under an exec: a named error within 5 s, and list is right.
iii trigger sandbox::exec "sandbox_id=$first" 'cmd=sleep 60' 2>"$work/killed" &
call=$!
ok "an exec is under way" eventually 10 in_flight
began=$SECONDS
kill -9 "$qemu"
wait "$call"
is "the call fails" "$?" 1
ok "within 5 s" test $((SECONDS - began)) -le 5
like "with a named error" "$(cat "$work/killed")" '"code": "S300"'
like "that says it may have run" "$(cat "$work/killed")" '"outcome": "may_have_run"'
is "list shows no ghost" "$(iii trigger sandbox::list)" "[]"
like "a later call is told it ended" "$(exec_in "$first" true 2>&1)" '"code": "S004"'

# kill -9 of the adapter: no VM outlives it, the router restarts it.
second=$(iii sandbox create python)
adapter=$(pid_of sandbox-qemu)
machines=$(descendants "$adapter")
ok "there is a VM below the adapter" test -n "$machines"
kill -9 "$adapter"
# shellcheck disable=SC2086 # a list of pids
ok "its VMs are gone with it" eventually 5 all_gone "$adapter" $machines
is "it is bound again" "$(read -r -t 30 -u 9 line && echo "${line%% *}")" bound
like "an earlier sandbox is unknown" "$(exec_in "$second" true 2>&1)" '"code": "S002"'
is "list is empty" "$(iii trigger sandbox::list)" "[]"

# A clean stop ends everything.
third=$(iii sandbox create python)
like "it boots again" "$third" '^[0-9a-f-]{36}$'
iii trigger sandbox::exec "sandbox_id=$third" cmd=sh 'args=["-c", "echo 0 > /sys/fs/cgroup/programs/pids.max"]' >/dev/null
like "a program beyond the limit is refused by name" "$(exec_in "$third" true 2>&1)" 'all the processes it may have'
everything=$(descendants "$router_pid")
stop_router
# shellcheck disable=SC2086
ok "a clean stop leaves no process" eventually 10 all_gone $everything
is "and no socket" "$(find "$work/run" -type s 2>/dev/null)" ""

# kill -9 of the router takes adapter and VMs along.
start_router "$work/config.yaml" listening bound
fourth=$(iii sandbox create python)
like "and after a restart too" "$fourth" '^[0-9a-f-]{36}$'
everything=$(descendants "$router_pid")
kill -9 "$router_pid"
wait "$router_pid" 2>/dev/null
router_pid=
# shellcheck disable=SC2086
ok "kill -9 of the router leaves no process" eventually 10 all_gone $everything
start_router "$work/config.yaml" listening bound
is "it starts again over what was left" "$(iii trigger sandbox::list)" "[]"
finish
