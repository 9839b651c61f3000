# from-help.awk - a manual page from what `PROGRAM --help` prints: the usage, some text, lines
# `  --option VALUE  text` (continued by deeper indented ones), more text.
#   awk -v name=PROGRAM -v section=8 -v version=V -v summary=TEXT -f from-help.awk
function roff(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    return text ~ /^[.']/ ? "\\&" text : text
}
BEGIN {
    print ".TH " toupper(name) " " section " \"\" \"iii\\-sandbox " version "\""
    print ".SH NAME\n" roff(name) " \\- " roff(summary)
}
/^[Uu]sage: / {
    print ".SH SYNOPSIS\n" roff(substr($0, 8)) "\n.SH DESCRIPTION"
    next
}
/^  --/ {
    line = substr($0, 3)
    at = match(line, /   *[^ -]/)
    if (!in_options) print ".SH OPTIONS"
    in_options = 1
    print ".TP\n.B " roff(at ? substr(line, 1, at - 1) : line)
    if (at) {
        text = substr(line, at)
        sub(/^ */, "", text)
        print roff(text)
    }
    next
}
/^   / && in_options {
    sub(/^ */, "")
    print roff($0)
    next
}
/^$/ { next }
{
    if (in_options) print ".SH NOTES"
    in_options = 0
    print roff($0)
}
END { print ".SH SEE ALSO\n.BR iii (1),\n.BR sandbox\\-router (8),\n.BR iii\\-sandbox.yaml (5)" }
