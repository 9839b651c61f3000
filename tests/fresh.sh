#!/usr/bin/env bash
# Runs ./quickstart.sh, or another command, as root of a Debian on which nothing is installed, in a
# clone of this repository. That Debian is a folder made by mmdebstrap, with a mount and PID
# namespace around it, and is gone afterwards. Needs root and the distribution's mirror.
#   tests/fresh.sh bookworm
#   tests/fresh.sh trixie ./test.sh quick
set -euo pipefail

if [ "${FRESH_INSIDE:-}" != yes ]; then
    suite=${1:?usage: tests/fresh.sh SUITE [COMMAND...]}
    shift
    [ $# -gt 0 ] || set -- ./quickstart.sh
    repository=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
    tree=$(mktemp -d "${TMPDIR:-/tmp}/iii-fresh.XXXXXX")
    trap 'rm -rf --one-file-system "$tree"' EXIT
    mmdebstrap --quiet --variant=minbase --include=ca-certificates "$suite" "$tree"
    git clone --quiet "$repository" "$tree/root/iii-sandbox"
    FRESH_INSIDE=yes unshare --mount --pid --fork --kill-child=KILL --propagation private \
        bash "$0" "$tree" "$@"
    exit
fi

# The new root is a mount of its own, as that of a machine is.
tree=$1
shift
mount --bind "$tree" "$tree"
cd "$tree"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs run
cp --dereference /etc/resolv.conf etc/resolv.conf
mkdir outside
pivot_root . outside
umount --lazy /outside
rmdir /outside
unset FRESH_INSIDE
cd /root/iii-sandbox
exec "$@"
