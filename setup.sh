#!/usr/bin/env bash
# Installs what iii-sandbox needs on Debian 12 or 13. Idempotent: what is there is skipped.
#   ./setup.sh run     to build, run and make the Debian package
#   ./setup.sh         the same and what the tests need
# This is the one list of packages.
set -euo pipefail

run_packages=(
    ca-certificates build-essential cmake pkg-config
    libnng-dev libmbedtls-dev libmsgpack-dev libjansson-dev libyaml-dev libpcre2-dev nettle-dev libslirp-dev
    check
    qemu-system-x86 bubblewrap
    mmdebstrap skopeo umoci erofs-utils e2fsprogs cpio zstd xz-utils mount
    python3-minimal jq
    file
)
test_packages=(
    clang llvm libclang-rt-dev clang-format clang-tidy
    valgrind socat shellcheck docker-registry git procps iproute2 zsh fish
)

# Debian's npm draws in several hundred packages: only where there is none at all.
command -v npm >/dev/null || test_packages+=(nodejs npm)

die() {
    echo "setup.sh: $*" >&2
    exit 1
}

case "${1:-all}" in
run) packages=("${run_packages[@]}") ;;
all) packages=("${run_packages[@]}" "${test_packages[@]}") ;;
*) die "unknown argument '$1': ./setup.sh [run]" ;;
esac

command -v dpkg-query >/dev/null || die "needs Debian 12 or 13 (no dpkg-query here)"

missing=()
for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] ||
        missing+=("$package")
done
if [ "${#missing[@]}" -eq 0 ]; then
    echo "setup.sh: all ${#packages[@]} packages are there" >&2
    exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "installing ${missing[*]} needs root or sudo"
    as_root=(sudo)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT

echo "setup.sh: installing ${#missing[@]} packages: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
# The tests run their own registry; that of the package shall not begin to serve this machine.
case " ${missing[*]} " in
*" docker-registry "*) "${as_root[@]}" systemctl mask docker-registry.service >/dev/null 2>&1 || true ;;
esac
# A failing third-party source must not stop us: the install below tells what is really missing.
"${as_root[@]}" apt-get update -qq >"$log" 2>&1 || sed 's/^/  /' "$log" >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$log" 2>&1 || {
    tail -n 15 "$log" | sed 's/^/  /' >&2
    die "apt-get could not install the packages (its last lines are above)"
}
echo "setup.sh: done" >&2
