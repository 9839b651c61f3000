#!/usr/bin/env bash
# Clones of one template: each its own time, randomness and identity; and templates on disk that
# are broken.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

clones=16
with_network=4

start sandbox-qemu "default_memory_mb: 128"

# What a clone says of itself, as JSON. The guest's reading of each clock lies between two of the
# host's; several readings, for the host may be busy.
look() {
    cat <<'PYTHON'
import json, os, socket, time, uuid
def file(path):
    with open(path) as opened:
        return opened.read().strip()
ticks = [time.monotonic() for i in range(2000)]
links = [link for link in os.listdir("/sys/class/net") if link != "lo"]
print(json.dumps({
    "now": time.time(), "monotonic": ticks[-1], "backwards": ticks != sorted(ticks),
    "boot_id": file("/proc/sys/kernel/random/boot_id"), "machine_id": file("/etc/machine-id"),
    "hostname": socket.gethostname(), "urandom": open("/dev/urandom", "rb").read(16).hex(),
    "getrandom": os.urandom(16).hex(), "uuid4": str(uuid.uuid4()),
    "mac": [file("/sys/class/net/" + link + "/address") for link in links]}))
PYTHON
}

# ask ID: the clone's JSON with what the host's clock said before and after.
ask() {
    local before after said
    before=$(date +%s.%N)
    said=$(jq -n --arg id "$1" --arg code "$(look)" \
        '{sandbox_id: $id, argv: ["python3", "-c", $code]}' |
        iii trigger sandbox::exec --json "$(cat)" | jq -r .stdout)
    after=$(date +%s.%N)
    jq -c --argjson before "$before" --argjson after "$after" \
        '. + {before: $before, after: $after}' <<<"$said"
}

# The first makes the template, or finds it. All stay until the end.
for ((i = 0; i < clones; i++)); do
    network=false
    [ "$i" -ge "$with_network" ] || network=true
    id=$(iii trigger sandbox::create image=python "network=$network" | jq -r .sandbox_id)
    for _ in 1 2; do ask "$id"; done
done >"$work/clones"

all() { jq -se "$1" "$work/clones" >/dev/null; }
is "each clone answers" "$(jq -s length "$work/clones")" $((2 * clones))
ok "wall clock within 100 ms of the host's" all \
    'all(.[]; .now > .before - 0.1 and .now < .after + 0.1)'
ok "the monotonic clock never goes back" all 'all(.[]; .backwards | not)'
ok "nor between two programs, and it runs as fast as the host's" all \
    '[range(0; length; 2) as $i | [.[$i], .[$i + 1]]] | all(.[];
        (.[1].monotonic - .[0].monotonic) as $passed | $passed > 0 and
        $passed < .[1].after - .[0].before + 0.1)'
for key in boot_id machine_id hostname; do
    is "$key is each clone's own" \
        "$(jq -s "map(.$key | select(length > 0)) | unique | length" "$work/clones")" "$clones"
done
for key in urandom getrandom uuid4; do
    is "$key never comes twice" \
        "$(jq -s "map(.$key) | unique | length" "$work/clones")" $((2 * clones))
done
is "MACs are each clone's own" \
    "$(jq -s 'map(.mac[]) | unique | length' "$work/clones")" "$with_network"
# The adapter's own lines; the router quotes them.
log_text() { tr -d "\\\\" <"$work/log"; }
ways() { log_text | sed -n 's/.*event=vm_up.* way="\([a-z]*\)".*/\1/p' | sort -u | tr '\n' ' '; }
like "all of them were clones" "$(ways)" '^clone pool |^clone |^pool $'

# A byte of each template is changed on disk; the adapter starts anew and has none in memory.
folder=${SANDBOX_TEST_CACHE:-/var/cache/iii-sandbox}/templates
keys=$(log_text | sed -n 's/.*event=template_\(kept\|found\).* key="\([0-9a-f]*\)".*/\2/p' | sort -u)
# shellcheck disable=SC2317 # called through eventually
all_kept() { local key; for key in $keys; do [ -s "$folder/$key" ] || return 1; done; }
ok "templates are kept on disk" test -n "$keys"
ok "whole" eventually 60 all_kept
for key in $keys; do
    size=$(stat -c %s "$folder/$key")
    printf 'x' | dd of="$folder/$key" bs=1 seek=$((size / 2)) conv=notrunc status=none
done
stop_router
: >"$work/log"
start_router "$work/config.yaml" listening bound
id=$(iii sandbox create python)
like "a sandbox comes up all the same" "$id" '^[0-9a-f-]{36}$'
is "and works" "$(iii trigger sandbox::exec "sandbox_id=$id" "cmd=echo whole" | jq -r .stdout)" whole
like "the log says why the template was not used" "$(log_text)" \
    'event=template_refused .*why="its digest is another"'
finish
