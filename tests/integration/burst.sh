#!/usr/bin/env bash
# Eight creates at once, one of whose QEMUs is stopped while it starts: the other seven come up, and
# that one does as soon as it goes on.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

count=8

SANDBOX_SECTION='qemu: {pool_size: 0}' start sandbox-qemu "default_memory_mb: 128" \
    "max_concurrent_sandboxes: 32"
id=$(iii sandbox create python) # makes the template
iii trigger sandbox::stop "sandbox_id=$id" wait=true >/dev/null
adapter=$(pgrep -P "$router_pid")

# The first of the adapter's children that is a machine, not the zygote.
first_machine() { pgrep -P "$adapter" qemu-system | head -n 1 | grep .; }
ok "no machine is left of the first one" eventually 10 bash -c "! pgrep -P $adapter qemu-system"

for ((i = 0; i < count; i++)); do
    iii sandbox create python >"$work/created.$i" 2>&1 &
    creates[i]=$!
done
while ! stopped=$(first_machine); do :; done
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
finish
