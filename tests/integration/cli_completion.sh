#!/usr/bin/env bash
# Completion as the shells do it: what somebody types with the Tab key becomes in bash, zsh and fish.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

on_terminal=$SANDBOX_BIN/../tests/on_terminal
export TERM=xterm LC_ALL=C.UTF-8

start sandbox-mock
id=$(iii sandbox create python)
other=$(iii sandbox create python)
: >"$work/local-file"
cd "$work" || exit 1

# What iii offers; every other shell asks it.
is "commands" "$(iii __complete sandbox st)" stop
is "functions" "$(iii __complete trigger sandbox::fs::mk)" sandbox::fs::mkdir
is "functions, by an alias" "$(iii __complete t sandbox::fs::mk)" sandbox::fs::mkdir
is "fields" "$(iii __complete trigger sandbox::fs::mkdir pa)" $'path=\nparents='
is "images" "$(iii __complete sandbox run py)" python
is "ids" "$(iii __complete sandbox exec "" | sort)" "$(printf '%s\n' "$id" "$other" | sort)"
is "options" "$(iii __complete sandbox exec --t)" --timeout
is "no value of an option" "$(iii __complete sandbox create --name "")" ""
is "nothing of a program's own words" "$(iii __complete sandbox exec "$id" -- ls --t)" ""
is "commands of help" "$(iii __complete help sandbox up)" upload
is "nothing without a router" "$(iii __complete sandbox exec --port 1 "")" ""

# typed SHELL LINE: the line that the Tab key makes of LINE, as the shell shows it to its command.
# The shell echoes the line with a mark around it.
lines=(
    "iii sandbox downl|iii sandbox download"
    "iii trigger sandbox::fs::mk|iii trigger sandbox::fs::mkdir"
    "iii trigger sandbox::fs::mkdir sandbox_id=$id pare|iii trigger sandbox::fs::mkdir sandbox_id=$id parents="
    "iii trigger sandbox::stop sandbox_id=${id:0:30}|iii trigger sandbox::stop sandbox_id=$id"
    "iii sandbox run pyth|iii sandbox run python"
    "iii trigger sandbox::create image=pyth|iii trigger sandbox::create image=python"
    "iii sandbox stop ${id:0:30}|iii sandbox stop $id"
    "iii sandbox exec --time|iii sandbox exec --timeout"
    "iii sandbox upload $id local-f|iii sandbox upload $id local-file"
    "iii completion fi|iii completion fish"
)

# complete_in SHELL COMMAND...: types each line, a Tab, and what makes the shell print the result.
complete_in() {
    local shell=$1 line
    shift
    for line in "${lines[@]}"; do
        "$on_terminal" 400 'ready> ' "${line%|*}"$'\t\a' $'\n<' $'\004' -- "$@" >"$work/screen" 2>&1
        like "$shell completes ${line%|*}" \
            "$(sed -n 's/^<\(.*\)>.*/\1/p' <(tr -d '\r' <"$work/screen"))" "^${line#*|} *\$"
    done
}

# Ctrl-G prints the line between marks and ends the shell.
cat >"$work/bashrc" <<SH
PS1='ready> '
PATH=$PATH
source <(iii completion bash)
show() { printf '\n<%s>\n' "\$READLINE_LINE"; exit; }
bind 'set bell-style none'
bind -x '"\C-g": show'
SH
complete_in bash bash --noprofile --rcfile "$work/bashrc" -i

if command -v zsh >/dev/null; then
    mkdir "$work/zsh"
    cat >"$work/zsh/.zshrc" <<SH
unsetopt zle_bracketed_paste prompt_cr prompt_sp global_rcs beep
PS1='ready> '
path=(${PATH//:/ })
autoload -U compinit && compinit -u -D
source <(iii completion zsh)
show() { printf '\n<%s>\n' "\$BUFFER"; exit; }
zle -N show && bindkey '^G' show
SH
    ZDOTDIR=$work/zsh complete_in zsh zsh -d -i
else
    echo "# SKIP zsh is not installed: its completion is not tried"
fi

if command -v fish >/dev/null; then
    # fish says what it would complete; its prompt redraws too much to be read.
    for line in "${lines[@]}"; do
        word=${line#*|}
        like "fish completes ${line%|*}" \
            "$(HOME=$work XDG_CONFIG_HOME=$work/fish fish --no-config -c \
                'iii completion fish | source; complete -C $argv[1]' "${line%|*}" 2>&1)" \
            "^${word##* }([[:space:]].*)?\$"
    done
else
    echo "# SKIP fish is not installed: its completion is not tried"
fi
cd / || exit 1
finish
