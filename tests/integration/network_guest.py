"""Inside the guest of network.sh: one check a word of argv, `NAME RESULT SECONDS` a line."""
import errno
import os
import socket
import struct
import sys
import threading
import time

BLOCK = bytearray(1 << 20)
INTERFACE = next((name for name in os.listdir("/sys/class/net") if name != "lo"), "")
GATEWAY_V4 = bytes.fromhex("52550a000202")
V4_TARGETS = ("127.0.0.1", "10.0.2.2", "10.0.2.3", "10.0.2.4", "10.0.2.255", "255.255.255.255",
              "0.0.0.0", "224.0.0.1", "10.77.0.1", "198.51.100.1")
V6_TARGETS = ("::1", "::", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::1",
              "fe80::2", "fe80::3", "fd5a:6b3c:7e21:1::2", "fd5a:6b3c:7e21:1::3",
              "fd5a:6b3c:7e21:1::77", "fd77::1", "2001:db8:1::1", "ff02::1", "fec0::2")


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except OSError as error:
        cause = getattr(error, "reason", error)
        return errno.errorcode.get(getattr(cause, "errno", 0), type(cause).__name__)


def connect(address, port):
    socket.create_connection((address, int(port)), 20).close()
    return "connected"


def fetch(url):
    import urllib.request  # slow to load, and few need it

    return urllib.request.urlopen(url, timeout=20).read().decode()


def udp(address, port):
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    sock.sendto(b"x", (address, int(port)))
    return "sent"


def echo(address, port, size):
    """A datagram there and back, whole; connected, so that a refusal is told."""
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(20)
    six = sock.family == socket.AF_INET6
    sock.setsockopt(socket.IPPROTO_IPV6 if six else socket.IPPROTO_IP, 25 if six else 11, 1)  # RECVERR
    sock.connect(socket.getaddrinfo(address, int(port), type=socket.SOCK_DGRAM)[0][4])
    data = os.urandom(int(size))
    sock.send(data)
    return "same" if sock.recv(65536) == data else "another"


def interfaces():
    return "+".join(sorted(os.listdir("/sys/class/net")))


def scan(address, ports):
    """A socket for each of so many ports, over both protocols, and none of them closed."""
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
    sockets = []
    for port in range(1, int(ports) + 1):
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            sock = socket.socket(socket.AF_INET, kind)
            sock.setblocking(False)
            sock.connect_ex((address, port))
            outcome(sock.send, b"x")
            sockets.append(sock)
    return "done"


def frames(gateway_port):
    """What no stack would send: to the gateway's hardware address, by no route of ours."""
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    raw.bind((INTERFACE, 0))
    own = raw.getsockname()[4]
    port = struct.pack("!HHHH", 4000, int(gateway_port), 9, 0) + b"x"
    sent = 0
    for target in V4_TARGETS:
        for fragment in (0, 0x2000, 0x1, 0x4000):
            head = struct.pack("!BBHHHBBH", 0x45, 0, 29, 7, fragment, 64, 17, 0)
            head += socket.inet_aton("10.0.2.15") + socket.inet_aton(target)
            total = sum(struct.unpack("!10H", head))
            total = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
            head = head[:10] + struct.pack("!H", total) + head[12:]
            sent += raw.send(GATEWAY_V4 + own + b"\x08\x00" + head + port) > 0
    for target in V6_TARGETS:
        for next_header in (17, 0, 43, 44, 60):
            head = struct.pack("!IHBB", 6 << 28, len(port), next_header, 64)
            head += socket.inet_pton(socket.AF_INET6, "fd5a:6b3c:7e21:1::f")
            head += socket.inet_pton(socket.AF_INET6, target)
            sent += raw.send(GATEWAY_V4 + own + b"\x86\xdd" + head + port) > 0
    return "%d" % sent


def lookup(name):
    found = socket.getaddrinfo(name, 80, socket.AF_INET, socket.SOCK_STREAM)
    return "%d" % len(found)


def lookups(count):
    results = []
    threads = [
        threading.Thread(target=lambda i=i: results.append(outcome(lookup, "n%d.test" % i)))
        for i in range(int(count))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return "%d" % results.count("1")


def request(address, path):
    sock = socket.create_connection((address, 80), 60)
    sock.sendall(b"GET /%s HTTP/1.0\r\n" % path.encode())
    return sock


def receive(sock):
    size = 0
    while got := sock.recv_into(BLOCK):
        size += got
    return "%d" % (size >> 20)


def download(address, mebibytes):
    return receive(request(address, "bytes/" + mebibytes))


def upload(address, mebibytes):
    sock = request(address, "sink")
    for _ in range(int(mebibytes)):
        sock.sendall(BLOCK)
    sock.shutdown(socket.SHUT_WR)
    return "%d" % (int(sock.recv(64)) >> 20)


def slow(address, mebibytes):
    """Takes nothing until a file says so, then all."""
    sock = request(address, "bytes/" + mebibytes)
    while not os.path.exists("/go"):
        time.sleep(0.1)
    return receive(sock)


def tick(address):
    """A server that is asked once a second, over a connection it made."""
    sock = request(address, "tick")
    while sock.recv(1):
        sock.sendall(b".")
    return "ended"


def hold(address):
    sock = request(address, "hold")
    sock.settimeout(None)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    return "%d" % len(sock.recv(1))


for word in sys.argv[1:]:
    name, *arguments = word.split(",")
    began = time.monotonic()
    result = outcome(globals()[name], *arguments)
    print(word, result, "%d" % (time.monotonic() - began), flush=True)
