#!/usr/bin/env bash
# Bulk through the disk `mailbox`: files and output of odd sizes arrive as they are, mixed with small
# ones and several at once; a guest that scribbles over it harms only its own bytes.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

start sandbox-qemu "default_memory_mb: 256"
id=$(iii sandbox create python)
other=$(iii sandbox create python)

in_guest() {
    iii sandbox exec "$@"
}
sum() {
    sha256sum | cut -d ' ' -f 1
}
# shellcheck disable=SC2016 # the guest's shell
disk=$(in_guest "$id" -- sh -c 'grep -lx mailbox /sys/class/block/*/serial' | cut -d / -f 5)
like "a machine has the disk" "$disk" '^vd[a-z]$'
# Sectors read and written by the guest.
moved() {
    in_guest "$id" -- cut -c 1- "/sys/class/block/$disk/stat" | awk '{ print $3, $7 }'
}

read -r read_before written_before <<<"$(moved)"
for size in 1 4095 4097 262143 262144 262145 $((33 * 1024 * 1024 + 7)); do
    head -c "$size" /dev/urandom >"$work/bytes"
    wanted=$(sum <"$work/bytes")
    iii sandbox upload "$id" "$work/bytes" /srv/bytes >"$work/uploaded"
    is "$size bytes go up" "$(in_guest "$id" -- sha256sum /srv/bytes | cut -d ' ' -f 1)" "$wanted"
    iii sandbox download "$id" /srv/bytes "$work/back" >"$work/downloaded"
    is "and down" "$(sum <"$work/back")" "$wanted"
    is "and out" "$(in_guest "$id" -- cat /srv/bytes | sum)" "$wanted"
    is "and in and out" "$(in_guest "$id" -- cat <"$work/bytes" | sum)" "$wanted"
done
read -r read_after written_after <<<"$(moved)"
ok "what goes up goes through the disk" test $((read_after - read_before)) -gt $((50 * 2048))
ok "and what goes down and out" test $((written_after - written_before)) -gt $((80 * 2048))

# shellcheck disable=SC2016 # the same script here and there
both='i=0; while [ $i -lt 8 ]; do head -c 1000003 /srv/bytes; echo $i; head -c 700001 /srv/bytes >&2; i=$((i + 1)); done'
in_guest "$id" -- sh -c "$both" >"$work/out" 2>"$work/err"
here=${both//\/srv/$work}
is "stdout beside stderr" "$(sum <"$work/out")" "$(sh -c "$here" 2>/dev/null | sum)"
is "stderr beside stdout" "$(sum <"$work/err")" "$(sh -c "$here" 2>&1 >/dev/null | sum)"

# shellcheck disable=SC2016 # the same script here and there
mixed='i=0; while [ $i -lt 60 ]; do echo line $i; [ $((i % 7)) -gt 0 ] || head -c 300001 /srv/bytes; i=$((i + 1)); done'
is "small lines among bulk" "$(in_guest "$id" -- sh -c "$mixed" | sum)" \
    "$(sh -c "${mixed//\/srv/$work}" | sum)"

# Pages go out as they lie in the pipe: filled whole, or not, or those of the file itself.
# shellcheck disable=SC2016 # the same script here and there
pages='for n in 4096 60007 65536 100001 512 131072; do dd bs=$n count=20 </srv/bytes 2>/dev/null; echo; done'
is "writes of whole pages and of odd sizes" "$(in_guest "$id" -- sh -c "$pages" | sum)" \
    "$(sh -c "${pages//\/srv/$work}" | sum)"
for step in 65536 77777; do
    is "pages of a file, $step bytes each time" "$(in_guest "$id" -- python3 -c "
import os
file = os.open('/srv/bytes', os.O_RDONLY)
while os.splice(file, 1, $step):
    pass
" | sum)" "$wanted"
done

transfers() {
    local number pids=()
    for number in 1 2 3; do
        iii sandbox download "$1" /srv/bytes "$work/back.$number" >/dev/null &
        pids+=($!)
        iii sandbox upload "$1" "$work/bytes" "/srv/copy.$number" >/dev/null &
        pids+=($!)
    done
    wait "${pids[@]}"
}
transfers "$id"
for number in 1 2 3; do
    is "download $number of several at once" "$(sum <"$work/back.$number")" "$wanted"
    is "upload $number of several at once" \
        "$(in_guest "$id" -- sha256sum "/srv/copy.$number" | cut -d ' ' -f 1)" "$wanted"
done

# A program of that guest writes over all of the disk while its bytes go through it.
iii sandbox upload "$other" "$work/bytes" /srv/bytes >"$work/uploaded"
# shellcheck disable=SC2016 # the guest's shell
in_guest "$id" -- sh -c 'while [ ! -e /srv/enough ]; do dd if=/dev/urandom of=/dev/'"$disk"' bs=256k count=32 conv=notrunc; done' \
    >"$work/scribbled" 2>&1 &
scribbler=$!
for _ in 1 2 3; do transfers "$id"; done
is "a guest that scribbles over it loses no byte" "$(stat -c %s "$work/back.1")" "$size"
iii sandbox download "$other" /srv/bytes "$work/back" >"$work/downloaded"
is "and harms no other one" "$(sum <"$work/back")" "$wanted"
in_guest "$id" -- touch /srv/enough
wait "$scribbler"
iii sandbox download "$id" /srv/bytes "$work/back" >"$work/downloaded"
is "nor itself for longer" "$(sum <"$work/back")" "$wanted"

finish
