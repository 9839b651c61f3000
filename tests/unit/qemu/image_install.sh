#!/usr/bin/env bash
# image-install and boot-install against sources on this machine, hostile ones among them.
#   image_install.sh FOLDER-OF-THE-HELPERS
set -uo pipefail

helpers=$1
oci_layout=$(dirname "$0")/../../support/oci_layout.py
work=$(mktemp -d /tmp/test-image-install.XXXXXX)
trap 'rm -rf "$work"' EXIT
failures=0

ok() {
    local text=$1
    shift
    if "$@"; then
        echo "ok - $text"
    else
        echo "not ok - $text"
        failures=$((failures + 1))
    fi
}

# make_image KIND SOURCE [OPTION...]: into $work/image; its words are in $work/out and $work/err.
make_image() {
    local kind=$1 source=$2
    shift 2
    rm -rf "$work/image" "$work/seen"
    mkdir "$work/image"
    "$helpers/image-install" --kind "$kind" --source "$source" --dir "$work/image" \
        --arch x86_64 "$@" >"$work/out" 2>"$work/err"
}

refused() {
    ! "$@" >/dev/null
}

# What the image holds, below $work/seen.
look() {
    fsck.erofs --extract="$work/seen" "$work/image/root.erofs" >/dev/null 2>&1
}

done_well() {
    [ "$(tail -n 1 "$work/out")" = "done" ] &&
        [ "$(cd "$work/image" && echo *)" = "${1:-root.erofs}" ] && look
}

said() {
    grep -q -- "$1" "$work/err"
}

# What the options for a registry client are when FILE is one of the things it looks at.
fetch_options_with() {
    # shellcheck disable=SC2016 # for the shell within
    bash -euo pipefail -c '. "$0/image-confine"; dir=/tmp; fetch_paths=("$1"); common_options
        fetch_options; printf "%s\n" "${options[@]}"' "$helpers" "$1"
}

ok "not even the folder of what is looked at need be there" \
    test "$(fetch_options_with /nowhere/at/all | grep -c '^/nowhere/at/all$')" = 2

fetched=$work/fetched/mmdebstrap.x
mkdir -p "$fetched"/var/{cache/apt/archives/partial,lib/apt/lists/partial} \
    "$fetched/proc/1/root/var/cache/apt/archives"
echo 345 >"$fetched/var/cache/apt/archives/partial/a.deb"
echo 345 >"$fetched/var/lib/apt/lists/partial/Packages.xz"
echo not counted >"$fetched/var/lib/apt/lists/partial/Packages"
echo not looked at >"$fetched/proc/1/root/var/cache/apt/archives/a.deb"
eval "$(sed -n '/^apt_fetched()/,/^}/p' "$helpers/image-install")"
ok "what is fetched is counted, and no more is looked at" \
    test "$(apt_fetched "$work/fetched")" = 8

tree=$work/tree
mkdir -p "$tree/bin" "$tree/etc"
echo hello >"$tree/etc/motd"
cp /bin/true "$tree/bin/true"
chmod 4755 "$tree/bin/true"
touch -d '2001-02-03 04:05:06' "$tree/etc/motd"
ln -s /etc/passwd "$tree/etc/link"
[ "$(id -u)" -ne 0 ] || mknod "$tree/etc/disk" b 8 0

ok "a folder becomes an image" make_image rootfs "rootfs:$tree"
ok "with nothing beside it" done_well
ok "its files are there" test "$(cat "$work/seen/etc/motd")" = hello
ok "with their times" test "$(stat -c %Y "$work/seen/etc/motd")" = "$(stat -c %Y "$tree/etc/motd")"
mkdir "$work/mounted"
if mount -t erofs -o loop,ro "$work/image/root.erofs" "$work/mounted" 2>/dev/null; then
    # The tools show or keep no setuid bit.
    ok "and their modes" test "$(stat -c %a "$work/mounted/bin/true")" = 4755
    umount "$work/mounted"
fi
ok "links stay links" test "$(readlink "$work/seen/etc/link")" = /etc/passwd
ok "devices do not come along" test ! -e "$work/seen/etc/disk"
ok "what is mounted over is there" test -d "$work/seen/proc"

tar -czf "$work/tree.tar.gz" -C "$tree" .
ok "an archive becomes an image" make_image rootfs "rootfs:$work/tree.tar.gz"
ok "with nothing beside it" done_well
ok "its files are there" test "$(cat "$work/seen/etc/motd")" = hello
ok "devices do not come along" test ! -e "$work/seen/etc/disk"

mkdir "$work/outside"
python3 - "$work" <<'PYTHON'
import io, sys, tarfile

work = sys.argv[1]
with tarfile.open(work + "/evil.tar", "w") as archive:
    def add(name, kind=tarfile.REGTYPE, link="", data=b"evil"):
        member = tarfile.TarInfo(name)
        member.type, member.linkname, member.mode = kind, link, 0o755
        member.size = len(data) if kind == tarfile.REGTYPE else 0
        archive.addfile(member, io.BytesIO(data) if member.size else None)

    add("bin", tarfile.DIRTYPE)
    add("bin/sh")
    add(work + "/outside/absolute")
    add("way", tarfile.SYMTYPE, work + "/outside")
    add("way/through-link")
    add("up", tarfile.SYMTYPE, "../outside")
    add("up/through-link")
    add("../outside/dots")
    add("hard", tarfile.LNKTYPE, "../outside/kept")
PYTHON
echo kept >"$work/outside/kept"
make_image rootfs "rootfs:$work/evil.tar"
ok "a hostile archive writes nothing outside" test "$(ls "$work/outside")" = kept
ok "and changes nothing there" test "$(cat "$work/outside/kept")" = kept
ok "and does not link it" test "$(stat -c %h "$work/outside/kept")" = 1

mkdir -p "$work/nothing/etc"
ok "a tree without bin is refused" refused make_image rootfs "rootfs:$work/nothing"
ok "by name" said "no bin"
ok "a missing source is refused" refused make_image rootfs "rootfs:$work/none"
ok "by name" said "$work/none does not exist"
echo garbage >"$work/garbage.tar"
ok "an archive that is none is refused" refused make_image rootfs "rootfs:$work/garbage.tar"

layout=$work/layout
rootless=()
[ "$(id -u)" -eq 0 ] || rootless=(--rootless)
{
    umoci init --layout "$layout"
    umoci new --image "$layout:t"
    umoci unpack "${rootless[@]}" --image "$layout:t" "$work/bundle"
    mkdir -p "$work/bundle/rootfs/bin"
    echo script >"$work/bundle/rootfs/bin/sh"
    umoci repack --image "$layout:t" "$work/bundle"
    umoci config --image "$layout:t" --config.env A=b --config.workingdir /app
} >/dev/null 2>&1
ok "an OCI layout becomes an image" make_image oci "oci:$layout:t"
ok "with its configuration beside it" done_well "config.json root.erofs"
ok "its files are there" test "$(cat "$work/seen/bin/sh")" = script
ok "environment and folder are kept" test \
    "$(jq -c . "$work/image/config.json")" = '{"env":["A=b"],"workdir":"/app"}'
ok "progress is told" grep -q '^progress pulling [0-9]' "$work/out"
ok "another architecture is refused" refused make_image oci "oci:$layout:t" --arch aarch64
ok "by name" said "for architecture amd64, not arm64"
cp -a "$layout" "$layout.kept"
for part in '.layers[0]' .config; do
    rm -rf "$layout"
    cp -a "$layout.kept" "$layout"
    digest=$(skopeo inspect --raw "oci:$layout:t" | jq -r "$part.digest")
    printf 'X' | dd of="$layout/blobs/${digest/://}" bs=1 seek=20 conv=notrunc 2>/dev/null
    ok "$part with another digest is refused" refused make_image oci "oci:$layout:t"
    ok "by name" said "[Dd]igest"
done

# A saved archive, as another tool writes it.
skopeo copy --quiet "oci:$layout.kept:t" "docker-archive:$work/saved.tar:own/image:1" >/dev/null
for name in "" :own/image:1; do
    ok "a saved archive$name becomes an image" make_image docker-archive \
        "docker-archive:$work/saved.tar$name"
    ok "with its configuration beside it" done_well "config.json root.erofs"
    ok "its files are there" test "$(cat "$work/seen/bin/sh")" = script
done
ok "one without the wanted image is refused" refused make_image docker-archive \
    "docker-archive:$work/saved.tar:other:1"
ok "a missing one is refused" refused make_image docker-archive "docker-archive:$work/none.tar"
ok "by name" said "$work/none.tar does not exist"

# Layers that no tool would write. hostile NAME [VALUE...] < LAYERS
hostile() {
    local name=$1
    shift
    rm -rf "${work:?}/$name"
    python3 "$oci_layout" "$work/$name" t "$@"
    make_image oci "oci:$work/$name:t"
}
shell='{"name":"bin","type":"dir"},{"name":"bin/sh","data":"x"}'
before=$(find "$work/outside" -printf '%p %i %n %m %s\n')
same_outside() {
    [ "$(find "$work/outside" -printf '%p %i %n %m %s\n')" = "$before" ] &&
        [ "$(cat "$work/outside/kept")" = kept ]
}
dots=../../../../../../../..
hostile names <<JSON
[[$shell, {"name":"$work/outside/absolute"}, {"name":"$dots$work/outside/dots"},
  {"name":"way","type":"link","link":"$work/outside"}, {"name":"way/through"},
  {"name":"up","type":"link","link":"$dots$work/outside"}],
 [{"name":"up/later"}, {"name":"way/.wh.kept"}, {"name":"$dots$work/outside/.wh.kept"},
  {"name":"way/.wh..wh..opq"}]]
JSON
ok "names and links of layers stay inside" same_outside
hostile hard <<JSON
[[$shell, {"name":"hard","type":"hard","link":"$dots$work/outside/kept"}]]
JSON
ok "a hard link out of the tree is none" same_outside
hostile links <<JSON
[[$shell, {"name":"etc","type":"link","link":"$work/outside"},
  {"name":"tmp","type":"link","link":"$work/outside/tmp"},
  {"name":"var","type":"link","link":"$work/outside"},
  {"name":"work","type":"link","link":"$work/outside"}]]
JSON
ok "nor is what the packing makes outside" same_outside
hostile workdir workdir=/home/made <<JSON
[[$shell, {"name":"home","type":"link","link":"$dots$work/outside"}]]
JSON
ok "nor the working directory" same_outside
if [ "$(id -u)" -eq 0 ]; then
    hostile special <<JSON
[[$shell, {"name":"disk","type":"block"}, {"name":"mem","type":"char"},
  {"name":"su","data":"x","mode":"6755","uid":33}]]
JSON
    ok "devices of layers do not come along" look
    ok "and are not in the image" test -z "$(find "$work/seen" -name disk -o -name mem)"
    ok "a file keeps its owner" test -n "$(find "$work/seen" -name su -uid 33)"
fi
ok "nothing of them stays" test "$(cd "$work/image" && echo *)" = "config.json root.erofs"

# Whiteouts: of the folder itself, of the one above it, and of nothing.
hostile whiteouts <<JSON
[[$shell, {"name":"old/x"}], [{"name":"old/.wh..wh..opq"}, {"name":"old/new"}, {"name":".wh.none"}]]
JSON
look
ok "a layer hides what is below it" test "$(ls "$work/seen/old")" = new
for name in .wh... bin/.wh... .wh.. ..wh../.wh.kept; do
    hostile whiteout <<<"[[$shell], [{\"name\":\"$name\"}]]"
    ok "$name reaches nothing outside" same_outside
    ok "nor the layout" test -e "$work/whiteout/index.json"
done

# Little that becomes much.
small() {
    local name=$1 layers=$2
    shift 2
    rm -rf "${work:?}/$name"
    python3 "$oci_layout" "$work/$name" t "$@" <<<"$layers"
    make_image oci "oci:$work/$name:t" --max-mb 64
}
ok "a layer that unpacks to too much is refused" refused small zeros \
    "[[$shell, {\"name\":\"zeros\",\"zeros\":2000}]]" compress=gzip
ok "by name" said "the image is larger than max_cache_mb 64"
ok "a file that says that it is large too" refused small sparse \
    "[[$shell, {\"name\":\"sparse\",\"sparse\":4000000}]]"
ok "by name" said "the image is larger than max_cache_mb 64"
rm -rf "$work/zeros" "$work/sparse"
for how in gzip zstd; do
    ok "a layer in $how is unpacked" small "$how" "[[$shell]]" compress=$how
    ok "with its files" look
done

# Image index: the fitting one of several, none, one inside the other, one that lies.
index() { # index LAYOUT ARCHITECTURE=FROM...: a new index.json of the manifests of other layouts
    python3 - "$work" "$@" <<'PYTHON'
import hashlib, json, shutil, sys

work, name, *entries = sys.argv[1:]
blobs = f"{work}/{name}/blobs/sha256/"
manifests = []
for entry in entries:
    architecture, source = entry.split("=")
    shutil.copytree(f"{work}/{source}", f"{work}/{name}", dirs_exist_ok=True)
    manifest = json.load(open(f"{work}/{source}/index.json"))["manifests"][0]
    del manifest["annotations"]
    manifests.append(dict(manifest, platform={"architecture": architecture, "os": "linux"}))
kind = "application/vnd.oci.image.index.v1+json"
data = json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": manifests}).encode()
digest = hashlib.sha256(data).hexdigest()
open(blobs + digest, "wb").write(data)
top = {"mediaType": kind, "digest": "sha256:" + digest, "size": len(data),
       "annotations": {"org.opencontainers.image.ref.name": "t"}}
json.dump({"schemaVersion": 2, "manifests": [top]}, open(f"{work}/{name}/index.json", "w"))
PYTHON
}
python3 "$oci_layout" "$work/arm" t architecture=arm64 <<<"[[$shell]]"
python3 "$oci_layout" "$work/amd" t <<<"[[$shell, {\"name\":\"mine\"}]]"
index both arm64=arm amd64=amd
ok "of several images the machine's is taken" make_image oci "oci:$work/both:t"
look
ok "and no other" test -e "$work/seen/mine"
index none arm64=arm
ok "none for this machine is refused" refused make_image oci "oci:$work/none:t"
ok "by name" said "no image found in .* for architecture .*amd64"
index lie amd64=arm
ok "an index that lies is refused" refused make_image oci "oci:$work/lie:t"
ok "by name" said "for architecture arm64, not amd64"
index nested amd64=both
ok "an index in an index is refused" refused make_image oci "oci:$work/nested:t"

# Configurations, archives and names that nobody means.
odd() {
    local name=$1
    shift
    ok "$name ends" odd_ends "$@"
    ok "and touches nothing outside" same_outside
}
odd_ends() { # well or badly, and says which
    local began=$SECONDS
    if "$@" >/dev/null 2>&1; then
        look || return 1
    else
        [ -s "$work/err" ] || return 1
    fi
    [ $((SECONDS - began)) -lt 60 ]
}
long=$(printf 'd%.0s' {1..200})
deep=$long
for _ in {1..24}; do deep=$deep/$long; done
odd "a path of nearly 5000 bytes" hostile long <<<"[[$shell, {\"name\":\"$deep\"}]]"
odd "links that lead to each other" hostile loop \
    <<<"[[$shell, {\"name\":\"a\",\"type\":\"link\",\"link\":\"b\"}, {\"name\":\"b\",\"type\":\"link\",\"link\":\"a\"}], [{\"name\":\"a/x\"}]]"
odd "a root that is a link" hostile root \
    <<<"[[{\"name\":\"./\",\"type\":\"link\",\"link\":\"$work/outside\"}], [$shell]]"
odd "names in two cases" hostile case <<<"[[$shell, {\"name\":\"BIN/sh\"}, {\"name\":\"Etc\"}]]"
ok "are two" test -e "$work/image/root.erofs"
for folder in /../../../../tmp/made /bin/sh/x "$work/outside/made" "/$deep" $'/a\nb'; do
    odd "the working directory ${folder:0:30}" hostile folder "workdir=$folder" <<<"[[$shell]]"
done
ok "the words of a failure are those of the tool" refused hostile broken \
    <<<"[[$shell, {\"name\":\"bin/sh/x\"}]]"
ok "and not of a missing log" refused said "cannot open"
python3 - "$work" <<'PYTHON'
import io, json, sys, tarfile

with tarfile.open(sys.argv[1] + "/odd.tar", "w") as archive:
    def add(name, data=b"", kind=tarfile.REGTYPE, link=""):
        member = tarfile.TarInfo(name)
        member.type, member.linkname, member.size = kind, link, len(data)
        archive.addfile(member, io.BytesIO(data))

    add("../escaped", b"x")
    add("layer.tar", kind=tarfile.SYMTYPE, link=sys.argv[1] + "/tree.tar.gz")
    add("config.json", json.dumps({"architecture": "amd64", "os": "linux", "config": {},
                                   "rootfs": {"type": "layers", "diff_ids": ["sha256:" + "0" * 64]}}).encode())
    add("manifest.json", json.dumps([{"Config": "config.json", "RepoTags": ["a:1"],
                                      "Layers": ["layer.tar"]}]).encode())
PYTHON
ok "an archive whose layer is a link out of it is refused" refused make_image docker-archive \
    "docker-archive:$work/odd.tar"
ok "and nothing of it is unpacked" test ! -e "$work/escaped"

# What packages bring runs as somebody else, who sees and reaches nothing of this machine.
# as_packages COMMANDS: runs them so; what they print is in $work/out.
as_packages() {
    rm -rf "$work/image"
    mkdir -p "$work/image/tmp"
    : >"$work/image/file"
    unshare --pid --mount --fork --kill-child=KILL --mount-proc -- bash -euc '
        . "$1/image-confine"
        dir=$2
        prepare_system "$dir/file"
        confined system -- bash -c "$3"' \
        bash "$helpers" "$work/image" "$1" >"$work/out" 2>"$work/err"
}
if [ "$(id -u)" -eq 0 ]; then
    as_packages "id -u
        grep -c . /proc/self/uid_map
        touch $work/image/tmp/own && chown 33 $work/image/tmp/own && echo own
        touch $work/image/beside || echo not beside
        cat $work/outside/kept || echo not seen
        mknod $work/image/tmp/disk b 8 0 || echo no device
        echo x >/proc/sys/kernel/core_pattern || echo no kernel
        ls -d /proc/[0-9] /proc/[0-9]? | wc -l | sed s/^.$/few/
        ls -d /dev/[vsn]d* /dev/mem /dev/kmsg || echo no devices"
    ok "packages are root of a namespace, and reach nothing" test "$(tr '\n' ' ' <"$work/out")" = \
        "0 1 own not beside not seen no device no kernel few no devices "
    ok "and are nobody outside" test "$(stat -c %u "$work/image/tmp/own")" -gt 1879048192

    mkdir "$work/denied"
    printf '%s\n' '#!/bin/sh' 'case $* in *--user*) exit 1 ;; esac' 'exec /usr/bin/unshare "$@"' \
        >"$work/denied/unshare"
    chmod 0755 "$work/denied/unshare"
    PATH=$work/denied:$PATH as_packages "id -u
        touch $work/image/tmp/own && chown 33 $work/image/tmp/own && echo own
        cat $work/outside/kept || echo not seen
        ls -d /dev/[vsn]d* /dev/mem /dev/kmsg || echo no devices"
    ok "where there are no user namespaces, they see as little" test "$(tr '\n' ' ' <"$work/out")" = \
        "0 own not seen no devices "
    ok "which is said" said "no user namespace can be made here"
fi

# What a configuration says.
ok "a user that is not there stops nobody" hostile config user=nobody-of-that-name \
    workdir=srv/own env=PATH=/opt/bin:/bin env=EMPTY= <<<"[[$shell]]"
look
ok "its folder is made" test -d "$work/seen/srv/own"
ok "its environment is kept" test "$(jq -c . "$work/image/config.json")" = \
    '{"env":["PATH=/opt/bin:/bin","EMPTY="],"workdir":"/srv/own"}'
ok "layers without bin are refused" refused hostile empty <<<'[[{"name":"etc","type":"dir"}]]'
ok "by name" said "no bin"

ok "an unknown argument is refused" refused make_image rootfs "rootfs:$tree" --frobnicate

# Killed in the middle: no process of it stays.
mkfifo "$work/endless.tar"
make_image rootfs "rootfs:$work/endless.tar" &
installing=$!
exec 8>"$work/endless.tar" # opens when tar reads it
pkill -KILL -P "$installing" image-install || pkill -KILL -P "$installing"
wait "$installing" 2>/dev/null
for _ in $(seq 50); do
    pgrep -f "$work/endless.tar" >/dev/null || break
    sleep 0.1
done
ok "a killed install leaves no process" refused pgrep -f "$work/endless.tar"
exec 8>&-

# boot-install with a kernel of one's own fetches nothing.
boot() {
    "$helpers/boot-install" --cache "$work/boot" --agent "$1" --disk-mb 64 \
        --kernel "$work/tree.tar.gz" >"$work/out" 2>"$work/err"
}
echo '#!agent' >"$work/agent"
ok "boot files are made" boot "$work/agent"
initrd=$(sed -n 's/^initrd //p' "$work/out")
blank=$(sed -n 's/^blank //p' "$work/out")
ok "the agent is init" test "$(cpio -i --to-stdout init <"$initrd" 2>/dev/null)" = '#!agent'
ok "the disk has its size" test "$(stat -c %s "$blank")" = $((64 << 20))
ok "and takes little room" test "$(stat -c %b "$blank")" -lt 2048
ok "and is clean" e2fsck -fn "$blank" >/dev/null 2>&1
before=$(stat -c %i "$initrd" "$blank")
boot "$work/agent"
ok "the second time they are there" test "$(stat -c %i "$initrd" "$blank")" = "$before"
echo '#!agent 2' >"$work/agent"
boot "$work/agent"
ok "another agent, another initramfs" test "$(sed -n 's/^initrd //p' "$work/out")" != "$initrd"
ok "no agent is refused" refused boot "$work/none"
ok "a dynamic agent is refused" refused boot /bin/true
given() {
    "$helpers/boot-install" --cache "$work/boot" --agent "$work/agent" --disk-mb 64 \
        "--$1" "$work/none" >"$work/out" 2>"$work/err" && return 1
    grep -qxF "sandbox.qemu.$1: no file $work/none" "$work/err"
}
ok "a kernel that is not there is named" given kernel
ok "so is an initramfs" given initrd
ok "nothing temporary stays" test -z "$(find "$work/boot" -name 'tmp-*')"

echo "$failures failed"
[ "$failures" -eq 0 ]
