#!/usr/bin/env bash
# The network of sandboxes: what a guest reaches and what not, names, bytes, what keeps it alive.
# This namespace is the machine; the world is another one, behind a pair of interfaces.
# shellcheck disable=SC2086 # lists of checks are words
# shellcheck source-path=SCRIPTDIR source=lib.sh
here=$(dirname "$0")
if [ -z "${SANDBOX_TEST_NAMESPACE:-}" ]; then
    export SANDBOX_TEST_NAMESPACE=1
    flags=(-nm) # a file of name servers of its own too
    [ "$(id -u)" -eq 0 ] || flags=(-rnm)
    exec unshare "${flags[@]}" -- bash "$0" "$@"
fi
. "$here/lib.sh"

mebibytes=${NETWORK_MEBIBYTES:-1024}
helpers=()
trap 'kill "${helpers[@]}" 2>/dev/null' EXIT

# The world: 198.51.100.2, 2001:db8:1::2; private and link-local addresses beside them.
unshare -n -- sleep infinity &
world=$!
helpers+=("$world")
# shellcheck disable=SC2317 # called through eventually
apart() { [ "$(readlink "/proc/$world/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
ok "there is a world" eventually 10 apart
ip link add out type veth peer name world
ip link set world netns "$world"
add_addresses() { # INTERFACE ADDRESS..., in this namespace or in that of ${enter[@]}
    local interface=$1 address options
    for address in "${@:2}"; do
        options=()
        [[ $address != *:* ]] || options=(nodad)
        "${enter[@]}" ip address add "$address" dev "$interface" "${options[@]}"
    done
}
enter=()
add_addresses out 198.51.100.1/24 10.77.0.1/24 2001:db8:1::1/64 fd77::1/64
ip link set out up
ip route add 169.254.169.254 dev out
ip route add default via 198.51.100.2
ip -6 route add default via 2001:db8:1::2
enter=(nsenter -t "$world" -n --)
add_addresses world 198.51.100.2/24 10.77.0.2/24 169.254.169.254/32 2001:db8:1::2/64 fd77::2/64
"${enter[@]}" ip link set world up
"${enter[@]}" ip link set lo up

serve() { # LOG ADDRESS HTTP-PORT DNS-PORT [HOW], as add_addresses
    local log=$1
    shift
    touch "$log"
    "${enter[@]}" python3 "$here/network_server.py" "$log" "$@" &
    helpers+=("$!")
    ok "a server at $1" eventually 20 grep -q ready "$log"
}
serve "$work/world" :: 80 53
enter=()
serve "$work/host" :: 8080 0
serve "$work/closed" :: 8081 0 # its port is not among host_ports
serve "$work/names" 127.0.0.1 0 53
name_servers() { printf 'nameserver %s\n' "$@" >"$work/resolv.conf"; }
name_servers 127.0.0.1
chmod 644 "$work/resolv.conf"
chmod 755 "$work"
mount --bind "$work/resolv.conf" "$(readlink -f /etc/resolv.conf)"

for address in 10.77.0.2 169.254.169.254 fd77::2 198.51.100.2 2001:db8:1::2; do
    ok "the machine reaches $address" python3 "$here/network_guest.py" "connect,$address,80"
done
: >"$work/world"

SANDBOX_SECTION='qemu: {host_ports: [8080], acceleration: tcg}'
start sandbox-qemu "default_memory_mb: 256" "max_exec_timeout_ms: 600000"

create() { iii trigger --timeout-ms 120000 sandbox::create image=python "$@" | jq -r .sandbox_id; }
run_in() { # ID CHECK...
    local id=$1
    shift
    iii trigger --timeout-ms 400000 sandbox::exec "sandbox_id=$id" timeout_ms=390000 \
        "cmd=env RES_OPTIONS=timeout:30 python3 /guest.py $*" | jq -r '.stdout + .stderr'
}
# shellcheck disable=SC2317 # called through ok
not() { ! "$@"; }
put_guest() {
    iii trigger sandbox::fs::write "sandbox_id=$1" path=/guest.py \
        "content=$(cat "$here/network_guest.py")" >/dev/null
}
# expect TEXT OUTPUT CHECK RESULT: it says RESULT, and did not wait for that: a name query that nobody
# answers takes 30 s, a connection that nobody answers 20.
expect() {
    local line
    line=$(grep -F "$3 " <<<"$2")
    like "$1" "${line/#"$3"/}" "^ $4 [0-9]\$"
}

first=$(create network=true 'env={"URL":"http://localhost:8080/"}')
like "a sandbox with a network boots" "$first" '^[0-9a-f-]{36}$'
[ -n "$first" ] || finish # all that follows wants it
put_guest "$first"
is "localhost became the gateway" "$(iii trigger sandbox::exec "sandbox_id=$first" \
    "cmd=printenv URL" | jq -r .stdout | tr -d '\n')" http://10.0.2.2:8080/

# Made of the template by now, one of them out of the pool: they are watched below.
# shellcheck disable=SC2317 # called through eventually; stat is activity until it is connected
asked() { iii trigger sandbox::fs::stat "sandbox_id=$1" path=/ >/dev/null && grep -q "asked for /$2" "$work/world"; }
connect_for_long() { # ID CHECK
    put_guest "$1"
    iii trigger sandbox::exec "sandbox_id=$1" \
        "cmd=sh -c 'python3 /guest.py $2,198.51.100.2 >/dev/null 2>&1 &'" >/dev/null
    ok "it is connected for $2" eventually 30 asked "$1" "$2"
}
ticking=$(create network=true idle_timeout_secs=4)
connect_for_long "$ticking" tick
ok "out of the template" grep -q "vm_up .*way=\"clone\"" "$work/log"
# shellcheck disable=SC2317 # called through eventually: the pool may have none yet
out_of_the_pool() {
    holding=$(create network=true idle_timeout_secs=4)
    grep -q "vm_up vm=\"$holding\" way=\"pool\"" "$work/log" && return
    iii trigger sandbox::stop "sandbox_id=$holding" >/dev/null
    return 1
}
ok "and out of the pool" eventually 60 out_of_the_pool
connect_for_long "$holding" hold

# What is open, and what is not: refused at once.
open='fetch,http://198.51.100.2/hello fetch,http://[2001:db8:1::2]/hello fetch,http://any.test/hello
    fetch,http://10.0.2.2:8080/ fetch,http://[fd5a:6b3c:7e21:1::2]:8080/'
closed='connect,10.77.0.2,80 connect,169.254.169.254,80 connect,fd77::2,80 connect,198.51.100.1,8080
    connect,2001:db8:1::1,8080 connect,10.77.0.1,8080 connect,10.0.2.2,8081 connect,198.51.100.2,81
    connect,::ffff:10.77.0.2,80 fetch,http://198.51.100.2/redirect
    connect,64:ff9b::10.77.0.2,80 connect,2002:0a4d:0002::1,80 connect,64:ff9b:1::1,80 connect,fec0::1,80
    connect,fd5a:6b3c:7e21:1::2,8081 connect,fe80::2%eth0,8081
    echo,10.0.2.2,7,1 echo,10.77.0.2,7,1 echo,fd5a:6b3c:7e21:1::2,7,1 echo,198.51.100.1,7,1 echo,169.254.169.254,7,1'
said=$(run_in "$first" $open)
for check in $open; do
    expect "$check" "$said" "$check" hello
done
said=$(run_in "$first" $closed connect,10.0.2.3,8080 fetch,http://rebind.test/hello \
    fetch,http://rebind.test/hello udp,10.77.0.2,80)
for check in $closed; do
    case $check in
    echo,*) answer=ENETUNREACH ;;
    *) answer=ECONNREFUSED ;;
    esac
    expect "$check is refused" "$said" "$check" "$answer"
done
expect "a name server serves names alone" "$said" connect,10.0.2.3,8080 ENETUNREACH
like "a name that points elsewhere the second time leads nowhere" \
    "$(grep rebind <<<"$said" | cut -d ' ' -f 2 | tr '\n' ' ')" '^hello ECONNREFUSED '
is "odd frames leave the guest" "$(run_in "$first" frames,8081 frames,7 frames,53 frames,69 | grep -c ' 115 ')" 4
expect "and nothing else suffered" "$(run_in "$first" fetch,http://198.51.100.2/hello)" fetch,http://198.51.100.2/hello hello
is "no closed port was reached" "$(grep -cv ready "$work/closed")" 0
is "nor by a datagram, in this machine" "$(grep -c datagram "$work/host")" 0
like "only what is open was reached" "$(grep 'came to' "$work/world" | sort -u | tr '\n' ' ')" \
    '^came to 198.51.100.2 came to 2001:db8:1::2 $'

# Datagrams of all sizes that IPv4 knows, and nearly all of IPv6.
echoes='echo,198.51.100.2,7,1 echo,198.51.100.2,7,1473 echo,198.51.100.2,7,20000 echo,198.51.100.2,7,65507
    echo,2001:db8:1::2,7,1453 echo,2001:db8:1::2,7,20000 echo,2001:db8:1::2,7,65472'
said=$(run_in "$first" $echoes)
for check in $echoes; do
    expect "$check" "$said" "$check" same
done

# Names: a resolver on this machine's loopback, long answers, many at once.
said=$(run_in "$first" lookup,big.test lookups,100)
expect "an answer beyond 512 bytes" "$said" lookup,big.test 60
ok "came over TCP" grep -q 'dns tcp 9' "$work/names"
like "a hundred look-ups at once" "$said" 'lookups,100 100 [0-9]'
said=$(iii trigger sandbox::exec "sandbox_id=$first" \
    "cmd=env RES_OPTIONS=edns0 python3 /guest.py lookup,big.test" | jq -r .stdout)
expect "and with larger datagrams" "$said" lookup,big.test 60
ok "came over UDP" grep -q 'dns udp 9' "$work/names"

# The one that is asked once a second lives on, the one that is only kept open does not.
# shellcheck disable=SC2317 # called through eventually
is_reaped() { ! iii trigger sandbox::list | jq -e --arg id "$holding" 'any(.sandbox_id == $id)' >/dev/null; }
ok "a connection with keep-alive probes alone does not keep a sandbox" eventually 40 is_reaped
like "a later call is told" "$(iii trigger sandbox::exec "sandbox_id=$holding" cmd=true 2>&1)" 'S004.*idle|idle.*S004'
like "one byte a second does" "$(iii trigger sandbox::list |
    jq --arg id "$ticking" '.[] | select(.sandbox_id == $id) | .idle_secs')" '^[0-3]$'
iii trigger sandbox::stop "sandbox_id=$ticking" >/dev/null

# Bytes: a reader that does not read, then a GiB.
: >"$work/world"
run_in "$first" slow,198.51.100.2,64 >"$work/slow" &
slow=$!
helpers+=("$slow")
sent() { grep -c sent "$work/world"; }
# shellcheck disable=SC2317 # called through eventually
stands() { local before; before=$(sent); sleep 1; [ "$before" -gt 0 ] && [ "$before" = "$(sent)" ]; }
ok "a reader that does not read stops the sender" eventually 20 stands
ok "long before the end" test "$(sent)" -lt 32
relays=$(descendants "$(pid_of sandbox-qemu)" | xargs ps -o rss=,comm= -p | grep sandbox-relay)
ok "and costs little memory" test "$(sort -n <<<"$relays" | tail -n 1 | awk '{ print $1 }')" -lt 32768
iii trigger sandbox::fs::write "sandbox_id=$first" path=/go content=1 >/dev/null
wait "$slow"
like "then gets all" "$(cat "$work/slow")" '^slow,198.51.100.2,64 64 '
said=$(run_in "$first" "download,198.51.100.2,$mebibytes" upload,198.51.100.2,64)
like "$mebibytes MiB come through" "$said" "download,198.51.100.2,$mebibytes $mebibytes "
like "and 64 MiB the other way" "$said" "upload,198.51.100.2,64 64 "
echo "# $said"
ok "and no relay ended on the way" not grep -q relay_ended "$work/log"

# The first name server is no good: the next one is asked, and no look-up fails. ::1 has none.
serve "$work/failing" 127.0.0.4 0 53 failing
serve "$work/silent" 127.0.0.5 0 53 silent
for way in refused,127.0.0.6,127.0.0.11 failing,127.0.0.4,127.0.0.12 silent,127.0.0.5,127.0.0.13 v6,::1,fd77::1; do
    IFS=, read -r way first_server second_server <<<"$way"
    serve "$work/second.$way" "$second_server" 0 53
    name_servers "$first_server" "$second_server"
    : >"$work/said"
    # shellcheck disable=SC2317 # called through eventually; 5 s are glibc's own patience
    second_asked() {
        iii trigger --timeout-ms 60000 sandbox::exec "sandbox_id=$first" timeout_ms=50000 \
            "cmd=python3 /guest.py lookup,$way.test" | jq -j .stdout >>"$work/said"
        grep -q "asked for the name $way" "$work/second.$way"
    }
    ok "the second name server is asked: $way" eventually 15 second_asked
    is "and no look-up failed" "$(cut -d ' ' -f 2 "$work/said" | sort -u)" 1
done
for way in failing silent; do
    ok "the first one was asked: $way" grep -q "asked for the name $way" "$work/$way"
done
expect "then it is asked at once" "$(run_in "$first" lookup,again.test)" lookup,again.test 1

# More ports than the relay may have sockets; then a relay that is killed with connections open.
relay=$(pid_of sandbox-relay) # the oldest one
run_in "$first" scan,198.51.100.2,1500 >"$work/said"
expect "a port scan ends" "$(cat "$work/said")" scan,198.51.100.2,1500 "done"
is "and ends no relay" "$(pid_of sandbox-relay)" "$relay"
iii trigger sandbox::exec "sandbox_id=$first" \
    "cmd=sh -c 'python3 /guest.py slow,198.51.100.2,64 >/dev/null 2>&1 &'" >/dev/null
kill -9 "$relay"
# shellcheck disable=SC2317 # called through eventually
reaches_out() { run_in "$first" fetch,http://198.51.100.2/hello | grep -q hello; }
ok "a relay that was killed is started again, with all its sockets free" eventually 30 reaches_out
is "which is told, once" "$(grep -c relay_ended "$work/log")" 1

# Another resolver, on a private address that is closed otherwise; then one that is down.
name_servers 10.77.0.2
# shellcheck disable=SC2317 # called through eventually
other_resolver() { run_in "$first" lookup,other.test >"$work/said"; grep -q 'dns' "$work/world"; }
ok "another resolver is taken within seconds" eventually 10 other_resolver
expect "a private one too" "$(cat "$work/said")" lookup,other.test 1
name_servers 198.51.100.3
enter=(nsenter -t "$world" -n --)
add_addresses world 198.51.100.3/24 # nobody answers there: see the next line
kill "${helpers[1]}"
# shellcheck disable=SC2317 # called through eventually
is_down() { run_in "$first" lookup,down.test >"$work/said"; grep -q gaierror "$work/said"; }
ok "a resolver that is down" eventually 10 is_down
expect "is an error at once" "$(cat "$work/said")" lookup,down.test gaierror

# Without a network: no interface, no wait.
quiet=$(create 'env={"URL":"http://localhost:8080/"}')
put_guest "$quiet"
said=$(run_in "$quiet" interfaces lookup,any.test connect,198.51.100.2,80)
expect "no interface" "$said" interfaces lo
is "localhost stays localhost" "$(iii trigger sandbox::exec "sandbox_id=$quiet" \
    "cmd=printenv URL" | jq -r .stdout | tr -d '\n')" http://localhost:8080/
expect "no look-up without a network" "$said" lookup,any.test gaierror
expect "no connection" "$said" connect,198.51.100.2,80 ENETUNREACH

# Rules that change hold for the machines made afterwards, those of the pool among them.
sed -i 's/host_ports: \[8080\]/host_ports: [], allow_private_networks: true/' "$work/config.yaml"
kill -HUP "$(pid_of sandbox-qemu)"
eventually 5 grep -q settings "$work/log"
later=$(create network=true)
put_guest "$later"
expect "a port is closed for a new sandbox" "$(run_in "$later" connect,10.0.2.2,8080)" connect,10.0.2.2,8080 ECONNREFUSED
expect "and open for the old one" "$(run_in "$first" connect,10.0.2.2,8080)" connect,10.0.2.2,8080 connected
expect "private ranges are open" "$(run_in "$later" connect,10.77.0.1,8081)" connect,10.77.0.1,8081 connected
expect "loopback is not" "$(run_in "$later" connect,10.0.2.2,8081)" connect,10.0.2.2,8081 ECONNREFUSED
expect "nor are they for the old one" "$(run_in "$first" connect,10.77.0.1,8081)" connect,10.77.0.1,8081 ECONNREFUSED
finish
