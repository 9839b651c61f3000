#!/usr/bin/env bash
# iii on a terminal: what it shows there and only there, and that neither Ctrl-C nor a signal nor a
# closed terminal leaves a sandbox, whatever is under way.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

on_terminal=$SANDBOX_BIN/../tests/on_terminal
export TERM=xterm LC_ALL=C.UTF-8
unset NO_COLOR

# The mock beside an installer that goes on when the test says so.
mkdir -p "$work/bin" "$work/cache"
cp "$SANDBOX_BIN/sandbox-mock" "$SANDBOX_BIN/sandbox-guest-agent" "$work/bin"
mkfifo "$work/pulling" "$work/unpacking"
cat >"$work/bin/mock-image-install" <<SH
#!/bin/sh
for dir; do [ -d "\$dir" ] && break; done
echo progress pulling 5242880 10485760
read -r _ <"$work/pulling"
echo progress unpacking 0
read -r _ <"$work/unpacking"
echo >"\$dir/tree"
echo done
SH
chmod +x "$work/bin/mock-image-install"
go_on() { echo >"$work/$1"; }

# shown CODE TEXT ARGUMENT...: on a terminal; what it showed is in $screen.
shown() {
    local wanted=$1 text=$2
    shift 2
    "$on_terminal" "$@" >"$work/screen" 2>"$work/err"
    is "$text: exit code" $? "$wanted"
    screen=$(cat "$work/screen" "$work/err")
}
# shellcheck disable=SC2317 # these are called through ok and eventually
{
    live() { iii trigger sandbox::list | jq length; }
    none_live() { [ "$(live)" = 0 ]; }
    one_live() { [ "$(live)" = 1 ]; }
    executing() { [ "$(iii trigger sandbox::list | jq '[.[].exec_in_flight] | add')" = 1 ]; }
    seen() { grep -q -- "$1" "$work/screen"; }
    no_machine() { [ -z "$(descendants "$(pid_of sandbox-mock)")" ]; }
}
fault() { iii trigger sandbox-mock::fault --json "$1" >/dev/null; }
slow() { fault "{\"fault\":\"slow\",\"operation\":\"$1\",\"when\":\"$2\",\"ms\":$3}"; }

write_config sandbox-mock "cache_dir: $work/cache"
sed -i "s|^  adapter:.*|&\n  command: [$work/bin/sandbox-mock]|" "$work/config.yaml"
start_router "$work/config.yaml" listening bound

# An image that is pulled: interrupted, then whole.
for command in "create python" "run python -- true"; do
    # shellcheck disable=SC2086 # words
    shown 130 "Ctrl-C while an image is pulled, $command" "of 10.0 MiB" ^C -- iii sandbox $command
    like "the bar, the bytes and the stage were shown" "$screen" \
        'pulling image  \[=+>? +\]   50 %  5\.0 MiB of 10\.0 MiB'
    ok "no sandbox is left" eventually 5 none_live
    ok "no installer is left" eventually 5 no_machine
done
"$on_terminal" -- iii sandbox create python >"$work/screen" &
terminal=$!
ok "a pull is shown" eventually 10 seen "pulling image"
go_on pulling
ok "then the unpacking" eventually 10 seen "unpacking image"
go_on unpacking
wait "$terminal"
is "then it is ready" $? 0
like "with a mark and the time" "$(cat "$work/screen")" '✓.* sandbox ready in [0-9]+\.[0-9]s'
like "the mark is green" "$(cat "$work/screen")" $'\033\\[32m✓'
like "the id is a line of its own" "$(tr -d '\r' <"$work/screen")" $'\n[0-9a-f-]{36}$'
id=$(iii trigger sandbox::list | jq -r '.[0].sandbox_id')

# Colours and control characters: only where they are wanted.
shown 1 "an error" -- iii sandbox stop 00000000-0000-4000-8000-000000000000
like "is red" "$screen" $'\033\\[31merror:'
NO_COLOR=1 shown 1 "an error without colours" -- iii sandbox stop 00000000-0000-4000-8000-000000000000
is "has no control sequence" "${screen//$'\033'/}" "$screen"
TERM=dumb shown 0 "a dumb terminal" -- sh -c 'iii sandbox stop "$(iii sandbox create python)"'
is "gets no control sequence" "${screen//$'\033'/}" "$screen"
is "a pipe gets neither marks nor colours" \
    "$(iii sandbox stop "$(iii sandbox create python 2>&1)" 2>&1 | LC_ALL=C tr -d '[:print:]\n')" ""

# What was meant.
shown 1 "an unknown function" -- iii trigger sandbox::creat
like "is told which is near" "$screen" 'hint: did you mean sandbox::create\?'
shown 1 "an unknown field" -- iii trigger sandbox::create imgae=python
like "is told which is near" "$screen" 'hint: sandbox::create has no field imgae; did you mean image\?'
shown 0 "a field of no table" -- iii trigger sandbox::list anything=1
is "is not commented on" "$(tr -d '\r' <"$work/screen" | grep hint)" ""
run_piped=$(iii trigger sandbox::creat 2>&1)
is "a pipe gets no hint" "${run_piped//hint/}" "$run_piped"

# Transfers.
head -c 8388608 /dev/urandom >"$work/file"
shown 0 "an upload" -- iii sandbox upload "$id" "$work/file" /tmp/file
like "shows a bar with the total" "$screen" 'uploading  \[[=> ]+\] +[0-9]+ %  [0-9.]+ .iB of 8\.0 MiB'
shown 0 "a download" -- iii sandbox download "$id" /tmp/file "$work/got"
like "shows a bar too" "$screen" 'downloading  \[[=> ]+\] +[0-9]+ %  [0-9.]+ .iB of 8\.0 MiB'
ok "the bytes are the same" cmp "$work/file" "$work/got"
shown 0 "a narrow terminal" 30 -- iii sandbox upload "$id" "$work/file" /tmp/file
like "has no room for a bar" "$screen" $'\033\\[Kuploading  [0-9.]+ .iB of'
ok "no line is wider than the terminal" \
    awk -v RS='\r' '/^\033\[Kuploading/ && length > 3 + 30 { exit 1 }' "$work/screen"
shown 130 "Ctrl-C in an upload" uploading ^C -- sh -c "sleep 60 | iii sandbox upload $id - /tmp/file"
ok "the old file stays" \
    test "$(iii sandbox exec "$id" -- cat /tmp/file </dev/null | cksum)" = "$(cksum <"$work/file")"
is "and no half of a new one" "$(iii sandbox exec "$id" -- sh -c 'ls -A /tmp' </dev/null)" file

# Output.
shown 0 "characters beyond ASCII" -- iii sandbox exec "$id" -- printf 'größer ✓ 漢字\n'
like "come out as they are" "$screen" 'größer ✓ 漢字'
is "in JSON too" "$(iii trigger sandbox::exec "sandbox_id=$id" 'cmd=printf ü✓漢' | jq -r .stdout)" 'ü✓漢'
is "in a name as well" "$(LC_ALL=C iii sandbox create python --name 'Größe 漢' >/dev/null &&
    LC_ALL=C iii sandbox list | grep -c 'Größe 漢')" 1
shown 0 "a terminal as input" ready "word
" -- iii sandbox exec -i "$id" -- sh -c 'echo ready; read -r word; echo "got <$word>"'
like "is read" "$screen" 'got <word>'
for one in $(iii trigger sandbox::list | jq -r '.[].sandbox_id'); do iii sandbox stop "$one" >/dev/null; done

# The end at each moment: before and after the boot, in the program, while it stops.
# ends TEXT CODE: what follows an end of the run or create that is under way.
ends() {
    is "$1: exit code" "$3" "$2"
    ok "$1: no sandbox is left" eventually 6 none_live
    ok "$1: no process is left" eventually 6 no_machine
}
moment=0
for when in before after; do
    for command in "create python" "run python -- true"; do
        slow create "$when" 600
        # shellcheck disable=SC2086 # words
        "$on_terminal" creating ^C -- iii sandbox $command >"$work/screen" 2>&1
        ends "Ctrl-C, create slow $when, $command" 130 $?
        slow create "$when" 600
        # shellcheck disable=SC2086
        "$on_terminal" creating HANGUP -- iii sandbox $command >"$work/screen" 2>&1
        ends "closed terminal, create slow $when, $command" 129 $?
        slow create "$when" 600
        # shellcheck disable=SC2086
        iii sandbox $command >/dev/null 2>&1 &
        pid=$!
        moment=$((moment + 1))
        sleep 0.0$moment # four moments of a start
        kill -TERM $pid
        wait $pid
        ends "SIGTERM, create slow $when, $command" 143 $?
    done
done
for action in ^C:130 HANGUP:129; do
    "$on_terminal" begun "${action%:*}" -- \
        iii sandbox run python -- sh -c 'trap "" INT HUP TERM; echo begun; sleep 60' >"$work/screen" 2>&1
    ends "${action%:*} in a program that ignores signals" "${action#*:}" $?
done
slow stop before 500
"$on_terminal" bye ^C -- iii sandbox run python -- echo bye >"$work/screen" 2>&1
ends "Ctrl-C while it stops" 130 $?

# An answer that nobody reads does not hold the process.
id=$(iii sandbox create python)
mkfifo "$work/full"
exec 7<>"$work/full"
iii trigger sandbox::exec "sandbox_id=$id" 'argv=["head", "-c", "500000", "/dev/zero"]' >"$work/full" &
pid=$!
ok "a long answer begins" read -r -t 30 -N 1 -u 7 line
kill -TERM $pid
wait $pid
is "SIGTERM ends it" $? 143
exec 7>&-
iii sandbox stop "$id" >/dev/null

# Nobody reads: a signal is heard all the same, and a reader that leaves ends it.
mkfifo "$work/unread"
exec 7<>"$work/unread"
iii sandbox run python -- yes >"$work/unread" 2>/dev/null &
pid=$!
ok "a program whose output nobody reads" eventually 5 executing
kill -TERM $pid
wait $pid
ends "SIGTERM while stdout is full" 143 $?
exec 7>&-
is "a reader that leaves has its line" "$(iii sandbox run python -- yes 2>/dev/null | head -n 1)" y
ends "a reader that leaves" 0 0
iii sandbox create python >/dev/full 2>"$work/err"
ends "an id that nobody gets" 1 $?
like "is told" "$(cat "$work/err")" 'cannot write to stdout: No space left on device'
iii sandbox create python 2>/dev/null | true
ends "create into a closed pipe" 0 0
finish
