#!/usr/bin/env bash
# What can be made to go wrong with sandbox-mock (docs/mock.md), as callers see it.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

fault() {
    iii trigger sandbox-mock::fault --json "$1"
}
# The router says so once for each connection.
bound() {
    read -r -t 30 -u 9 line && [ "${line%% *}" = bound ]
}
code() {
    grep -o '"code": "S[0-9]*"' | head -n 1 | tr -dc 'S0-9'
}
new_sandbox() {
    iii trigger sandbox::create image=python | jq -r .sandbox_id
}

start sandbox-mock
id=$(new_sandbox)

for wanted in S001 S002 S003 S004 S100 S101 S102 S200 S210 S211 S212 S213 S214 S215 S216 S217 S218 S219 S300 S304 S400; do
    fault '{"fault":"error","operation":"fs::ls","code":"'$wanted'","message":"made up"}' >/dev/null
    is "$wanted on demand" "$(iii trigger sandbox::fs::ls "sandbox_id=$id" path=/ 2>&1 | code)" "$wanted"
done
ok "used up: served again" iii trigger sandbox::fs::ls "sandbox_id=$id" path=/
like "a rule that is none" "$(fault '{"fault":"error","code":"S999"}' 2>&1)" 'S001.*code'
fault '{"fault":"error","operation":"exec","times":0}' >/dev/null
is "an error for ever, the first time" "$(iii trigger sandbox::exec "sandbox_id=$id" cmd=true 2>&1 | code)" S300
is "and again" "$(iii trigger sandbox::exec "sandbox_id=$id" cmd=true 2>&1 | code)" S300
fault '{"fault":"clear"}' >/dev/null
ok "cleared" iii trigger sandbox::exec "sandbox_id=$id" cmd=true

fault '{"fault":"slow","operation":"fs::stat","ms":700}' >/dev/null
before=$(date +%s%N)
ok "a slow call is served" iii trigger sandbox::fs::stat "sandbox_id=$id" path=/
ok "after its time" test $((($(date +%s%N) - before) / 1000000)) -ge 700

# The sandbox is made, its answer is not out yet, and the caller leaves: nobody would ever know of it.
# --foreground: else timeout sends SIGCONT behind its signal, which can hold the leak check at the caller's end.
sandboxes() {
    [ "$(iii trigger sandbox::list | jq length)" = "$1" ]
}
for call in 'sandbox::create image=python' 'sandbox::run image=python lang=sh code=true keep_sandbox=true'; do
    fault '{"fault":"slow","operation":"'"$(cut -d' ' -f1 <<<"${call#sandbox::}")"'","ms":20000,"when":"after"}' >/dev/null
    # shellcheck disable=SC2086
    timeout --foreground 3 iii trigger $call >/dev/null 2>&1 &
    ok "$call: made, not told" eventually 10 sandboxes 2
    wait $!
    ok "$call: gone with its caller" eventually 10 sandboxes 1
done

fault '{"fault":"silent","operation":"fs::mkdir","when":"after"}' >/dev/null
timeout --foreground 2 iii trigger sandbox::fs::mkdir "sandbox_id=$id" path=/tmp/made >/dev/null 2>&1
is "a dropped reply: the caller waits" "$?" 124
like "but the work is done" "$(iii trigger sandbox::fs::mkdir "sandbox_id=$id" path=/tmp/made 2>&1)" S213
fault '{"fault":"silent","operation":"fs::mkdir"}' >/dev/null
timeout --foreground 2 iii trigger sandbox::fs::mkdir "sandbox_id=$id" path=/tmp/other >/dev/null 2>&1
is "silence from the start: the caller waits too" "$?" 124
ok "and nothing is done" iii trigger sandbox::fs::mkdir "sandbox_id=$id" path=/tmp/other

fault '{"fault":"refuse_stop"}' >/dev/null
other=$(new_sandbox)
is "a machine that cannot be killed" "$(iii trigger sandbox::stop "sandbox_id=$other" 2>&1 | code)" S300
ok "stays listed" grep -q "$other" <(iii trigger sandbox::list)
ok "a later stop succeeds" iii trigger sandbox::stop "sandbox_id=$other"

fault '{"fault":"stderr"}' >/dev/null
ok "10 MiB on standard error hold nothing up" iii trigger sandbox::list

fault '{"fault":"disconnect","operation":"exec","when":"after"}' >/dev/null
like "a connection that breaks" "$(iii trigger sandbox::exec "sandbox_id=$id" cmd=true 2>&1)" 'S301.*may_have_run|may_have_run.*S301'
ok "comes back" bound
ok "with its sandboxes" iii trigger sandbox::exec "sandbox_id=$id" cmd=true

fault '{"fault":"garbage","operation":"exec"}' >/dev/null
like "an answer that is none" "$(iii trigger sandbox::exec "sandbox_id=$id" cmd=true 2>&1)" S301
ok "the adapter comes back after that" bound

for minor in 0 1 99; do
    fault '{"fault":"contract","minor":'$minor',"extra_keys":'"$([ $minor = 99 ] && echo true || echo false)"'}' >/dev/null
    ok "contract 1.$minor: bound" bound
    is "its version shows" "$(iii trigger sandbox::adapter::info | jq .info.contract.minor)" "$minor"
    reply=$(iii trigger sandbox::exec "sandbox_id=$id" cmd=true)
    is "truncation keys since 1.1" "$(jq 'has("stdout_truncated")' <<<"$reply")" "$([ $minor = 0 ] && echo false || echo true)"
    is "created_at since 1.2" "$(iii trigger sandbox::list | jq '.[0]|has("created_at")')" "$([ $minor = 99 ] && echo true || echo false)"
    is "an unknown key passes" "$(jq 'has("x_future")' <<<"$reply")" "$([ $minor = 99 ] && echo true || echo false)"
done
fault '{"fault":"contract","major":2}' >/dev/null
ok "another major is a mismatch" eventually 10 eval '[ "$(iii trigger sandbox::adapter::info | jq -r .status)" = mismatch ]'
is "S302" "$(iii trigger sandbox::list 2>&1 | code)" S302

# The rest needs a fresh adapter: nothing reaches this one any more.
stop_router
cat >"$work/config.yaml" <<YAML
sandbox:
  adapter: sandbox-mock
  runtime_dir: $work/run
  mock:
    faults: ['{"fault": "deterministic"}']
  settings:
    image_allowlist: [python]
YAML
start_router "$work/config.yaml" listening bound
is "deterministic ids, from the settings" "$(new_sandbox)" 00000000-0000-4000-8000-000000000001
is "one after the other" "$(new_sandbox)" 00000000-0000-4000-8000-000000000002
is "and a clock that goes with them" "$(iii trigger sandbox::list | jq -c '[.[].created_at]')" '[1700000000,1700000001]'

fault '{"fault":"die","operation":"fs::mkdir","when":"after"}' >/dev/null
like "dies when the work is done" "$(iii trigger sandbox::fs::mkdir sandbox_id=00000000-0000-4000-8000-000000000001 path=/tmp/x 2>&1)" 'S301.*may_have_run|may_have_run.*S301'
ok "is started again" bound
new_sandbox >/dev/null
fault '{"fault":"die","operation":"exec"}' >/dev/null
like "dies in the midst of a call" "$(iii trigger sandbox::exec sandbox_id=00000000-0000-4000-8000-000000000001 cmd=true 2>&1)" S301
ok "is started again" bound
is "its sandboxes are gone" "$(iii trigger sandbox::list | jq -c .)" '[]'
is "what the settings say holds again" "$(new_sandbox)" 00000000-0000-4000-8000-000000000001

# Silent for longer than the keep-alive: the router gives it up and takes it back.
fault '{"fault":"mute","ms":16000}' >/dev/null
like "deaf" "$(iii trigger sandbox::exec sandbox_id=00000000-0000-4000-8000-000000000001 cmd=true 2>&1)" 'S301.*may_have_run|may_have_run.*S301'
ok "hears again, and has its sandboxes" eventually 40 iii trigger sandbox::exec sandbox_id=00000000-0000-4000-8000-000000000001 cmd=true
stop_router

# Several from the settings, in force from the first call on.
cat >"$work/config.yaml" <<YAML
sandbox:
  adapter: sandbox-mock
  runtime_dir: $work/run
  mock:
    faults:
      - '{"fault": "contract", "minor": 1}'
      - '{"fault": "error", "operation": "create", "code": "S300", "outcome": "never_ran", "message": "no boot today"}'
      - '{"fault": "slow", "operation": "catalog::list", "ms": 600, "when": "after"}'
      - '{"fault": "refuse_stop"}'
      - '{"fault": "stderr", "bytes": 1000000}'
  settings:
    image_allowlist: [python]
YAML
start_router "$work/config.yaml" listening bound
is "from the settings: a minor" "$(iii trigger sandbox-mock::adapter::info | jq -c .contract)" '{"major":1,"minor":1}'
like "an error" "$(iii trigger sandbox::create image=python 2>&1)" 'no boot today'
id=$(new_sandbox)
before=$(date +%s%N)
ok "a slow answer" iii trigger sandbox::catalog::list
ok "after its time" test $((($(date +%s%N) - before) / 1000000)) -ge 600
is "a machine that cannot be killed" "$(iii trigger sandbox::stop "sandbox_id=$id" 2>&1 | code)" S300
ok "once" iii trigger sandbox::stop "sandbox_id=$id"
stop_router

# A machine that never boots: told at once, with what it said, and nothing is left.
cat >"$work/agent" <<'SH'
#!/bin/sh
echo "no init found" >&2
exit 3
SH
chmod +x "$work/agent"
cp "$work/config.yaml" "$work/faults.yaml"
cat >"$work/config.yaml" <<YAML
sandbox:
  adapter: sandbox-mock
  runtime_dir: $work/run
  mock: {agent: $work/agent}
  settings: {image_allowlist: [python]}
YAML
start_router "$work/config.yaml" listening bound
said=$(timeout 15 iii trigger sandbox::create image=python 2>&1)
like "a boot that fails: S300, nothing has run" "$said" 'S300.*never_ran'
like "with the end of the console" "$said" 'no init found'
said=$(timeout 15 iii trigger sandbox::run image=python lang=sh code=true 2>&1)
like "in run: the step create" "$said" 'S300.*during sandbox::run step `create`.*never_ran'
is "no sandbox is left" "$(iii trigger sandbox::list)" "[]"
stop_router
mv "$work/faults.yaml" "$work/config.yaml"

# The adapter is killed while bubblewrap starts: it goes on, and the agent finds nobody at its channel.
mkfifo "$work/go"
cat >"$work/bwrap" <<SH
#!/bin/sh
case "\$*" in
*sandbox-guest-agent*)
    echo \$\$ >"$work/bwrap.pid"
    read -r _ <"$work/go"
    ;;
esac
exec bwrap "\$@"
SH
chmod +x "$work/bwrap"
SANDBOX_SECTION="mock: {bwrap: $work/bwrap}" start sandbox-mock
timeout 30 iii trigger sandbox::create image=python >/dev/null 2>&1 &
ok "bubblewrap starts" eventually 10 test -s "$work/bwrap.pid"
kill -9 "$(pid_of sandbox-mock)"
echo go >"$work/go"
ok "nothing of the sandbox outlives its adapter" eventually 20 all_gone "$(cat "$work/bwrap.pid")"
wait $!
stop_router

# A fault that is none: the adapter does not start and says why.
for wrong in '{"fault":"nonsense"}' '{"fault":"error","code":"S999"}' '{"fault":"slow","code":"S300"}' 'no json'; do
    sed -i "/faults:/,/stderr/d" "$work/config.yaml"
    sed -i "s|^  mock:.*|  mock:\n    faults: ['$wrong']\n    # stderr|" "$work/config.yaml"
    said=$(timeout 20 sandbox-mock --config "$work/config.yaml" --router "ipc://$work/none.sock" 2>&1)
    is "$wrong in the settings: it does not start" "$?" 1
    like "and says why" "$said" 'fault'
done

finish
