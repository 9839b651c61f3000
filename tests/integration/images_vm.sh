#!/usr/bin/env bash
# An image of one's own in a real microVM: what its configuration says holds, its layer is bounded, that of
# all sandboxes together too, and what is in use is not removed.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

# A tree of a few programs of this machine, and what they are linked with.
tree=$work/bundle/rootfs
{
    umoci init --layout "$work/layout"
    umoci new --image "$work/layout:t"
    umoci unpack --rootless --image "$work/layout:t" "$work/bundle"
    mkdir -p "$tree/usr/bin" "$tree/usr/lib" "$tree/usr/lib64" "$tree/opt/own"
    for folder in bin lib lib64; do ln -s "$(readlink "/$folder")" "$tree/$folder"; done
    for program in sh env pwd id dd cat; do
        cp -L "/usr/bin/$program" "$tree/usr/bin/$program"
        ldd "/usr/bin/$program" | grep -o '/[^ ]*' | while read -r library; do
            cp -L --parents "$library" "$tree/"
        done
    done
    printf '#!/bin/sh\necho from the path\n' >"$tree/opt/own/tool"
    chmod 755 "$tree/opt/own/tool"
    umoci repack --image "$work/layout:t" "$work/bundle"
    umoci config --image "$work/layout:t" --config.env PATH=/opt/own:/usr/bin \
        --config.env GREETING=hello --config.workingdir /srv/made --config.user nobody:nogroup
} >"$work/made" 2>&1 || cat "$work/made"

start sandbox-qemu "default_memory_mb: 256" "max_disk_mb: 64" \
    "custom_images: {own: 'oci:$work/layout:t'}" "cache_dir: ${SANDBOX_TEST_CACHE:-/var/cache/iii-sandbox}"
sed -i 's/image_allowlist: .*/image_allowlist: [own]/' "$work/config.yaml"
stop_router
start_router "$work/config.yaml" listening bound
sandbox=$(iii sandbox create own)
like "it boots" "$sandbox" '^[0-9a-f-]{36}$'
exec_in() { iii trigger --timeout-ms 120000 sandbox::exec "sandbox_id=$1" "${@:2}" | jq -r "${what:-.stdout}"; }
is "its environment is a default" "$(exec_in "$sandbox" 'cmd=sh -c "echo $GREETING"')" hello
is "which an exec may change" "$(exec_in "$sandbox" 'cmd=sh -c "echo $GREETING"' 'env={"GREETING":"bye"}')" bye
is "its PATH too" "$(exec_in "$sandbox" cmd=tool)" "from the path"
is "its working directory, which no layer has" "$(exec_in "$sandbox" cmd=pwd)" /srv/made
is "its user has no meaning" "$(exec_in "$sandbox" 'cmd=id -u')" 0

like "a full layer is seen inside" \
    "$(what=.stderr exec_in "$sandbox" 'cmd=dd if=/dev/zero of=/fill bs=1M count=200')" "No space left"
is "and the sandbox goes on" "$(exec_in "$sandbox" cmd=tool)" "from the path"
is "its image is in use" "$(iii trigger sandbox-qemu::image::ls |
    jq -r '.images[] | select(.name == "own").in_use')" true
like "and is not removed" "$(iii trigger sandbox-qemu::image::rm image=own 2>&1)" "own is in use"
iii sandbox stop "$sandbox" >/dev/null
is "afterwards it is" "$(iii trigger sandbox-qemu::image::rm image=own | jq '.removed | length')" 1

# What all layers together may still become is promised from what is free: one of more than half of it fits,
# a second one when the first is half full. Of the machine's real disk, so by a small part of it.
cache=${SANDBOX_TEST_CACHE:-/var/cache/iii-sandbox}
promise_mb=$(($(df --output=avail -BM "$cache" | tail -n 1 | tr -dc 0-9) / 100))
layer_mb=$((promise_mb * 55 / 100))
[ ! -e "$cache/boot/blank-1-$layer_mb" ] || layer_mb=$((layer_mb + 1))
sed -i "s/max_disk_mb: .*/max_disk_mb: $layer_mb\n    disk_promise_percent: 1/" "$work/config.yaml"
sed -i 's/^  settings:/  qemu: {templates: false}\n  settings:/' "$work/config.yaml"
stop_router
start_router "$work/config.yaml" listening bound
if [ "$layer_mb" -lt 64 ]; then
    echo "# no 64 MiB in a hundredth of what is free"
else
    sandbox=$(iii sandbox create own)
    like "a layer of half of what is promised fits" "$sandbox" '^[0-9a-f-]{36}$'
    like "two do not: S400 that says what to set" "$(iii sandbox create own 2>&1)" \
        "S400.*max_disk_mb $layer_mb: the writable layers of 2 sandboxes.* may grow by .*disk_promise_percent to [0-9]"
    is "the first fills its layer" "$(what=.exit_code exec_in "$sandbox" \
        "cmd=dd if=/dev/zero of=/fill bs=1M count=$((layer_mb / 3)) conv=fsync")" 0
    second=$(iii sandbox create own)
    like "what it has taken counts no more" "$second" '^[0-9a-f-]{36}$'
    iii sandbox stop "$sandbox" >/dev/null
    iii sandbox stop "$second" >/dev/null
    iii sandbox image rm own >/dev/null # the cache is everybody's
fi
stop_router
rm -f "$cache/boot/blank-1-$layer_mb"
finish
