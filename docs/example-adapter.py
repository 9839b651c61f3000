#!/usr/bin/env python3
"""A small adapter in nothing but Python's standard library: docs/adapter-protocol.md, step by step.

It makes sandboxes that can be listed and stopped, and says S304 to whatever else it is asked.
sandbox-conformance says what it lacks. Run: sandbox-conformance --adapter ./example-adapter.py
"""
import json
import os
import socket
import struct
import sys
import time
import uuid

NAME = os.path.basename(sys.argv[0])
HELLO, WELCOME, CALL, REPLY, ERROR, PING, PONG = 0, 1, 3, 4, 5, 12, 13
HANDSHAKE = bytes.fromhex("0053500000100000")
CONTRACT = {"major": 1, "minor": 2}


# msgpack, as much of it as the protocol uses.
def pack(value):
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return struct.pack(">BQ", 0xCF, value)  # ids must look so, other numbers may
    if isinstance(value, str):
        text = value.encode()
        return struct.pack(">BI", 0xDB, len(text)) + text
    if isinstance(value, bytes):
        return struct.pack(">BI", 0xC6, len(value)) + value
    if isinstance(value, (list, tuple)):
        return struct.pack(">BI", 0xDD, len(value)) + b"".join(map(pack, value))
    items = b"".join(pack(key) + pack(item) for key, item in value.items())
    return struct.pack(">BI", 0xDF, len(value)) + items


# Of the first byte: what it begins, and the size (or value) that follows it.
HEADS = {0xC4: ("bytes", "B"), 0xC5: ("bytes", "H"), 0xC6: ("bytes", "I"), 0xCA: ("number", "f"),
         0xCB: ("number", "d"), 0xCC: ("number", "B"), 0xCD: ("number", "H"), 0xCE: ("number", "I"),
         0xCF: ("number", "Q"), 0xD0: ("number", "b"), 0xD1: ("number", "h"), 0xD2: ("number", "i"),
         0xD3: ("number", "q"), 0xD9: ("text", "B"), 0xDA: ("text", "H"), 0xDB: ("text", "I"),
         0xDC: ("list", "H"), 0xDD: ("list", "I"), 0xDE: ("map", "H"), 0xDF: ("map", "I")}


def unpack_head(data, at):
    """Kind, size or value, and what follows it."""
    head, at = data[at], at + 1
    if head in (0xC0, 0xC2, 0xC3):
        return "number", {0xC0: None, 0xC2: False, 0xC3: True}[head], at
    if head in HEADS:
        kind, form = HEADS[head]
        return kind, struct.unpack_from(">" + form, data, at)[0], at + struct.calcsize(form)
    if head < 0x80 or head >= 0xE0:
        return "number", head if head < 0x80 else head - 256, at
    if head < 0x90:
        return "map", head & 15, at
    return ("list", head & 15, at) if head < 0xA0 else ("text", head & 31, at)


def unpack(data, at=0):
    """The value that begins at AT, and where the next one begins."""
    kind, size, at = unpack_head(data, at)
    if kind == "number":
        return size, at
    if kind in ("bytes", "text"):
        part = data[at:at + size]
        return (part if kind == "bytes" else part.decode()), at + size
    values = []
    for _ in range(size * 2 if kind == "map" else size):
        value, at = unpack(data, at)
        values.append(value)
    return (dict(zip(values[::2], values[1::2])) if kind == "map" else values), at


class Router:
    """The connection: nng's framing around one msgpack array a message."""

    def __init__(self, url):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(url.removeprefix("ipc://"))
        self.socket.sendall(HANDSHAKE)
        if self.read(8) != HANDSHAKE:
            sys.exit("the router speaks another protocol")
        self.send(HELLO, 0, {"role": "adapter", "name": NAME, "version": "1.0", "contract": CONTRACT,
                             "features": [], "instance": str(uuid.uuid4())})

    def read(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                sys.exit(0)  # the router is gone
            data += part
        return data

    def send(self, *message):
        data = pack(message)
        self.socket.sendall(struct.pack(">BQ", 1, len(data)) + data)

    def receive(self):
        _, size = struct.unpack(">BQ", self.read(9))
        return unpack(self.read(size))[0]


class Failure(Exception):
    TYPES = {"S001": "validation", "S002": "validation", "S100": "config", "S304": "platform"}

    def __init__(self, code, message, note=None):
        self.code, self.message, self.note = code, message, note

    def envelope(self, docs_base):
        return {"type": self.TYPES[self.code], "code": self.code, "message": self.message,
                "docs_url": docs_base + self.code, "retryable": False, "fix": None, "fix_note": self.note}


sandboxes = {}


def info(body):
    return {"adapter": NAME, "adapter_version": "1.0", "contract": CONTRACT, "features": []}


def create(body):
    image = body.get("image")
    if not isinstance(image, str):
        raise Failure("S001", "image: wants text, got %s" % json.dumps(image))
    if image != "python":
        raise Failure("S100", "image %s is not allowed; allowed: python" % image, "use the image python")
    sandbox_id = str(uuid.uuid4())
    sandboxes[sandbox_id] = {"image": image, "name": body.get("name"), "created_at": int(time.time())}
    return {"sandbox_id": sandbox_id, "image": image}


def list_all(body):
    now = int(time.time())
    return [{"sandbox_id": sandbox_id, "name": sandbox["name"], "image": sandbox["image"],
             "age_secs": now - sandbox["created_at"], "exec_in_progress": False, "exec_in_flight": 0,
             "exec_slots_free": 4, "stopped": False, "created_at": sandbox["created_at"], "idle_secs": 0,
             "cpus": 1, "memory_mb": 512, "network": False, "status": "ready"}
            for sandbox_id, sandbox in sandboxes.items()]


def stop(body):
    sandbox_id = body.get("sandbox_id")
    if sandbox_id not in sandboxes:
        raise Failure("S002", "no sandbox %s" % sandbox_id, "create a sandbox first")
    del sandboxes[sandbox_id]
    return {"sandbox_id": sandbox_id, "stopped": True}


OPERATIONS = {"adapter::info": info, "create": create, "list": list_all, "stop": stop}


def answer(operation, body):
    if operation not in OPERATIONS:
        raise Failure("S304", "%s does not implement %s" % (NAME, operation), "use an adapter that implements it")
    request = json.loads(body)
    if not isinstance(request, dict):
        raise Failure("S001", "the body must be an object")
    return OPERATIONS[operation](request)


def main():
    router = Router(os.environ["SANDBOX_ROUTER"])
    docs_base = ""
    while True:
        kind, call, *rest = router.receive()
        if kind == WELCOME:
            docs_base = rest[0]["docs_base"]
        elif kind == PING:
            router.send(PONG, call)
        elif kind == CALL:
            try:
                router.send(REPLY, call, json.dumps(answer(rest[0], rest[2])).encode())
            except Failure as failure:
                router.send(ERROR, call, json.dumps(failure.envelope(docs_base)).encode())


if __name__ == "__main__":
    main()
