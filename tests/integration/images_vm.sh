#!/usr/bin/env bash
# An image of one's own in a real microVM: what its configuration says holds, its layer is bounded, and
# what is in use is not removed. The preset node with its npm.
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
sed -i 's/image_allowlist: .*/image_allowlist: [own, node]/' "$work/config.yaml"
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

if [ "$(iii trigger sandbox-qemu::image::ls | jq -r '.images[] | select(.name == "node").state')" = ready ]; then
    node=$(iii sandbox create node)
    like "npm runs, without what Debian's draws in" "$(exec_in "$node" 'cmd=npm --version')" '^[0-9]+\.'
fi
finish
