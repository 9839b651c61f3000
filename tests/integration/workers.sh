#!/usr/bin/env bash
# workers.sh ADAPTER ROUNDS [PART...]: worker VMs under kill -9 (docs/workers.md). Never are two VMs
# on one state, never is a count lost, never is anything left behind. Parts, all by default:
#   many                 32 starts of one state at once
#   adapter, vm, router  killed at moments spread over prepare, start and stop, ROUNDS times each
#   helper               killed at its work, ROUNDS times for prepare and start
#   power                the VM is killed under writes, ROUNDS times; only where the state is a disk
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

adapter=$1
rounds=$2
shift 2
[ $# -gt 0 ] || set -- many adapter vm router helper power
parts=" $* "
sources=$work/sources
key=$work/state/$adapter/c
adapter_pid=

# The source is changed at will, so it is a copy.
mkdir "$sources"
cp -r "$(dirname "$0")/../conformance/sources/counter" "$sources/counter"
cat >"$work/config.yaml" <<END
sandbox:
  adapter: $adapter
  managed: false
  runtime_dir: $work/run
  settings:
    image_allowlist: [python]
    state_dir: $work/state
    allowed_roots: [$sources]
END

worker() {
    iii trigger --timeout-ms 300000 "sandbox::worker::$1" --json "$2" 2>&1
}
source_json() {
    echo "\"source\":{\"host_path\":\"$sources/counter\"},\"state_key\":\"c\""
}
start_worker() {
    worker start "{$(source_json),\"instance\":\"$1\",\"auth_token\":\"secret\"}"
}
prepare() {
    worker prepare "{$(source_json)}"
}
stop_worker() {
    worker stop "{\"vm_id\":\"$vm\",\"instance\":\"$1\",\"auth_token\":\"secret\"}"
}
logs() {
    worker logs "{\"vm_id\":\"$vm\",\"auth_token\":\"secret\"}" | jq -r .text
}
vm_of() {
    jq -r '.vm_id // empty' 2>/dev/null
}
code_of() {
    grep -o '"code": "[A-Za-z0-9_]*"' | head -n 1 | cut -d '"' -f 4
}

# shellcheck disable=SC2317 # called through eventually
bound() {
    [ "$(iii trigger sandbox::adapter::info 2>/dev/null | jq -r .status)" = bound ]
}
run_router() {
    start_router "$work/config.yaml" listening
}
run_adapter() {
    "$adapter" --config "$work/config.yaml" 2>>"$work/log" &
    adapter_pid=$!
    eventually 30 bound || ok "the adapter is bound" false
}

# Pids of the processes that hold the state's lock.
holders() {
    find /proc/[0-9]*/fd -lname "$key/lock" 2>/dev/null | cut -d / -f 3 | sort -u
}
# shellcheck disable=SC2317 # called through eventually
unlocked() {
    [ -z "$(holders)" ]
}
# The VM's process: what holds the lock and is neither adapter nor helper. Under the mock it is the
# first process of the sandbox.
vm_pid() {
    local pid
    for pid in $(holders); do
        case $(cat "/proc/$pid/comm" 2>/dev/null) in
        qemu* | sandbox-guest*) echo "$pid" ;;
        esac
    done | head -n 1
}
machines() {
    local pid count=0
    for pid in $(holders); do
        case $(cat "/proc/$pid/comm" 2>/dev/null) in qemu* | sandbox-guest*) count=$((count + 1)) ;; esac
    done
    echo "$count"
}

# The first and the last number that a run has printed so far.
first_count() {
    logs | sed -n 's/^count //p' | head -n 1
}
last_count() {
    logs | sed -n 's/^count //p' | tail -n 1
}
# shellcheck disable=SC2317 # called through eventually
counts() {
    [ -n "$(first_count)" ]
}

last=0
helpers=0
# after_kill TEXT: the worker starts again and goes on counting behind what was seen before; one
# that was not killed has never stopped.
after_kill() {
    local answer first before=$vm
    answer=$(start_worker i)
    vm=$(echo "$answer" | vm_of)
    if [ -z "$vm" ] || ! eventually 60 counts; then
        is "$1: starts again" "$answer" "a vm_id, and counts"
        return
    fi
    first=$(first_count)
    [ "$vm" != "$before" ] || first=$(last_count)
    [ "$first" -gt "$last" ] || [ "$vm$first" = "$before$last" ] ||
        is "$1: counts on" "$first" "more than $last"
    last=$(last_count)
    [ "$(machines)" -eq 1 ] || is "$1: VMs on the state" "$(machines)" 1
}

# Another manifest each time, so that each prepare has something to do.
serial=0
touch_manifest() {
    serial=$((serial + 1))
    sed -i '/^# serial/d' "$sources/counter/iii.worker.yaml"
    echo "# serial $serial" >>"$sources/counter/iii.worker.yaml"
}

stop_counting() {
    [ -n "$vm" ] || return 0
    eventually 60 counts
    last=$(last_count)
    stop_worker i >/dev/null
    vm=
}

# operation NAME: what is killed under way; the state before it is right for it.
before() {
    case $1 in
    prepare)
        stop_counting
        touch_manifest
        ;;
    start)
        stop_counting
        ;;
    stop)
        [ -n "$vm" ] || vm=$(start_worker i | vm_of)
        eventually 60 counts
        last=$(last_count)
        ;;
    esac
}
operation() {
    case $1 in
    prepare) prepare ;;
    start) start_worker i ;;
    stop) stop_worker i ;;
    esac
}

# shellcheck disable=SC2317 # called through eventually
nothing_live() {
    [ "$(worker list '{}' | jq '[.[] | select(.state != "exited")] | length')" = 0 ]
}

declare -A took_ms
measure() {
    local began
    before "$1"
    began=$(date +%s%N)
    answer=$(operation "$1")
    took_ms[$1]=$((($(date +%s%N) - began) / 1000000))
    [ "$1" != start ] || vm=$(echo "$answer" | vm_of)
    [ "$1" != stop ] || vm=
    ok "$1 works, in ${took_ms[$1]} ms" test -n "$answer" -a -z "$(echo "$answer" | code_of)"
}

# victim_dies NAME
victim_dies() {
    case $1 in
    adapter)
        kill -9 "$adapter_pid"
        wait "$adapter_pid" 2>/dev/null
        ok "$2: nothing runs on the state" eventually 15 unlocked
        ;;
    vm)
        local pid
        pid=$(vm_pid)
        if [ -n "$pid" ]; then
            kill -9 "$pid" 2>/dev/null
            eventually 10 nothing_live || is "$2: the VM's end is noticed" no yes
        fi
        ;;
    helper)
        [ -z "$helper_pid" ] || ! kill -9 "$helper_pid" 2>/dev/null || helpers=$((helpers + 1))
        ;;
    router)
        kill -9 "$router_pid"
        wait "$router_pid" 2>/dev/null
        ;;
    esac
}
victim_returns() {
    case $1 in
    adapter)
        run_adapter
        is "$2: nothing is live after the restart" "$(worker list '{}' | jq length)" 0
        vm=
        ;;
    router)
        run_router
        eventually 30 bound || ok "$2: the adapter is bound again" false
        ;;
    esac
}

# find_helper STEP: its process, in helper_pid.
helper_pid=
find_helper() {
    local pid words
    helper_pid=
    for pid in $(<"/proc/$adapter_pid/task/$adapter_pid/children"); do
        mapfile -d '' words 2>/dev/null <"/proc/$pid/cmdline"
        [[ ${words[1]:-} = */worker-files && ${words[2]:-} = "$1" ]] && helper_pid=$pid
    done
    [ -n "$helper_pid" ]
}
# await_helper OPERATION ROUND CALL: until the helper of one step works, another one each round, or the
# call is over.
await_helper() {
    local steps=(source next publish)
    [ "$1" = prepare ] || steps=(source)
    until find_helper "${steps[$2 % ${#steps[@]}]}" 2>/dev/null || ! kill -0 "$3" 2>/dev/null; do :; done
}

# kill_under VICTIM OPERATION ROUND: the moment is that part of the operation's duration.
kill_under() {
    local text="$1 killed under $2, round $3" call
    before "$2"
    operation "$2" >"$work/answer" &
    call=$!
    [ "$1" != helper ] || await_helper "$2" "$3" "$call"
    [ "$1" = helper ] || sleep "$(printf '%d.%03d' $((took_ms[$2] * $3 / (rounds + 1) / 1000)) $((took_ms[$2] * $3 / (rounds + 1) % 1000)))"
    victim_dies "$1" "$text"
    wait "$call"
    case $(code_of <"$work/answer") in
    '' | S300 | S301) ;;
    *) is "$text: answered" "$(cat "$work/answer")" "success, S300 or S301" ;;
    esac
    victim_returns "$1" "$text"
    after_kill "$text"
}

# Of many starts at once one boots; the others are told which.
many() {
    local i starts instance
    stop_counting
    for i in $(seq 32); do
        start_worker "many-$i" >"$work/start.$i" &
        starts[i]=$!
    done
    wait "${starts[@]}"
    is "32 starts at once have one VM" \
        "$(cat "$work"/start.* | grep -o '"vm_id": "[^"]*"' | sort | uniq -c | awk '{ print $1 }')" 32
    is "one of them got it" "$(grep -L '"code"' "$work"/start.* | wc -l)" 1
    is "the others S502" "$(grep -l '"code": "S502"' "$work"/start.* | wc -l)" 31
    is "one machine runs" "$(machines)" 1
    vm=$(worker list '{}' | jq -r '.[0].vm_id')
    instance=$(worker list '{}' | jq -r '.[0].instance')
    ok "it counts" eventually 60 counts
    last=$(last_count)
    like "it is stopped" "$(stop_worker "$instance")" "\"stopped\": true"
    vm=
}

# kill_all VICTIM; a stop has no helper.
kill_all() {
    local operation failed round
    for operation in prepare start stop; do
        [ "$1 $operation" != "helper stop" ] || continue
        failed=$failures
        for round in $(seq "$rounds"); do
            kill_under "$1" "$operation" "$round"
        done
        is "$1 killed under $operation, $rounds times" "$((failures - failed))" 0
    done
}

# Power is cut under writes: the disk's journal makes it whole, and what was synced is there.
power() {
    local round kept
    for round in $(seq "$rounds"); do
        vm=$(start_worker i | vm_of)
        eventually 60 counts
        last=$(last_count)
        kill -9 "$(vm_pid)"
        ok "round $round: the VM is gone" eventually 10 unlocked
        cp --sparse=always "$key/state/data" "$work/disk"
        e2fsck -fp "$work/disk" >"$work/fsck" 2>&1
        like "round $round: the journal is enough" "$?" '^[01]$'
        e2fsck -fn "$work/disk" >"$work/fsck" 2>&1
        is "round $round: the disk is clean" "$?" 0
        kept=$(debugfs -R 'cat /upper/var/count' "$work/disk" 2>/dev/null)
        ok "round $round: what was synced is there ($kept, $last were seen)" test "$kept" -ge "$last"
        worker list '{}' | jq -e '.[0].state == "exited"' >/dev/null || is "round $round: exited" no yes
        rm "$work/disk"
    done
}

run_router
run_adapter
vm=

measure prepare
measure start
measure stop
for part in $parts; do
    case $part in
    many) many ;;
    adapter | vm | router) kill_all "$part" ;;
    helper)
        kill_all helper
        ok "helpers were met at work ($helpers)" test "$helpers" -gt 0
        ;;
    power) [ "$adapter" != sandbox-qemu ] || power ;;
    *) ok "there is a part $part" false ;;
    esac
done
stop_counting
prepare >/dev/null
is "nothing is left but what belongs there" "$(find "$key" -maxdepth 1 -mindepth 1 -printf '%f\n' | sort | tr '\n' ' ')" \
    "lock source state "
ok "nobody holds the state" unlocked

ok "no token in the log" test -z "$(grep -o 'secret' "$work/log" | head -n 1)"
kill "$adapter_pid"
wait "$adapter_pid"
is "the adapter ends in order" "$?" 0
finish
