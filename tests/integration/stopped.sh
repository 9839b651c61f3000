#!/usr/bin/env bash
# Router and adapter stand still for longer than a peer may be silent, as on a machine that sleeps or
# starves: nobody takes the other for lost, and the calls under way succeed.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

still_secs=17 # beyond the limit of 15 s (docs/adapter-protocol.md, section 3)

start sandbox-mock
id=$(iii trigger sandbox::create image=python | jq -r .sandbox_id)
both=("$router_pid" "$(pid_of sandbox-mock)")

# stand_still PID...: those stop in this order, and go on in it.
stand_still() {
    local calls=() answers=() i
    for i in 1 2 3; do
        iii trigger --timeout-ms 60000 sandbox::exec "sandbox_id=$id" \
            "cmd=sh -c 'echo begun >/tmp/$i; sleep 1; echo $i'" >"$work/answer.$i" 2>&1 &
        calls+=("$!")
    done
    # shellcheck disable=SC2317 # called through eventually
    all_begun() { iii trigger sandbox::exec "sandbox_id=$id" "cmd=cat /tmp/1 /tmp/2 /tmp/3" | jq -e '.exit_code == 0' >/dev/null; }
    ok "three calls are under way" eventually 20 all_begun
    for i in "$@"; do kill -STOP "$i"; done
    sleep "$still_secs" # it is the time that matters
    for i in "$@"; do kill -CONT "$i"; done
    wait "${calls[@]}"
    for i in 1 2 3; do
        answers+=("$(jq -r '.stdout' "$work/answer.$i" 2>/dev/null)")
    done
    is "which succeed" "${answers[*]}" "1 2 3"
    iii trigger sandbox::exec "sandbox_id=$id" "cmd=rm /tmp/1 /tmp/2 /tmp/3" >/dev/null
}

stand_still "${both[@]}"
stand_still "${both[1]}" "${both[0]}"
is "nobody was lost" "$(grep -cE 'router_lost|adapter_lost|silent' "$work/log")" 0
finish
