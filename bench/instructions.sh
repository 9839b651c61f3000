#!/usr/bin/env bash
# instructions.sh FOLDER - instructions of the router for one call, by callgrind: the difference of two
# runs, so that start-up and end do not count. FOLDER holds the programs. Repeatable, unlike times.
set -euo pipefail
bin=${1:?usage: instructions.sh FOLDER}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# valgrind keeps SIGTERM from the router's signalfd, so the counts are asked for before the end.
cat >"$work/router" <<SCRIPT
#!/bin/sh
valgrind --tool=callgrind --callgrind-out-file="$work/out" -q "$bin/sandbox-router" "\$@" &
trap 'callgrind_control --dump \$! >/dev/null 2>&1; kill -9 \$!' TERM
wait
SCRIPT
chmod +x "$work/router"

# total COUNT: all instructions of a router that passed COUNT calls.
total() {
    "$bin/sandbox-bench" --router "$work/router" --count "$1" calls
    sed -n 's/^\(totals\|summary\): //p' "$work"/out* | sort -n | tail -n 1
    rm -f "$work"/out*
}
few=$(total 2000)
many=$(total 12000)
echo "$(((many - few) / 10000)) instructions a call"
