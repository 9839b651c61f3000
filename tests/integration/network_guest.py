"""Inside the guest of network.sh: one check a word of argv, `NAME RESULT SECONDS` a line."""
import errno
import os
import socket
import sys
import threading
import time

BLOCK = bytearray(1 << 20)


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
