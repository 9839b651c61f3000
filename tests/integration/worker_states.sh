#!/usr/bin/env bash
# worker_states.sh ADAPTER: what lasts of workers where it is not as they left it (docs/workers.md):
# a source that has changed, two adapters on one folder of states, records and disks that are broken,
# no room, no right to write, strange names; in real machines, scripts that take all there is.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

adapter=$1
sources=$work/sources
states=$work/state/$adapter
declare -A adapter_pids router_pids

mkdir "$sources"
cp -r "$(dirname "$0")/../conformance/sources/counter" "$sources/counter"

# Each has a router of its own. run NAME PORT STATE_DIR [COMMAND...]: COMMAND starts the adapter.
# shellcheck disable=SC2317 # called through eventually
bound() {
    [ "$(iii trigger --port "$1" sandbox::adapter::info 2>/dev/null | jq -r .status)" = bound ]
}
run() {
    local name=$1 port=$2 state_dir=$3
    shift 3
    cat >"$work/$name.yaml" <<END
sandbox:
  adapter: $adapter
  managed: false
  listen: ["127.0.0.1:$port"]
  runtime_dir: $work/run-$name
  settings:
    image_allowlist: [python]
    state_dir: $state_dir
    allowed_roots: [$sources]
    max_source_mb: 1
    max_disk_mb: 128
END
    sandbox-router --config "$work/$name.yaml" 2>>"$work/log" &
    router_pids[$name]=$!
    "$@" "$adapter" --config "$work/$name.yaml" 2>>"$work/log" &
    adapter_pids[$name]=$!
    eventually 60 bound "$port" || ok "$name is bound" false
}
end() {
    kill "${adapter_pids[$1]}" "${router_pids[$1]}"
    wait "${adapter_pids[$1]}"
    is "$1: the adapter ends in order" "$?" 0
    wait "${router_pids[$1]}"
}

port=49134
worker() {
    iii trigger --port "$port" --timeout-ms 300000 "sandbox::worker::$1" --json "$2" 2>&1
}
# start|prepare KEY SOURCE [INSTANCE]
start_worker() {
    worker start "$(jq -nc --arg path "$sources/$2" --arg key "$1" --arg instance "${3:-i}" \
        '{source: {host_path: $path}, state_key: $key, instance: $instance, auth_token: "s3cr3t-token"}')"
}
prepare() {
    worker prepare "{\"source\":{\"host_path\":\"$sources/$2\"},\"state_key\":\"$1\"}"
}
vm_of() {
    jq -r '.vm_id // empty' 2>/dev/null
}
ask() {
    worker "$1" "{\"vm_id\":\"$vm\",\"instance\":\"${2:-i}\",\"auth_token\":\"s3cr3t-token\"}"
}
logs() {
    worker logs "{\"vm_id\":\"$vm\",\"auth_token\":\"s3cr3t-token\"}" | jq -r .text
}
# shellcheck disable=SC2317 # called through eventually
exited() {
    [ "$(worker status "{\"vm_id\":\"$vm\",\"auth_token\":\"s3cr3t-token\"}" | jq -r .state)" = exited ]
}
# shellcheck disable=SC2317 # called through eventually
counts() {
    [ -n "$(first_count)" ]
}
first_count() {
    logs | sed -n 's/^count //p' | head -n 1
}
last_count() {
    logs | sed -n 's/^count //p' | tail -n 1
}

# count_on TEXT: the counter's state starts, goes on behind what it has counted, and is stopped.
last=0
count_on() {
    local answer
    answer=$(start_worker s counter)
    vm=$(vm_of <<<"$answer")
    if [ -z "$vm" ] || ! eventually 60 counts; then
        is "$1: starts" "$answer" "a vm_id, and counts"
        return
    fi
    ok "$1: counts on ($(first_count) after $last)" test "$(first_count)" -gt "$last"
    last=$(last_count)
    like "$1: stops" "$(ask stop)" '"stopped": true'
}

run a 49134 "$work/state"

# A source that is another one the next time, under what the worker has made of it.
mkdir -p "$sources/changing"/{renamed,whole,removed,remade,grown,vanishes,becomes_file}
cat >"$sources/changing/iii.worker.yaml" <<'END'
name: changing
runtime: { base_image: python }
resources: { cpus: 1, memory: 256 }
scripts:
  start: . ./act
END
(
    cd "$sources/changing" || exit
    for file in both same removed_file renamed/a renamed/b whole/a removed/a remade/a grown/a \
        vanishes/a becomes_file/a becomes_folder; do
        echo first >"$file"
    done
    cat >act <<'END'
for file in both mine becomes_folder grown/b vanishes/b becomes_file/b; do
    echo worker >$file
done
rm removed_file
rm -r removed remade
mkdir remade
echo worker >remade/b
mv renamed moved
python3 -c 'import os; os.rename("whole", "elsewhere")' 2>&1 | tail -n 1
END
)
vm=$(start_worker changing changing | vm_of)
ok "a worker changes its workspace" eventually 60 exited
like "a folder of the source is not renamed in one step" "$(logs)" '^OSError: \[Errno 18\]'
ask stop >/dev/null
(
    cd "$sources/changing" || exit
    rm -r vanishes becomes_file becomes_folder
    mkdir becomes_folder new
    for file in both same removed_file renamed/a renamed/c removed/a removed/c remade/a remade/c \
        grown/a grown/c becomes_file becomes_folder/a new/a; do
        echo second >"$file"
    done
    echo 'find . -type f ! -name act ! -name "*.yaml" | sort | while read -r f; do echo "$f $(cat "$f")"; done' >act
)
vm=$(start_worker changing changing | vm_of)
ok "it starts on the changed source" eventually 60 exited
is "its own changes stay, all else is the source's" "$(logs)" "./becomes_file/b worker
./becomes_folder worker
./both worker
./grown/a second
./grown/b worker
./grown/c second
./mine worker
./moved/a first
./moved/b first
./new/a second
./remade/b worker
./same second
./vanishes/b worker
./whole/a first"
ask stop >/dev/null

# A source that is too large, in whatever way.
mkdir -p "$sources/large" "$sources/sparse" "$sources/many"
for name in large sparse many; do
    cp "$sources/changing/iii.worker.yaml" "$sources/$name"
done
head -c 2M /dev/zero >"$sources/large/file"
truncate -s 1T "$sources/sparse/file"
(cd "$sources/many" && seq 20000 | xargs touch)
for name in large sparse many; do
    answer=$(prepare "$name" "$name")
    like "source $name: S501" "$answer" '"code": "S501"'
    like "source $name: the limit is named" "$answer" "$sources/$name: packed it exceeds max_source_mb 1"
    is "source $name: nothing is left of it" "$(find "$states/$name" -mindepth 1 -printf '%f ')" "lock "
done

mkdir -p "$sources/deep/$(printf 'd/%.0s' {1..130})"
cp "$sources/changing/iii.worker.yaml" "$sources/deep"
answer=$(prepare deep deep)
like "source deep: S501" "$answer" '"code": "S501"'
like "source deep: the limit is named" "$answer" "$sources/deep: its folders are more than 128 deep"
mkdir "$sources/special"
cp "$sources/changing/iii.worker.yaml" "$sources/special"
mkfifo "$sources/special/fifo"
mknod "$sources/special/device" c 1 5
like "special files are left out" "$(prepare special special)" '"prepared": true'

# Two adapters. The state is the other's until its VM is gone.
run b 49135 "$work/state"
vm=$(start_worker s counter "instance ü \"1\"" | vm_of)
ok "one adapter has a worker" eventually 60 counts
is "its token is in no arguments, and no environment" \
    "$(for pid in "${adapter_pids[a]}" $(descendants "${adapter_pids[a]}"); do
        cat "/proc/$pid/cmdline" "/proc/$pid/environ" 2>/dev/null
    done | grep -c s3cr3t-token)" 0
is "nor in anything that lasts" "$(grep -rlF s3cr3t-token "$states" | wc -l)" 0
port=49135
for answer in "$(start_worker s counter)" "$(prepare s changing)"; do
    is "the other gets S502" "$(grep -o '"code": "S[0-9]*"' <<<"$answer")" '"code": "S502"'
    like "with the live VM in fix" "$answer" "\"vm_id\": \"$vm\""
    like "and its instance" "$answer" '"instance": "instance ü \\"1\\""'
done
is "the other lists no worker" "$(worker list '{}' | jq length)" 0
is "and does not know its id" "$(ask status | grep -o '"code": "S[0-9]*"' | head -n 1)" '"code": "S504"'
start_worker s counter >"$work/answer" &
call=$!
port=49134
last=$(last_count)
kill -9 "${adapter_pids[a]}"
wait "${adapter_pids[a]}" 2>/dev/null
wait "$call"
port=49135
vm=$(vm_of <"$work/answer")
like "killed, its state is the other's within 5 s" "$vm" '^[0-9a-f-]{36}$'
ok "it counts on" eventually 60 counts
ok "behind what was seen" test "$(first_count)" -gt "$last"
last=$(last_count)
like "it stops" "$(ask stop)" '"stopped": true'

# Records that are torn or strange.
: >"$states/s/state/mark"
count_on "an empty mark"
head -c 4096 /dev/urandom >"$states/s/state/mark"
head -c 4096 /dev/urandom >"$states/s/holder"
mkdir -p "$states/s/next/data" "$states/s/source.new/a"
count_on "strange records, and the rest of what was killed"
is "nothing of that is left" "$(find "$states/s" -maxdepth 1 -mindepth 1 -printf '%f\n' | sort | tr '\n' ' ')" \
    "lock source state "
rm "$states/s/lock"
mkdir "$states/s/lock"
answer=$(start_worker s counter)
like "a lock that is none: S300" "$answer" '"code": "S300"'
like "the folder is named" "$answer" "$states/s: "
rmdir "$states/s/lock"

# A state that is no disk any more is refused, and not made anew.
if [ "$adapter" = sandbox-qemu ]; then
    cp --sparse=always "$states/s/state/data" "$work/data"
    dd if=/dev/urandom of="$states/s/state/data" bs=1M count=4 conv=notrunc status=none
    digest=$(sha256sum <"$states/s/state/data")
    answer=$(start_worker s counter)
    like "a broken disk: S300" "$answer" '"code": "S300"'
    is "it is left as it is" "$(sha256sum <"$states/s/state/data")" "$digest"
    mv "$work/data" "$states/s/state/data"
else
    mv "$states/s/state/data" "$work/data"
    : >"$states/s/state/data"
    like "a broken state: S300" "$(start_worker s counter)" '"code": "S300"'
    rm "$states/s/state/data"
    mv "$work/data" "$states/s/state/data"
fi
count_on "put back"
rm -r "$states/s/state/data"
last=0
count_on "a state that was lost begins anew"
rm -r "$states/s"
last=0
count_on "and so does one whose folder was removed"

# Names. What is no key is S001, whatever it would be as a path; all others are just names.
for key in .. . '' 'a/b' 'a b' 'ü' '*' "$(printf 'k%.0s' {1..129})"; do
    like "state_key '${key:0:8}': S001" "$(prepare "$key" changing)" '"code": "S001"'
done
for key in -rf -- a..b "$(printf 'k%.0s' {1..128})" CON; do
    like "state_key '${key:0:8}'" "$(prepare "$key" changing)" '"cached": false'
    ok "state_key '${key:0:8}' has its folder" test -f "$states/$key/state/mark"
done
if [ "$adapter" = sandbox-mock ]; then
    for i in $(seq 300); do
        prepare "key-$i" changing
    done >"$work/answers"
    is "hundreds of states" "$(grep -c '"cached": false' "$work/answers")" 300
    is "no worker of them is left" "$(worker list '{}' | jq length)" 0
fi
end b
kill "${router_pids[a]}"
wait "${router_pids[a]}"

# Scripts that take all there is. Under the mock that would be this machine's.
greedy() {
    mkdir "$sources/$1"
    printf '%s\n' "name: $1" "runtime: { base_image: python }" \
        "resources: { cpus: 1, memory: 256 }" "scripts:" "  setup: |" "    $2" "    $3" \
        "  start: |" "    [ ! -e /var/second ] || sleep 1000" "    touch /var/second" "    sync" \
        "    $2" "    $3" >"$sources/$1/iii.worker.yaml"
}
# is_greedy NAME WANTED: its preparation is S506 that says WANTED. As a worker it is answered for and
# stopped, and its state is as good as before.
is_greedy() {
    local answer
    answer=$(worker prepare "{\"source\":{\"host_path\":\"$sources/$1\"},\"state_key\":\"$1\",\"timeout_ms\":8000}")
    like "$1: its preparation is S506" "$answer" '"code": "S506"'
    like "$1: it says why" "$answer" "$2"
    is "$1: nothing of it is left" "$(find "$states/$1" -mindepth 1 -printf '%f\n' | sort | tr '\n' ' ')" "lock source "
    sed -i '/^  setup/,/^  start/{/^  start/!d}' "$sources/$1/iii.worker.yaml"
    vm=$(start_worker "$1" "$1" | vm_of)
    ok "$1: it starts" test -n "$vm"
    sleep 3 # so long it may take what there is
    ok "$1: it has a status" test -n "$(worker status "{\"vm_id\":\"$vm\",\"auth_token\":\"s3cr3t-token\"}" | jq -r .state)"
    like "$1: it is stopped" "$(worker stop "{\"vm_id\":\"$vm\",\"instance\":\"i\",\"auth_token\":\"s3cr3t-token\",\"timeout_ms\":1000}")" \
        '"stopped": true'
    vm=$(start_worker "$1" "$1" | vm_of)
    ok "$1: it starts again" test -n "$vm"
    is "$1: and runs" "$(worker status "{\"vm_id\":\"$vm\",\"auth_token\":\"s3cr3t-token\"}" | jq -r .state)" running
    like "$1: and stops" "$(ask stop)" '"stopped": true'
}
if [ "$adapter" = sandbox-qemu ]; then
    run f 49134 "$work/state"
    port=49134
    greedy forks 'f() { f | f & f; }' f
    greedy disk 'dd if=/dev/zero of=/var/fill bs=1M || true' 'while :; do echo x >>/var/other || exit 9; done'
    greedy memory 'python3 -c "x = [b\"x\" * (1 << 20) for i in range(100000)]"' 'exit 8'
    is_greedy forks 'setup (passed the timeout|ended with)'
    is_greedy disk 'setup ended with exit code'
    is_greedy memory 'setup (passed the timeout|ended with)'
    count_on "beside all that"
    end f
fi

# No room, or no right: the folder of states is a mount that only the adapter sees.
mkdir "$work/small" "$sources/filling"
cat >"$sources/filling/iii.worker.yaml" <<'END'
name: filling
runtime: { base_image: python }
resources: { cpus: 1, memory: 256 }
scripts:
  start: |
    [ ! -e /var/first ] || { echo "had $(cat /var/first)" && exit 0; }
    echo first >/var/first
    sync
    echo synced
    dd if=/dev/zero of=/var/fill bs=1M count=100 conv=fsync 2>&1 | tail -n 1
    echo after
    sleep 1000
END
small() {
    local options=$1
    shift
    # shellcheck disable=SC2016 # for the inner shell
    exec unshare -m sh -c 'mount -t tmpfs -o "$0" small "$1" && shift && exec "$@"' \
        "$options" "$work/small" "$@"
}
# remount NAME OPTIONS
remount() {
    nsenter -t "${adapter_pids[$1]}" -m mount -o "remount,$2" "$work/small"
}
run c 49134 "$work/small" small size=64k,nr_inodes=6
port=49134
answer=$(prepare s counter)
like "no room for a state: S300" "$answer" '"code": "S300"'
like "that says so" "$answer" 'o space left|too small|not enough'
is "and no key is held" "$(worker list '{}' | jq length)" 0
end c

run d 49134 "$work/small" small size=48m
vm=$(start_worker s filling | vm_of)
# shellcheck disable=SC2317 # called through eventually
goes_on() {
    logs | grep -q after
}
ok "a worker that fills the disk of the host goes on" eventually 60 goes_on
like "what it had said is there" "$(logs)" '^synced'
ask stop >/dev/null
is "no key is held" "$(worker list '{}' | jq length)" 0
remount d size=128m
vm=$(start_worker s filling | vm_of)
ok "with room it starts again" eventually 60 exited
is "and what was synced is there" "$(logs)" "had first"
end d

run e 49134 "$work/small" small size=64m
remount e ro
answer=$(start_worker s counter)
like "a folder that cannot be written: S300" "$answer" '"code": "S300"'
like "it is named" "$answer" "$work/small/$adapter/s: Read-only"
remount e rw
last=0
count_on "when it can be written again"
end e

ok "no token in the log" test -z "$(grep -o 's3cr3t-token' "$work/log" | head -n 1)"
finish
