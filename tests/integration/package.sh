#!/usr/bin/env bash
# What is installed is all that is needed: the Debian package is made, unpacked elsewhere, and its
# programs, settings, manual pages, completions and service are tried from there.
#   package.sh BUILD
build=${1:?usage: package.sh BUILD}
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

ok "the package is made" bash -c 'cd "$1" && cpack --config "$2/CPackConfig.cmake" -B "$1" >"$1/cpack.log" 2>&1' \
    - "$work" "$build"
package=$(find "$work" -maxdepth 1 -name 'iii-sandbox_*.deb')
ok "it is one" test -f "$package"
[ -f "$package" ] || { tail -n 20 "$work/cpack.log"; finish; }
depends=$(dpkg-deb -f "$package" Depends)
for library in libnng libjansson libc6 qemu-system-x86; do
    like "it depends on $library" "$depends" "$library"
done
dpkg-deb -x "$package" "$work/root"
dpkg-deb -e "$package" "$work/control"
like "its settings are a conffile" "$(cat "$work/control/conffiles")" '/etc/iii-sandbox/config\.yaml$'
for script in postinst prerm postrm; do
    ok "$script is a script" sh -n "$work/control/$script"
done
bin=$(dirname "$(find "$work/root" -name iii -path '*bin/iii')")
share=$bin/../share

# The programs, away from the build folder. The settings are the package's, but for the adapter.
PATH=$bin:/usr/bin:/bin:/usr/sbin:/sbin
is "iii is the installed one" "$(command -v iii)" "$bin/iii"
{
    sed 's/sandbox-qemu /sandbox-mock /' "$work/root$(cat "$work/control/conffiles")"
    echo "    cache_dir: $work/cache"
} | sed "s|^sandbox:|&\n  runtime_dir: $work/run|" >"$work/config.yaml"
start_router "$work/config.yaml" listening bound
is "a program runs" "$(iii sandbox run python -- printf hello </dev/null)" hello

for page in man1/iii.1 man5/iii-sandbox.yaml.5 man8/sandbox-router.8 man8/sandbox-qemu.8; do
    ok "there is $page" test -s "$share/man/$page"
    if command -v groff >/dev/null; then
        is "it is sound" "$(LC_ALL=C.UTF-8 groff -man -Tutf8 -ww -z "$share/man/$page" 2>&1)" ""
    fi
done
for command in "sandbox image pull" "sandbox exec" trigger completion; do
    like "iii(1) has iii $command" "$(cat "$share/man/man1/iii.1")" "\\.SS iii $command"
done
while read -r setting; do
    ok "iii-sandbox.yaml(5) has $setting" grep -qF "\\fB$setting\\fR" "$share/man/man5/iii-sandbox.yaml.5"
done < <(awk -F'|' 'NF == 7 && $2 ~ /`/ { gsub(/[ `]/, "", $2); print $2 }' "$(dirname "$0")/../../docs/settings.md")
for file in bash-completion/completions/iii zsh/vendor-completions/_iii fish/vendor_completions.d/iii.fish; do
    ok "there is $file" test -s "$share/$file"
done
if command -v zsh >/dev/null; then
    # Loaded at its first use, as from a package.
    cat >"$work/.zshrc" <<SH
PS1='ready> '
unsetopt zle_bracketed_paste prompt_cr prompt_sp global_rcs beep
fpath=($share/zsh/vendor-completions \$fpath)
autoload -U compinit && compinit -u -D
show() { printf '\n<%s>\n' "\$BUFFER"; exit; }
zle -N show && bindkey '^G' show
SH
    ZDOTDIR=$work "$SANDBOX_BIN/../tests/on_terminal" 'ready> ' $'iii sandbox downl\t\a' $'\n<' $'\004' \
        -- zsh -d -i >"$work/screen" 2>&1
    like "zsh loads its completion" "$(cat "$work/screen")" '<iii sandbox download *>'
fi

unit=$(find "$work/root" -name iii-sandbox.service)
ok "there is a service" test -s "$unit"
like "it starts what is installed" "$(cat "$unit")" "ExecStart=${bin#"$work/root"}/sandbox-router --config"
if command -v systemd-analyze >/dev/null; then
    sed "s|^ExecStart=|&$work/root|" "$unit" >"$work/iii-sandbox.service"
    is "it is sound" "$(systemd-analyze verify --man=no "$work/iii-sandbox.service" 2>&1 |
        grep iii-sandbox.service)" ""
fi
finish
