#!/usr/bin/env python3
"""Makes an OCI layout by hand, so that it can hold what no tool would write.

    oci_layout.py FOLDER TAG [NAME=VALUE]... < LAYERS

LAYERS is JSON: a list of layers, each a list of members {"name", "type", "data", "link", "mode",
"uid", "repeat", "zeros", "sparse"}; type is one of file (default), dir, link, hard, block, char, fifo.
`repeat` makes a file of so many MiB of noise, `zeros` one of so many MiB of nothing, `sparse` one that
says so and has no bytes at all. The values are of the configuration: architecture=, workdir=, user=,
env= (may come again); and compress=gzip, compress=zstd of the layers.
"""
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile

TYPES = {
    "file": tarfile.REGTYPE,
    "dir": tarfile.DIRTYPE,
    "link": tarfile.SYMTYPE,
    "hard": tarfile.LNKTYPE,
    "block": tarfile.BLKTYPE,
    "char": tarfile.CHRTYPE,
    "fifo": tarfile.FIFOTYPE,
}


def member_of(wish):
    member = tarfile.TarInfo(wish["name"])
    member.type = TYPES[wish.get("type", "file")]
    member.linkname = wish.get("link", "")
    member.mode = int(wish.get("mode", "0755"), 8)
    member.uid = member.gid = wish.get("uid", 0)
    member.devmajor, member.devminor = 8, 0
    if member.type != tarfile.REGTYPE:
        return member, b""
    if "repeat" in wish:
        data = os.urandom(wish["repeat"] << 20)
    elif "zeros" in wish:
        data = bytes(wish["zeros"] << 20)
    elif "sparse" in wish:
        data = b"0\n".ljust(512, b"\0")  # the map of its parts: none
        member.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0",
                              "GNU.sparse.name": wish["name"],
                              "GNU.sparse.realsize": str(wish["sparse"] << 20)}
    else:
        data = wish.get("data", "").encode()
    member.size = len(data)
    return member, data


def layer_of(members):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for wish in members:
            member, data = member_of(wish)
            archive.addfile(member, io.BytesIO(data))
    return raw.getvalue()


def compressed(layer, how):
    if how == "gzip":
        return gzip.compress(layer, 1)
    return subprocess.run(["zstd", "-q", "-c"], input=layer, capture_output=True, check=True).stdout


def put_blob(folder, data, media_type):
    digest = hashlib.sha256(data).hexdigest()
    with open(f"{folder}/blobs/sha256/{digest}", "wb") as file:
        file.write(data)
    return {"mediaType": f"application/vnd.oci.image.{media_type}", "digest": f"sha256:{digest}",
            "size": len(data)}


def put_layers(folder, layers, how):
    if not how:
        return [put_blob(folder, layer, "layer.v1.tar") for layer in layers]
    return [put_blob(folder, compressed(layer, how), f"layer.v1.tar+{how}") for layer in layers]


def config_of(values, diff_ids):
    config = {"Env": [value for name, value in values if name == "env"]}
    architecture = "amd64"
    for name, value in values:
        if name == "workdir":
            config["WorkingDir"] = value
        elif name == "user":
            config["User"] = value
        elif name == "architecture":
            architecture = value
    return {"architecture": architecture, "os": "linux", "config": config,
            "rootfs": {"type": "layers", "diff_ids": diff_ids}}


def main():
    folder, tag = sys.argv[1:3]
    values = [word.split("=", 1) for word in sys.argv[3:]]
    os.makedirs(f"{folder}/blobs/sha256", exist_ok=True)
    tars = [layer_of(members) for members in json.load(sys.stdin)]
    layers = put_layers(folder, tars, dict(values).get("compress"))
    diff_ids = [f"sha256:{hashlib.sha256(tar).hexdigest()}" for tar in tars]
    config = put_blob(folder, json.dumps(config_of(values, diff_ids)).encode(), "config.v1+json")
    manifest = put_blob(folder, json.dumps({"schemaVersion": 2, "config": config,
                                            "layers": layers}).encode(), "manifest.v1+json")
    manifest["annotations"] = {"org.opencontainers.image.ref.name": tag}
    with open(f"{folder}/oci-layout", "w") as file:
        json.dump({"imageLayoutVersion": "1.0.0"}, file)
    with open(f"{folder}/index.json", "w") as file:
        json.dump({"schemaVersion": 2, "manifests": [manifest]}, file)


main()
