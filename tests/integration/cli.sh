#!/usr/bin/env bash
# iii against router and mock: what it prints, its exit codes, signals (iii-wire 5 and 6).
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

# run CODE TEXT COMMAND...: stdout in $out, stderr in $err.
run() {
    local wanted=$1 text=$2 code
    shift 2
    "$@" >"$work/out" 2>"$work/err"
    code=$?
    out=$(cat "$work/out")
    err=$(cat "$work/err")
    is "$text: exit code" "$code" "$wanted"
}
live() { iii trigger sandbox::list | jq length; }
none_live() { [ "$(live)" = 0 ]; }
busy() { ! idle; }
idle() { [ "$(iii trigger sandbox::list | jq '.[].exec_in_flight')" = 0 ]; }

start sandbox-mock

# Usage.
run 2 "no command" iii
run 2 "an unknown command" iii triger
like "it is told what was meant" "$err" "did you mean trigger"
run 2 "no function" iii trigger
run 2 "an unknown option" iii trigger --prot 1 f
run 2 "run without a command" iii sandbox run python
run 2 "a wrong environment" iii sandbox create python -e novalue
run 2 "a program's word that is not UTF-8" iii sandbox run python -- ls $'/tmp/\xff'
like "it is named" "$err" $'word 2 behind --, /tmp/\xff: is not UTF-8'
run 2 "an option that is not UTF-8" iii sandbox create python -e $'A=\xff'
like "it is named" "$err" $'--env A=\xff: is not UTF-8'
run 2 "a path in a sandbox that is not UTF-8" iii sandbox upload x "$0" $'/tmp/\xff'
like "it is named" "$err" $'REMOTE /tmp/\xff: is not UTF-8'
run 2 "an empty address" iii sandbox list --address ''
like "it is named" "$err" '--address: wants a text that is not empty'
run 0 "help" iii sandbox run --help
run 0 "help of a function" iii trigger sandbox::fs::write -h
like "it has the fields" "$out" "content_b64"
run 1 "help of no function" iii trigger sandbox::fs::wrte -h
run 0 "help without a router" iii t sandbox::create -h --port 1
like "it says where it is from" "$err" "built-in"

# Nowhere to print to.
while read -r -a words; do
    iii "${words[@]}" >/dev/full 2>"$work/err"
    is "a full stdout: iii ${words[*]}" $? 1
    like "it is told" "$(cat "$work/err")" 'cannot write to stdout: No space left on device'
done <<'COMMANDS'
--help
version
completion bash
sandbox list
trigger sandbox::list
trigger sandbox::list -h
COMMANDS

# Local errors.
run 1 "a word without =" iii trigger sandbox::list word
like "it is quoted" "$err" '^Error: .*"word"'
run 1 "bad JSON" iii trigger sandbox::list --json '{"a":}'
like "with its position" "$err" "position 6"
echo '{"a":}' >"$work/bad.json"
run 1 "bad JSON of a file" iii trigger sandbox::list --json "@$work/bad.json"
like "with file and position" "$err" "^Error: --json @$work/bad.json is no JSON: .*position 6"
run 1 "no such file" iii trigger sandbox::list --json "@$work/none"
is "it is named" "$err" "Error: --json @$work/none: No such file or directory"
truncate -s 16M "$work/large"
run 1 "a file that no message has room for" iii trigger sandbox::list --json "@$work/large"
like "file and limit are named" "$err" "^Error: --json @$work/large: it is larger than 16711680 bytes"
run 1 "a stdin that no message has room for" iii trigger sandbox::list --json - <"$work/large"
like "the limit is named" "$err" "^Error: --json -: it is larger than 16711680 bytes"
mkfifo "$work/pipe"
run 1 "a stdin that does not end" iii trigger sandbox::list --json - --timeout-ms 300 <>"$work/pipe"
is "the time is named" "$err" "Error: --json -: it did not end within 300 ms"
run 1 "no router there" iii trigger sandbox::list --port 1
like "it is asked for" "$err" "localhost port 1.*does the router run there"

# Calls.
run 0 "a call" iii call sandbox::list
is "the result" "$out" "[]"
run 0 "over IPv6" iii trigger sandbox::list --address ::1
run 0 "over IPv6, in brackets" iii trigger sandbox::list --address '[::1]'
{
    printf '{"image":"none","lang":"shell","code":"'
    head -c 1000000 /dev/zero | tr '\0' '#'
    printf '\\necho large"}'
} >"$work/large.json"
run 0 "a payload of a file" iii trigger sandbox::run image=python --json "@$work/large.json"
is "it is all there" "$(jq -r .stdout <<<"$out")" large
run 0 "of stdin" iii trigger sandbox::run image=python --json - <"$work/large.json"
is "it is all there" "$(jq -r .stdout <<<"$out")" large
run 0 "of stdin, a pipe" iii trigger sandbox::run image=python --json @- < <(cat "$work/large.json")
is "it is all there" "$(jq -r .stdout <<<"$out")" large
run 0 "of another pipe" iii trigger sandbox::run image=python --json @<(cat "$work/large.json")
is "it is all there" "$(jq -r .stdout <<<"$out")" large
run 1 "a text that holds the same signs" iii trigger sandbox::stop --json '{"sandbox_id":"@-"}'
like "is a text" "$(sed 's/^Error: //' "$work/err" | jq -r .message)" '@-'
run 1 "an error of the adapter" iii trigger sandbox::stop sandbox_id=nonsense
is "nothing on stdout" "$out" ""
is "the envelope on stderr" "$(sed 's/^Error: //' "$work/err" | jq -r .code)" S001
run 1 "an unknown function" iii trigger no::such
is "code and message" "$(sed 's/^Error: //' "$work/err" | jq -c keys)" '["code","message"]'
run 1 "another namespace" iii trigger sandbox::list -n other
run 1 "the timeout" iii trigger sandbox::run image=python lang=sh code='sleep 9' --timeout-ms 500
like "it is named" "$err" "within 500 ms"
eventually 5 none_live

# Sandboxes.
run 0 "create" iii worker sandbox create python --name "my name" -e A=1
id=$out
like "prints the id alone" "$out" '^[0-9a-f-]{36}$'
is "and nothing else" "$err" ""
run 0 "list" iii sandbox list
like "shows it" "$out" "^SANDBOX_ID .*AGE_SECS  NAME"$'\n'"$id  python  +[0-9]+  my name$"
run 7 "exec gives the program's code" iii sandbox exec "$id" -e B=2 -- sh -c 'echo $A$B; echo e >&2; exit 7'
is "its stdout" "$out" 12
is "its stderr" "$err" e
run 127 "a missing program" iii sandbox exec "$id" -- nosuch
run 124 "a timeout" iii sandbox exec "$id" --timeout 300ms -- sh -c 'echo part; sleep 9'
is "what was there" "$out" part
like "the code" "$err" '^error: \[S200\]'
run 1 "no such sandbox" iii sandbox exec 00000000-0000-4000-8000-000000000000 -- true
like "its error" "$err" '^error: \[S002\]'

# Output as it comes, and stdin: the program waits for what is only sent after its first line was read.
mkfifo "$work/in" "$work/seen"
iii sandbox exec "$id" -- sh -c 'echo ready; read -r word; echo "got $word"; echo e >&2; exit 5' \
    <"$work/in" >"$work/seen" 2>"$work/err" &
pid=$!
exec 7>"$work/in" 8<"$work/seen"
read -r -t 30 -u 8 line
is "the first line comes while the program runs" "$line" ready
ok "the program still waits" kill -0 "$pid"
echo word >&7
read -r -t 30 -u 8 line
is "what was written to stdin came" "$line" "got word"
wait "$pid"
is "the code of a streamed program" $? 5
is "its stderr came apart" "$(cat "$work/err")" e
exec 7>&- 8<&-
run 0 "an input that is a file" iii sandbox exec "$id" -- wc -c <"$0"
is "it came whole" "${out// /}" "$(wc -c <"$0")"
run 0 "an input that is closed" iii sandbox exec "$id" --timeout 20s -- wc -c <&-
is "is empty" "${out// /}" 0
is "an output that is closed is named" \
    "$(iii sandbox exec "$id" -- echo lost 2>&1 >&- </dev/null)" \
    "error: cannot write the program's output: Bad file descriptor"
head -c 3000000 /dev/urandom >"$work/bytes"
ok "raw bytes pass both ways" \
    bash -c 'iii sandbox exec "$1" -- cat <"$2" | cmp - "$2"' - "$id" "$work/bytes"
run 1 "a reader that leaves" bash -c 'set -o pipefail; iii sandbox exec "$1" -- yes </dev/null 2>/dev/null | head -n 1' - "$id"
is "had its line" "$out" y
ok "its program is killed" eventually 5 idle
iii sandbox exec "$id" -- sleep 60 </dev/null &
pid=$!
ok "exec is under way" eventually 5 bash -c '! [ "$(iii trigger sandbox::list | jq ".[].exec_in_flight")" = 0 ]'
kill -KILL "$pid"
wait "$pid" 2>/dev/null
ok "a killed CLI leaves no program" eventually 5 idle

# Files.
head -c 3000000 /dev/urandom >"$work/file"
run 0 "upload" iii sandbox upload "$id" "$work/file" /tmp/d/file --parents --mode 0600
is "it counts" "$out" "uploaded 3000000 bytes to $id:/tmp/d/file"
run 0 "download" iii sandbox download "$id" /tmp/d/file "$work/got"
is "it counts too" "$out" "downloaded 3000000 bytes to $work/got"
ok "the bytes are the same" cmp "$work/file" "$work/got"
ok "through stdin and stdout" \
    bash -c 'iii sandbox upload "$1" - /tmp/in <"$2" >/dev/null && iii sandbox download "$1" /tmp/in - | cmp - "$2"' - "$id" "$work/file"
: >"$work/empty"
run 0 "an empty file" iii sandbox upload "$id" "$work/empty" /tmp/empty
is "has no bytes" "$out" "uploaded 0 bytes to $id:/tmp/empty"
run 1 "a file that is not there" iii sandbox download "$id" /nowhere "$work/nothing"
ok "leaves nothing" test ! -e "$work/nothing"
run 1 "a folder that is not there" iii sandbox upload "$id" "$work/file" /nowhere/x
like "says so" "$err" '^error: \[S211\]'
cp "$work/empty" "$work/"$'\xff'
run 0 "a local name that is not UTF-8" iii sandbox upload "$id" "$work/"$'\xff' /tmp/empty
run 1 "no local file" iii sandbox upload "$id" "$work/nothing" /tmp/x

# Signals.
iii sandbox exec "$id" -- sleep 60 &
pid=$!
ok "exec is under way" eventually 5 bash -c '! [ "$(iii trigger sandbox::list | jq ".[].exec_in_flight")" = 0 ]'
kill -HUP "$pid"
wait "$pid"
is "exec ends with 129" $? 129
ok "the program is killed" eventually 5 idle
mkfifo "$work/pipe"
exec 8<>"$work/pipe"
iii sandbox upload "$id" - /tmp/in <"$work/pipe" &
pid=$!
echo part >&8
ok "upload is under way" eventually 5 iii sandbox exec "$id" -- sh -c 'ls /tmp/.iii-tmp-* >/dev/null 2>&1'
kill -TERM "$pid"
wait "$pid"
is "upload ends with 143" $? 143
exec 8>&-
# A ^C ends the writer of a pipe too: both are there when upload looks, and the end is none.
mkfifo "$work/gate"
{
    cat >/dev/null <"$work/gate"
    kill -STOP "$(cat "$work/pid")"
    kill -INT "$(cat "$work/pid")"
} >"$work/pipe" &
writer=$!
iii sandbox upload "$id" - /tmp/in <"$work/pipe" &
pid=$!
echo "$pid" >"$work/pid"
ok "upload is under way again" eventually 5 iii sandbox exec "$id" -- sh -c 'ls /tmp/.iii-tmp-* >/dev/null 2>&1'
: >"$work/gate"
wait "$writer"
kill -CONT "$pid"
wait "$pid"
is "upload ends with 130" $? 130
run 0 "the old file stays" bash -c 'iii sandbox download "$1" /tmp/in - | cmp - "$2"' - "$id" "$work/file"
run 0 "stop" iii sandbox stop "$id"
is "stop says so" "$out" "stopped $id"

run 3 "run" iii sandbox run python -- sh -c 'echo hello; exit 3'
is "its output" "$out" hello
is "nothing is left" "$(live)" 0
for signal in INT:130 TERM:143; do
    iii sandbox run python -- sleep 60 &
    pid=$!
    ok "run is under way" eventually 5 bash -c '[ "$(iii trigger sandbox::list | jq ".[].exec_in_flight")" = 1 ]'
    kill "-${signal%:*}" "$pid"
    wait "$pid"
    is "run ends with ${signal#*:}" $? "${signal#*:}"
    is "no VM is left" "$(live)" 0
done

# An adapter of an older minor: no streams, the same command line.
iii trigger sandbox-mock::fault --json '{"fault": "contract", "minor": 0}' >/dev/null
is "it is bound again" "$(read -r -t 30 -u 9 line && echo "${line%% *}")" bound
is "with contract 1.0 and no features" \
    "$(iii trigger sandbox::adapter::info | jq -c '[.status, .info.contract.minor, .info.features]')" \
    '["bound",0,null]'
run 0 "create" iii sandbox create python
id=$out
run 7 "exec gives output and code at the end" \
    iii sandbox exec "$id" -- sh -c 'echo ü; echo e >&2; exit 7' </dev/null
is "its stdout" "$out" ü
is "its stderr" "$err" e
is "stdin from a pipe, binary" "$(iii sandbox exec "$id" -- cksum < <(head -c 2000000 "$work/file"))" \
    "$(head -c 2000000 "$work/file" | cksum)"
run 0 "stdin from a file" iii sandbox exec "$id" -- wc -c <"$0"
is "came whole" "${out// /}" "$(wc -c <"$0")"
run 1 "stdin that is too large" bash -c 'head -c 3000000 /dev/zero | iii sandbox exec "$1" -- wc -c' - "$id"
like "is told with the limit and the way" "$err" "larger than 2 MiB.*upload"
run 124 "a timeout" iii sandbox exec "$id" --timeout 300ms -- sh -c 'echo part; sleep 9' </dev/null
run 3 "run" iii sandbox run python -- sh -c 'echo hello; exit 3' </dev/null
is "its output" "$out" hello
iii sandbox exec "$id" -- sleep 60 </dev/null &
pid=$!
ok "exec is under way" eventually 5 busy
kill -INT "$pid"
wait "$pid"
is "a signal ends it with 130" $? 130
ok "and its program" eventually 5 idle
mkfifo "$work/endless"
exec 8<>"$work/endless"
iii sandbox exec "$id" -- cat <"$work/endless" &
pid=$!
kill -TERM "$pid"
wait "$pid"
is "a signal ends one whose stdin does not end" $? 143
exec 8>&-
mkfifo "$work/unread"
exec 8<>"$work/unread"
iii sandbox run python -- sh -c 'yes | head -c 500000' </dev/null >"$work/unread" 2>/dev/null &
pid=$!
ok "an output that nobody reads begins" read -r -t 30 -N 1 -u 8 line
kill -TERM "$pid"
wait "$pid"
is "a signal ends it" $? 143
exec 8>&-
run 0 "stop" iii sandbox stop "$id"
is "nothing is left of either" "$(live)" 0

# Completion; the shells themselves are in cli_completion.sh.
for shell in bash zsh fish; do
    run 0 "the script for $shell" iii completion "$shell"
done
ok "bash takes its script" bash -n <(iii completion bash)
finish
