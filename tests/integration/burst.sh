#!/usr/bin/env bash
# Eight creates at once, one of whose QEMUs is stopped while it starts: the other seven come up, and
# that one does as soon as it goes on. Who is there may be used while others are waited for, and has
# lost no time; and an adapter that is killed in the midst of it leaves nothing.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

count=8

SANDBOX_SECTION='qemu: {pool_size: 0}' start sandbox-qemu "default_memory_mb: 128" \
    "max_concurrent_sandboxes: 32"
id=$(iii sandbox create python) # makes the template
iii trigger sandbox::stop "sandbox_id=$id" wait=true >/dev/null
adapter=$(pgrep -P "$router_pid")

# STOPPED: the first of the adapter's children that is a machine, not the zygote. Nothing is started
# for it, for it has 40 ms until that machine is ready.
stopped=
find_machine() {
    local pid name children
    read -r -a children <"/proc/$adapter/task/$adapter/children"
    for pid in "${children[@]}"; do
        read -r name 2>/dev/null <"/proc/$pid/comm" || continue
        [[ $name != qemu-system* ]] || stopped=$pid
        [ -z "$stopped" ] || return 0
    done
    return 1
}
ok "no machine is left of the first one" eventually 10 bash -c "! pgrep -P $adapter qemu-system"

for ((i = 0; i < count; i++)); do
    iii sandbox create python >"$work/created.$i" 2>&1 &
    creates[i]=$!
done
while ! find_machine; do :; done
kill -STOP "$stopped"

# shellcheck disable=SC2317 # called through eventually
ready() { [ "$(grep -lE '^[0-9a-f-]{36}$' "$work"/created.* | wc -l)" -ge "$1" ]; }
ok "seven are there" eventually 30 ready $((count - 1))
ok "the eighth is not, for its QEMU is stopped" bash -c \
    "[ \"\$(grep -lE '^[0-9a-f-]{36}\$' $work/created.* | wc -l)\" -eq $((count - 1)) ]"
kill -CONT "$stopped"
ok "it comes when it goes on" eventually 30 ready "$count"
for create in "${creates[@]}"; do wait "$create"; done

# What a guest has put off until the others were there is done before anything of a caller's.
tell='cat /etc/machine-id /etc/hostname; od -An -N16 -tx1 /dev/urandom'
for ((i = 0; i < count; i++)); do
    jq -n --arg id "$(cat "$work/created.$i")" --arg code "$tell" \
        '{sandbox_id: $id, argv: ["sh", "-c", $code]}' |
        iii trigger sandbox::exec --json "$(cat)" | jq -r .stdout
done >"$work/told"
is "each has a name, an id and randomness of its own" "$(grep . "$work/told" | sort -u | wc -l)" \
    $((3 * count))
for ((i = 0; i < count; i++)); do
    iii trigger sandbox::stop "sandbox_id=$(cat "$work/created.$i")" wait=true >/dev/null
done

# A machine that is ready stands still until no create waits, or until somebody wants it.
use() {
    local id before
    id=$(iii sandbox create python)
    before=$(date +%s.%N)
    iii sandbox exec "$id" -- sh -c 'sleep 0.2; date +%s.%N; sleep 0.2' >"$work/clock.$1"
    printf '%s %s %s\n' "$before" "$(cat "$work/clock.$1")" "$(date +%s.%N)" >"$work/used.$1"
}
for ((i = 0; i < count; i++)); do
    use "$i" &
    creates[i]=$!
done
for create in "${creates[@]}"; do wait "$create"; done
is "each is used as soon as it is there, and knows what time it is" "$(cat "$work"/used.* |
    awk 'NF == 3 && $2 >= $1 + 0.1 && $2 <= $3 - 0.1' | wc -l)" "$count"

for ((i = 0; i < count; i++)); do
    iii sandbox create python >/dev/null 2>&1 &
    creates[i]=$!
done
while machines=$(pgrep -P "$adapter" qemu-system)
    [ "$(wc -w <<<"$machines")" -lt $((count + 3)) ]; do :; done
kill -KILL "$adapter"
ok "no machine outlives its adapter" eventually 10 bash -c \
    "! ps -o stat= -p ${machines//$'\n'/,} | grep -qv '^Z'"
for create in "${creates[@]}"; do wait "$create" || true; done
finish
