#!/usr/bin/env bash
# Images from a real registry and from this machine: broken, slow and closed registries, kill -9 in the
# middle, a full disk, changed bytes. Nothing boots. Wants root, for a small file system to fill.
# shellcheck source-path=SCRIPTDIR source=lib.sh
if [ -z "${SANDBOX_TEST_NAMESPACE:-}" ]; then
    [ "$(id -u)" -eq 0 ] && command -v docker-registry >/dev/null || exit 77
    export SANDBOX_TEST_NAMESPACE=1
    exec unshare --net --mount -- bash "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"
oci_layout=$(dirname "$0")/../support/oci_layout.py
kills=${SANDBOX_TEST_KILLS:-50}
cache=$work/cache
export REGISTRY_AUTH_FILE=$work/auth.json # not there yet

# registry PORT FOLDER [LINE...]: a registry on the loopback; its pid in $registry_pid.
registry() {
    local port=$1 folder=$2
    shift 2
    {
        printf '%s\n' "version: 0.1" "log: {level: error, accesslog: {disabled: true}}" \
            "storage: {filesystem: {rootdirectory: $folder}}" "http: {addr: 127.0.0.1:$port}" "$@"
    } >"$work/registry-$port.yaml"
    # It would take that variable for a setting of its own.
    env -u REGISTRY_AUTH_FILE docker-registry serve "$work/registry-$port.yaml" >>"$work/registry.log" 2>&1 &
    registry_pid=$!
    eventually 20 curl_quietly "$port"
}
# shellcheck disable=SC2317 # called through eventually
curl_quietly() { (exec 7<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
# slow PORT BYTES: the first registry through a proxy that trickles after so many bytes of an answer.
slow() {
    python3 "$(dirname "$0")/../support/slow_proxy.py" "$1" 5000 "$2" &
    registries+=($!)
    eventually 20 curl_quietly "$1"
}
end_registries() { kill -CONT "${registries[@]}"; kill -KILL "${registries[@]}"; } 2>/dev/null

# put LAYOUT REFERENCE: the image t of a layout goes into a registry.
put() { skopeo copy --quiet --dest-tls-verify=false "oci:$1:t" "docker://$2"; }

settings=(
    "cache_dir: $cache"
    "custom_images:"
    "  own: '127.0.0.1:5000/own:1'"
    "  large: 'localhost:5000/large'"
    "  broken: '127.0.0.1:5000/broken:1'"
    "  pinned: 'PINNED'"
    "  wrong: '127.0.0.1:5000/own@sha256:$(printf %064d 1)'"
    "  other: '127.0.0.1:5000/other-machine:1'"
    "  remote: '127.0.0.2:5000/own:1'"
    "  closed: '127.0.0.1:5001/closed:1'"
    "  slow: '127.0.0.1:5002/large'"
    "  slower: '127.0.0.1:5003/large'"
    "  saved: 'docker-archive:$work/saved.tar'"
    "  tree: 'rootfs:$work/tree'"
)
# again [LINE...]: the programs anew, with further settings.
again() {
    stop_router
    write_config sandbox-qemu "${settings[@]}" "$@"
    sed -i 's/image_allowlist: .*/image_allowlist: [python, nosuch]/' "$work/config.yaml"
    start_router "$work/config.yaml" listening bound
}
pull() { iii trigger --timeout-ms 60000 sandbox-qemu::image::pull "image=$1" "${@:2}" 2>&1; }
installed() { pull "$@" | jq -r .installed; }
message() { sed 's/^Error: //' | jq -r '.code + " " + .message'; }
state() { iii trigger sandbox-qemu::image::ls | jq -r ".images[] | select(.name == \"$1\").state"; }
digest() { iii trigger sandbox-qemu::image::ls | jq -r ".images[] | select(.name == \"$1\").digest"; }
# Finished folders, all of them right, and nothing that is under way.
folders() { find "$cache/images" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' 2>/dev/null; }
nothing_under_way() { ! folders | grep -q '\.tmp-'; }
# What counts as finished is what an install left.
finished_are_right() {
    local folder
    for folder in $(folders | grep -v '\.tmp-'); do
        (cd "$cache/images/$folder" && [ "$(tail -n 1 SHA256SUMS)" = "# complete" ] &&
            sha256sum --check --quiet --strict SHA256SUMS) || return 1
    done
}

shell='{"name":"bin","type":"dir"},{"name":"bin/sh","data":"x"}'
python3 "$oci_layout" "$work/own" t env=PATH=/opt/bin:/bin workdir=/srv user=daemon <<<"[[$shell]]"
python3 "$oci_layout" "$work/large" t <<<"[[$shell],[{\"name\":\"a\",\"repeat\":2}],[{\"name\":\"b\",\"repeat\":2}]]"
python3 "$oci_layout" "$work/arm" t architecture=arm64 <<<"[[$shell]]"
skopeo copy --quiet "oci:$work/own:t" "docker-archive:$work/saved.tar:own:1"
mkdir -p "$work/tree/bin"
echo x >"$work/tree/bin/sh"

registry 5000 "$work/open"
registries=("$registry_pid")
put "$work/own" 127.0.0.1:5000/own:1
put "$work/own" 127.0.0.1:5000/broken:1
put "$work/large" localhost:5000/large
put "$work/arm" 127.0.0.1:5000/other-machine:1
settings[5]="  pinned: '127.0.0.1:5000/own@$(skopeo inspect --no-tags --tls-verify=false \
    docker://127.0.0.1:5000/own:1 | jq -r .Digest)'"
password=$(head -c 12 /dev/urandom | base64 -w 0)
# shellcheck disable=SC2016 # perl's own
hash=$(perl -e 'print crypt($ARGV[0], q($2b$05$abcdefghijklmnopqrstuu))' "$password")
echo "user:$hash" >"$work/htpasswd"
registry 5001 "$work/closed" "auth: {htpasswd: {realm: own, path: $work/htpasswd}}"
registries+=("$registry_pid")
trap end_registries EXIT
slow 5002 1000000
slow 5003 100

again
# Every form of source.
for image in own pinned saved tree; do
    is "$image is installed" "$(installed "$image")" true
    is "$image is ready" "$(state "$image")" ready
    is "$image is not installed twice" "$(installed "$image")" false
done
is "what its configuration says is kept" \
    "$(jq -c '[.env, .workdir]' "$cache/images/$(digest own)/image.json")" \
    '[["PATH=/opt/bin:/bin"],"/srv"]'

# Refusals, word for word.
create() { iii trigger sandbox::create "image=$1" 2>&1 | message; }
is "S100, no such image" "$(create nope)" \
    "S100 image nope is not in the catalog; images that may be booted: python"
is "S100, not allowed" "$(create own)" \
    "S100 image own is not in image_allowlist; images that may be booted: python"
like "S102, another digest than the pinned one" "$(pull wrong | message)" \
    "^S102 image wrong \(source 127.0.0.1:5000/own@sha256:0+1\): step pulling: the installer exited with 1: "
like "S102, another architecture" "$(pull other | message)" "^S102 .*arm64"
like "S102, plain HTTP where it is not allowed" "$(pull remote | message)" "^S102 .*https://127.0.0.2:5000"
ok "nothing of them stays" nothing_under_way

# A layer whose bytes are not those of its digest. All repositories share the blob.
rm -rf "${cache:?}/images"
layer=$(skopeo inspect --raw --tls-verify=false docker://127.0.0.1:5000/broken:1 |
    jq -r '.layers[0].digest' | cut -d : -f 2)
blob=$(find "$work/open" -path "*/$layer/data")
cp "$blob" "$work/blob"
printf X | dd of="$blob" bs=1 seek=60 conv=notrunc status=none
like "S102, a broken layer" "$(pull broken | message)" "^S102 .*[Dd]igest"
is "it is missing" "$(state broken)" missing
ok "and nothing of it stays" nothing_under_way
cp "$work/blob" "$blob"
is "it heals on retry" "$(installed broken)" true

# Registries that trickle, in a layer and in the first answer: they end long before pull_timeout_ms.
again "pull_stall_timeout_ms: 2000"
for image in slow slower; do
    began=$SECONDS
    like "S102, a registry that is $image" "$(pull "$image" | message)" \
        "^S102 .*step pulling: less than 2048 bytes came within pull_stall_timeout_ms 2000$"
    ok "soon" test $((SECONDS - began)) -le 30
done
ok "nothing of it stays" eventually 10 nothing_under_way
is "a registry that answers is not affected" "$(installed large)" true
rm -rf "${cache:?}/images"

# A registry that does not answer.
again "pull_timeout_ms: 1500"
kill -STOP "${registries[0]}"
like "S102, a slow registry" "$(pull large | message)" \
    "^S102 image large \(source localhost:5000/large\): step pulling: not finished after pull_timeout_ms 1500$"
ok "nothing of it stays" eventually 10 nothing_under_way
# All who want the same image share one install.
again
begun() { grep -c 'image_install_begun.*image=.*large' "$work/log"; }
begun_before=$(begun)
for i in 1 2 3; do
    pull large >"$work/shared-$i" &
    pulls[i]=$!
done
installing() { [ "$(state large)" = installing ]; }
ok "it is under way" eventually 10 installing
kill -CONT "${registries[0]}"
wait "${pulls[@]}"
is "three who wait get the same" \
    "$(jq -r .digest "$work"/shared-? | sort | uniq -c | awk '{ print $1 }')" 3
is "of one install" $(($(begun) - begun_before)) 1

# A registry that wants a password.
like "S102, a closed registry" "$(pull closed | message)" "^S102 .*(unauthorized|authentication required)"
skopeo login --tls-verify=false -u user -p "$password" 127.0.0.1:5001 >/dev/null
put "$work/own" 127.0.0.1:5001/closed:1
is "with its password it opens" "$(installed closed)" true
ok "which nobody is told" sh -c "! grep -F '$password' '$work/log'"

# A name in the allowlist that is no image stops nobody, and is told.
ok "an allowed image that is none is logged" grep -q 'image_allowlist_names_no_image.*image=.*nosuch' "$work/log"

# One byte, on the disk.
image=$cache/images/$(digest large)/root.erofs
printf X | dd of="$image" bs=1 seek=1500000 conv=notrunc status=none
is "a changed byte is seen" "$(state large)" unchecked
is "and found" "$(iii trigger sandbox-qemu::image::verify image=large | jq -r '.images[0].state')" damaged
is "it heals" "$(installed large)" true
is "for good" "$(iii trigger sandbox-qemu::image::verify | jq .damaged)" false

# A full disk.
mkdir "$work/small"
mount -t tmpfs -o size=5m none "$work/small"
settings[0]="cache_dir: $work/small"
again
like "S102, a full disk" "$(pull large | message)" "^S102 .*[Nn]o space left"
small_is_empty() { [ -z "$(find "$work/small/images" -mindepth 1 -type d)" ]; }
ok "nothing of it stays" eventually 10 small_is_empty
mount -o remount,size=64m "$work/small"
is "with room it heals" "$(installed large)" true
umount -l "$work/small"

# kill -9 of the adapter, or of some process of the install, at any point.
settings[0]="cache_dir: $cache"
again
# shellcheck disable=SC2317 # called through ok
remove_large() { rm -rf "${cache:?}/images/$(digest large)"; }
# Those whose end the install needs; without the ones that only watch how far it is.
workers_of() {
    local pid
    for pid in $(descendants "$1"); do
        case $(ps -o comm= -p "$pid") in
        skopeo | umoci | mkfs.erofs | sha256sum | sync | tar | rm | bwrap | jq) echo "$pid" ;;
        esac
    done
}
large=$cache/images/$(digest large)
rm -rf "$large"
span_ms=$(pull large | jq '.duration_ms // 1000')
seed=${SANDBOX_TEST_SEED:-$RANDOM}
RANDOM=$seed
echo "# $kills kills within $span_ms ms, SANDBOX_TEST_SEED=$seed"
wrong=0
finished=0
for ((i = 0; i < kills; i++)); do
    rm -rf "$large"
    pull large >"$work/killed" &
    call=$!
    delay_ms=$((RANDOM % span_ms))
    sleep "$(printf '%d.%03d' $((delay_ms / 1000)) $((delay_ms % 1000)))"
    adapter=$(pid_of sandbox-qemu)
    mapfile -t victims < <(workers_of "$adapter")
    if [ $((i % 3)) -eq 0 ] || [ "${#victims[@]}" -eq 0 ]; then
        kill -KILL "$adapter"
        wait "$call"
        stop_router
        start_router "$work/config.yaml" listening bound
    else
        kill -KILL "${victims[RANDOM % ${#victims[@]}]}" 2>/dev/null
        wait "$call"
    fi
    finished_are_right || wrong=$((wrong + 1))
    [ ! -d "$large" ] || finished=$((finished + 1))
done
is "after $kills kills, $finished of them too late, no half image was taken for whole" "$wrong" 0
rm -rf "$large"
is "and it heals" "$(installed large)" true
ok "and nothing stays" eventually 10 nothing_under_way
is "of any image" "$(iii trigger sandbox-qemu::image::verify | jq .damaged)" false

# All operations at once, for a while: each is answered as documented, and what is there is whole.
operate() { iii trigger --timeout-ms 60000 "sandbox-qemu::image::$1" "${@:2}"; }
jobs=()
for job in 1 2; do
    { for _ in {1..8}; do operate pull image=large 2>&1; done >"$work/at-once-pull-$job"; } &
    jobs+=($!)
done
{ for _ in {1..8}; do operate pull image=large anew=true 2>&1; done >"$work/at-once-anew"; } &
jobs+=($!)
{ for _ in {1..30}; do operate rm image=large 2>&1; done >"$work/at-once-rm"; } &
jobs+=($!)
{ for _ in {1..30}; do operate prune max_mb=0 2>&1; done >"$work/at-once-prune"; } &
jobs+=($!)
{ for _ in {1..15}; do operate verify 2>&1; done >"$work/at-once-verify"; } &
jobs+=($!)
wait "${jobs[@]}"
is "every pull is answered with an image" \
    "$(sed 's/^Error: //' "$work"/at-once-pull-* "$work/at-once-anew" | jq -r 'if .digest then "image" else .code end' | sort | uniq -c | xargs)" "24 image"
is "and the rest well, or as busy or not there" \
    "$(sed 's/^Error: //' "$work"/at-once-{rm,prune,verify} | jq -r '.code // "well"' | sort -u | xargs)" "S001 well"
is "nothing was ever damaged" "$(sed 's/^Error: //' "$work/at-once-verify" | jq -s 'any(.[]; .damaged)')" false
ok "what is there is whole" finished_are_right
ok "and nothing stays" eventually 10 nothing_under_way
ok "nor a lock of what is gone" test "$(find "$cache/images" -name '*.lock' | wc -l)" -le "$(folders | wc -l)"
end_registries
finish
