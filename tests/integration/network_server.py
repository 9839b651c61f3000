"""The other side of network.sh: HTTP on port 80, echo of UDP on 7 and DNS on port 53, or where argv says, on all
addresses of its namespace or on one. Each connection is logged by the address it came to.

    network_server.py LOG ADDRESS HTTP-PORT DNS-PORT [HOW]  a port 0: not that one

HOW names are answered: `silent` not at all, `failing` by SERVFAIL.
"""
import socket
import struct
import sys
import threading
import time

ANSWERS_THAT_NEED_TCP = 60  # 16 bytes each: beyond 512
REBOUND = ["198.51.100.2", "10.77.0.2"]

log_path, address, http_port, dns_port = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
how = sys.argv[5] if len(sys.argv) > 5 else ""
family = socket.AF_INET6 if ":" in address else socket.AF_INET
rebind_count = 0


def note(text):
    with open(log_path, "a") as log:
        log.write(text + "\n")


def run(function, *arguments):
    threading.Thread(target=function, args=arguments, daemon=True).start()


def listen(kind, port):
    sock = socket.socket(family, kind)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((address, port))
    return sock


# Paths of HTTP.


def send_bytes(client, mebibytes):
    block = bytes(1 << 20)
    for done in range(mebibytes):
        client.sendall(block)
        note("sent %d" % (done + 1))


def tick(client):
    while True:
        client.sendall(b".")
        if not client.recv(1):
            return
        time.sleep(1)


def hold(client):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    client.recv(1)
    note("let go")


def sink(client):
    size = 0
    while data := client.recv(1 << 20):
        size += len(data)
    client.sendall(b"%d" % size)


def serve(client):
    lines = client.makefile("rb", 0)  # what follows the request's line is left in the socket
    words = lines.readline().decode().split()
    path = words[1] if len(words) > 1 else "/nothing"
    note("asked for " + path)
    head = b"HTTP/1.0 200 OK\r\n\r\n"
    while path in ("/redirect", "/hello", "/") and lines.readline().strip():
        pass
    if path == "/redirect":
        client.sendall(b"HTTP/1.0 302 Found\r\nLocation: http://10.77.0.2/hello\r\n\r\n")
    elif path.startswith("/bytes/"):
        send_bytes(client, int(path[7:]))
    elif path in ("/tick", "/hold", "/sink"):
        {"/tick": tick, "/hold": hold, "/sink": sink}[path](client)
    else:
        client.sendall(head + b"hello")
    client.close()


def http(sock):
    sock.listen(64)
    while True:
        client, _ = sock.accept()
        note("came to %s" % client.getsockname()[0].replace("::ffff:", ""))
        run(serve, client)


def udp_echo(sock):
    while True:
        data, asker = sock.recvfrom(65536)
        note("datagram")
        sock.sendto(data, asker)


# DNS: only A, by name.


def addresses_of(name):
    global rebind_count
    if name.startswith("big"):
        return ["203.0.113.%d" % i for i in range(1, ANSWERS_THAT_NEED_TCP + 1)]
    if name.startswith("rebind"):
        rebind_count += 1
        return [REBOUND[min(rebind_count, 2) - 1]]
    return ["198.51.100.2"]


def answer(query, size_max):
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode())
        at += 1 + query[at]
    kind = struct.unpack("!H", query[at + 1 : at + 3])[0]
    question = query[12 : at + 5]
    note("asked for the name " + ".".join(labels))
    if how == "failing":
        return query[:2] + struct.pack("!5H", 0x8182, 1, 0, 0, 0) + question
    records = addresses_of(".".join(labels)) if kind == 1 else []
    body = b"".join(
        b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04" + socket.inet_aton(a) for a in records
    )
    if 12 + len(question) + len(body) > size_max:
        return query[:2] + struct.pack("!5H", 0x8780, 1, 0, 0, 0) + question
    return query[:2] + struct.pack("!5H", 0x8580, 1, len(records), 0, 0) + question + body


def dns_size(query):
    """What the asker takes over UDP: of an OPT record, the last one, else 512."""
    has_options = struct.unpack("!H", query[10:12])[0] > 0
    return struct.unpack("!H", query[-8:-6])[0] if has_options else 512


def dns_udp(sock):
    while True:
        query, asker = sock.recvfrom(4096)
        if len(query) < 17:
            continue
        reply = answer(query, dns_size(query))
        note("dns udp %d" % len(reply))
        if how != "silent":
            sock.sendto(reply, asker)


def dns_tcp_client(client):
    head = client.recv(2)
    if len(head) < 2:
        return
    size = struct.unpack("!H", head)[0]
    reply = answer(client.recv(size), 65535)
    note("dns tcp %d" % len(reply))
    client.sendall(struct.pack("!H", len(reply)) + reply)
    client.close()


def dns_tcp(sock):
    sock.listen(64)
    while True:
        run(dns_tcp_client, sock.accept()[0])


if http_port:
    run(http, listen(socket.SOCK_STREAM, http_port))
    run(udp_echo, listen(socket.SOCK_DGRAM, 7))
if dns_port:
    run(dns_udp, listen(socket.SOCK_DGRAM, dns_port))
    run(dns_tcp, listen(socket.SOCK_STREAM, dns_port))
note("ready")
threading.Event().wait()
