#!/usr/bin/env bash
# The commands of user-document.txt, taken out of the text and run as they stand, against ADAPTER.
adapter=${1:?usage: user_document.sh ADAPTER}
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "$0")" && pwd)

# commands HEADING NEXT-HEADING: the commands of a section, comments left out.
commands() {
    awk -v from="$1" -v to="$2" '$0 == from { inside = 1 } $0 == to { inside = 0 }
        inside && /^(iii |SB=|D=)/ { print }' "$here/user-document.txt"
}
# run_section HEADING NEXT-HEADING: runs them in one shell, as somebody who types them would.
run_section() {
    { echo 'set -e -o pipefail'; commands "$1" "$2" | sed 's/$/ \&\& echo "--"/; s/^\(SB\|D\)=\(.*\) && echo "--"$/\1=\2/'; } >"$work/section.sh"
    bash "$work/section.sh" 2>&1
}

# The document's compose block is the whole configuration but for where the test keeps its files.
{
    awk '/^engine:$/ { inside = 1 } inside && /^$/ { exit } inside { print }' "$here/user-document.txt"
    echo "  sandbox:"
    [ "$adapter" = sandbox-qemu ] || echo "    adapter: $adapter"
    echo "    runtime_dir: $work/run"
} >"$work/config.yaml"
start_router "$work/config.yaml" listening bound
# The image is made before: the document's commands have the shell command's 30 s.
ok "the image can be made" iii sandbox stop "$(iii sandbox create python)"

is "one-shot run prints 4" "$(run_section "One-shot run" "Lifecycle")" $'4\n\n--'

lifecycle=$(run_section "Lifecycle" "Concurrency and idle cleanup")
like "exec prints the version, list the id, stop answers" "$lifecycle" \
    $'^Python 3\.[0-9.]+\n\n--\n[0-9a-f-]{36}\n--\n\{.*"stopped": true'

like "the catalog lists python and node" "$(run_section "Catalog" "Filesystem")" $'^python\nnode'

files=$(run_section "Filesystem" "Error codes")
like "mkdir creates" "$files" '"created": true'
like "write counts bytes" "$files" '"bytes_written": 8'
like "ls shows the file" "$files" $'\nmain.py\n'
like "read prints the body" "$files" $'\nprint\\(1\\)\n'
like "chmod updates one" "$files" '"updated": 1'
like "grep finds the line" "$files" '"content": "print\(1\)"'
like "sed replaces once" "$files" '"total_replacements": 1'
like "mv moves" "$files" '"moved": true'
like "rm removes" "$files" '"removed": true'
like "stop stops" "$files" $'"stopped": true\n\}\n--$'
is "nothing is left running" "$(iii trigger sandbox::list)" "[]"

# Every code of the document is one of the contract's, with the document's type.
while read -r code type; do
    like "$code is documented as $type" "$(cat "$here/../../docs/errors.md")" \
        "\\| \\[$code\\]\\(#$code\\) \\| $type \\|"
done < <(sed -n 's/^\(S[0-9]\{3\}\) (\([a-z]*\)):.*/\1 \2/p' "$here/user-document.txt")
finish
