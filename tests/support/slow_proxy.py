#!/usr/bin/env python3
"""A TCP proxy on the loopback that becomes slow: what the other side answers goes through until BYTES of
one connection have come, and then one byte a quarter of a second.

    slow_proxy.py PORT TO-PORT BYTES
"""
import socket
import sys
import threading
import time

PIECE = 65536


def pump(source, sink):
    try:
        while data := source.recv(PIECE):
            sink.sendall(data)
    except OSError:
        pass


def trickle(source, sink, free):
    try:
        while data := source.recv(PIECE if free > 0 else 1):
            if free <= 0:
                time.sleep(0.25)
            free -= len(data)
            sink.sendall(data)
    except OSError:
        pass
    source.close()
    sink.close()


def main():
    port, to_port, free = map(int, sys.argv[1:])
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        client, _ = listener.accept()
        server = socket.create_connection(("127.0.0.1", to_port))
        threading.Thread(target=pump, args=(client, server), daemon=True).start()
        threading.Thread(target=trickle, args=(server, client, free), daemon=True).start()


main()
