#!/usr/bin/env python3
"""One file from one machine to many, by Onym, by HTTP and by BitTorrent: how long it takes until the
last one has it, verified, and what has left the machine that had it.

    run.py [--size 1G] [--nodes 16] [--rate 1gbit] [--only onym,http,bittorrent] [--folder DIR] [--json]

Each machine is a network namespace: the origin, a router, and the nodes behind it; the link between
origin and router has a rate. Onym has a node on each machine; the router's keeps what passes, in
memory. HTTP is nginx, or Python's server where that is not installed, and curl. BitTorrent is aria2,
with a tracker of this program, and needs disk for a copy on each node; the other two hash what comes
and keep nothing. Needs root; what is not installed is left out, and said.
Exit codes: 0 done, 1 something did not arrive, or Onym's origin sent a copy for every second node, 77 no
namespaces.
"""

import argparse
import contextlib
import hashlib
import http.server
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

ORIGIN = "10.72.0.1"
NAME = "/lab/data/set"
PIECE = 1 << 20
PATIENCE_S = 30
LIMIT_S = 3600


def call(*words: object) -> str:
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def until(is_so, what: str, patience: float = PATIENCE_S) -> None:
    end = time.monotonic() + patience
    while not is_so():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not within {patience:.0f} s")
        time.sleep(0.02)


class Network:
    """Origin, router and nodes; taken away at the end, with whatever runs there."""

    def __init__(self, nodes: int, rate: str) -> None:
        tag = f"set{os.getpid()}"
        self.origin, self.router = f"{tag}o", f"{tag}r"
        self.nodes = [f"{tag}n{k}" for k in range(1, nodes + 1)]
        self.running: list[subprocess.Popen] = []
        self.rate = rate

    def __enter__(self) -> "Network":
        for space in (self.origin, self.router, *self.nodes):
            call("ip", "netns", "add", space)
            call("ip", "-n", space, "link", "set", "lo", "up")
        for k, space in enumerate((self.origin, *self.nodes)):
            link = ["link", "add", "net", "netns", space, "type", "veth", "peer", "name", f"to{k}", "netns", self.router]
            call("ip", *link)
            near, far = (f"10.72.{k}.1", f"10.72.{k}.2") if k == 0 else (f"10.72.{k}.2", f"10.72.{k}.1")
            for where, end, address in ((space, "net", near), (self.router, f"to{k}", far)):
                call("ip", "-n", where, "addr", "add", f"{address}/24", "dev", end)
                call("ip", "-n", where, "link", "set", end, "up")
            call("ip", "-n", space, "route", "add", "default", "via", far)
        call("ip", "netns", "exec", self.router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for where, end in ((self.origin, "net"), (self.router, "to0")):
            bucket = ["tbf", "rate", self.rate, "burst", "256kb", "latency", "50ms"]
            call("tc", "-n", where, "qdisc", "add", "dev", end, "root", *bucket)
        return self

    def __exit__(self, *_: object) -> None:
        for child in reversed(self.running):
            child.terminate()
        for child in self.running:
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        for space in (self.origin, self.router, *self.nodes):
            subprocess.run(["ip", "netns", "delete", space], capture_output=True, check=False)

    def start(self, space: str, *words: object, said: Path, **options) -> subprocess.Popen:
        argv = ["ip", "netns", "exec", space, *map(str, words)]
        with said.open("w") as file:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=file, stderr=file, **options)
        self.running.append(child)
        return child

    def sent(self) -> int:
        """Octets that have left the origin."""
        return int(call("ip", "netns", "exec", self.origin, "cat", "/sys/class/net/net/statistics/tx_bytes"))


class Data:
    """The file, its digest, and where copies may lie."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size = folder, size
        self.path = folder / "set"
        whole, block = hashlib.sha256(), random.Random(72).randbytes(PIECE)
        self.pieces = b""
        with self.path.open("wb") as file:
            for at in range(0, size, PIECE):
                piece = (at.to_bytes(8, "big") + block[8:])[: size - at]
                whole.update(piece)
                self.pieces += hashlib.sha1(piece).digest()
                file.write(piece)
        self.digest = whole.hexdigest()


def hashed(net: Network, data: Data, readers: list[list[object]]) -> list[str]:
    """Runs a reader on each node; what failed, or read something else."""
    children = []
    for k, words in enumerate(readers):
        script = '"$@" | sha256sum'
        said = data.folder / f"reader{k}"
        children.append(net.start(net.nodes[k], "sh", "-c", script, "sh", *words, said=said))
    faults = []
    for k, child in enumerate(children):
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(LIMIT_S)
        said = (data.folder / f"reader{k}").read_text()
        if data.digest not in said:
            faults.append(f"{net.nodes[k]}: {said.strip()[-200:]}")
    return faults


def by_onym(net: Network, data: Data):
    onym, sockets = shutil.which("onym"), {}
    if onym is None:
        raise SystemExit("onym is not on PATH: PATH=$PWD/target/release:$PATH")
    spaces = (net.origin, net.router, *net.nodes)
    for space in spaces:
        sockets[space] = f"unix://{data.folder}/{space}.sock"
        sets = [f'faces.unix.path="{data.folder}/{space}.sock"', 'faces.udp.listen=["0.0.0.0:6363"]',
                "faces.tcp.listen=[]", "faces.websocket.listen=[]"]
        if space in net.nodes:
            # Nobody asks it but its own reader.
            sets.append("cs.packets_max=4096")
        if space == net.router:
            # It keeps all that passes.
            sets += [f"cs.packets_max={data.size // 8000 + 65536}", f"cs.bytes_max={2 * data.size + (64 << 20)}"]
        words = [word for one in sets for word in ("--set", one)]
        net.start(space, onym, "daemon", *words, said=data.folder / f"{space}.log")
    for space in spaces:
        until(lambda log=data.folder / f"{space}.log": "ready" in log.read_text(), f"the node of {space}")
    for k, space in enumerate((net.router, *net.nodes)):
        there = f"udp4://{ORIGIN if k == 0 else f'10.72.{k}.1'}:6363"
        call(onym, "face", "create", there, "--node", sockets[space])
        call(onym, "route", "add", NAME, "--via", there, "--node", sockets[space])
    put = data.folder / "put.log"
    net.start(net.origin, onym, "put", NAME, data.path, "--node", sockets[net.origin], said=put)
    until(lambda: "ready" in put.read_text(), "onym put")
    readers = [[onym, "get", NAME, "-q", "-o", "-", "--size-max", "none", "--node", sockets[s]] for s in net.nodes]
    return "onym", lambda: hashed(net, data, readers)


def by_http(net: Network, data: Data):
    folder, url = data.folder, f"http://{ORIGIN}:8080/set"
    if shutil.which("nginx"):
        temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in
                             ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "nginx.conf").write_text(
            f"daemon off; master_process off; error_log {folder}/nginx.log; pid {folder}/nginx.pid;\n"
            f"events {{}}\nhttp {{ access_log off; sendfile on; {temporary} "
            f"server {{ listen {ORIGIN}:8080; root {folder}; }} }}\n")
        server, words = "nginx", ["nginx", "-c", folder / "nginx.conf"]
    else:
        server, words = "Python", [sys.executable, "-m", "http.server", "8080", "--directory", folder]
    net.start(net.origin, *words, said=folder / "http.log")
    probe = ["ip", "netns", "exec", net.origin, "curl", "-sfI", url]
    until(lambda: subprocess.run(probe, capture_output=True, check=False).returncode == 0, "the HTTP server")
    return f"http ({server})", lambda: hashed(net, data, [["curl", "-sf", url]] * len(net.nodes))


def bencoded(value: object) -> bytes:
    if isinstance(value, int):
        return b"i%de" % value
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return b"%d:%s" % (len(value), value)
    return b"d" + b"".join(bencoded(k) + bencoded(value[k]) for k in sorted(value)) + b"e"


def by_bittorrent(net: Network, data: Data):
    if not shutil.which("aria2c"):
        return "bittorrent", "aria2 is not installed"
    need = (len(net.nodes) + 1) * data.size
    if shutil.disk_usage(data.folder).free < need:
        return "bittorrent", f"it needs {need >> 20} MB of disk in {data.folder}"
    torrent = data.folder / "set.torrent"
    info = {"length": data.size, "name": "set", "piece length": PIECE, "pieces": data.pieces}
    torrent.write_bytes(bencoded({"announce": f"http://{ORIGIN}:6969/announce", "info": info}))
    tracker = data.folder / "tracker.log"
    net.start(net.origin, sys.executable, __file__, "--tracker", said=tracker)
    until(lambda: "ready" in tracker.read_text(), "the tracker")

    def peer(space: str, folder: Path, *more: str) -> None:
        words = ["aria2c", "--quiet", "--no-conf", "--enable-dht=false", "--bt-enable-lpd=false", "--seed-ratio=0.0",
                 "--file-allocation=none", "--listen-port=6881", "--dir", folder, *more, torrent]
        net.start(space, *words, said=data.folder / f"{space}.aria2", cwd=folder)

    peer(net.origin, data.folder, "--bt-seed-unverified=true")

    def distribute() -> list[str]:
        folders = []
        for space in net.nodes:
            folder = data.folder / f"{space}.d"
            folder.mkdir()
            (folder / "done.sh").write_text(f"#!/bin/sh\ntouch {folder}/done\n")
            (folder / "done.sh").chmod(0o755)
            # It has checked each piece then.
            peer(space, folder, f"--on-bt-download-complete={folder}/done.sh")
            folders.append(folder)
        until(lambda: all((f / "done").exists() for f in folders), "BitTorrent", LIMIT_S)
        return []

    return "bittorrent (aria2)", distribute


SYSTEMS = {"onym": by_onym, "http": by_http, "bittorrent": by_bittorrent}


def tracker() -> None:
    """Tells peers of each other."""
    peers: set[bytes] = set()

    class Tracker(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            words = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query, encoding="latin-1")
            address = bytes(map(int, self.client_address[0].split(".")))
            peers.add(address + int(words["port"][0]).to_bytes(2, "big"))
            body = bencoded({"interval": 5, "peers": b"".join(sorted(peers))})
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = http.server.ThreadingHTTPServer((ORIGIN, 6969), Tracker)
    print("ready", flush=True)
    server.serve_forever()


def measure(name: str, given: argparse.Namespace) -> dict[str, object]:
    with tempfile.TemporaryDirectory(dir=given.folder, prefix="onym-set-") as folder:
        data = Data(Path(folder), given.size)
        with Network(given.nodes, given.rate) as net:
            shown, distribute = SYSTEMS[name](net, data)
            if isinstance(distribute, str):
                return {"system": shown, "left_out": distribute}
            before, begun = net.sent(), time.monotonic()
            faults = distribute()
            took, sent = time.monotonic() - begun, net.sent() - before
    return {"system": shown, "seconds": round(took, 2), "sent": sent, "copies": round(sent / given.size, 2),
            "faults": faults}


def octets(text: str) -> int:
    unit = {"k": 10**3, "M": 10**6, "G": 10**9}.get(text[-1], 1)
    return int(text.rstrip("kMG")) * unit


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=octets, default=octets("1G"))
    parser.add_argument("--nodes", type=int, choices=range(1, 101), metavar="N", default=16)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--only", default=",".join(SYSTEMS))
    parser.add_argument("--folder")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--tracker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.tracker:
        tracker()
    if os.geteuid() != 0 or not shutil.which("ip"):
        print("skipped: network namespaces need root, and iproute2")
        return 77
    rows = []
    for name in given.only.split(","):
        row = measure(name, given)
        rows.append(row)
        if given.json:
            continue
        if "left_out" in row:
            print(f"{row['system']:20}{row['left_out']}", flush=True)
        else:
            print(f"{row['system']:20}{row['seconds']:8.1f} s {row['sent'] / 1e6:10.1f} MB left the origin, "
                  f"{row['copies']:6.2f} copies", flush=True)
    if given.json:
        print(json.dumps(rows, indent=1))
    for row in rows:
        for fault in row.get("faults", []):
            print(f"{row['system']}: {fault}", file=sys.stderr)
    most = 1 + given.nodes / 2
    too_many = [row for row in rows if row["system"] == "onym" and row["copies"] > most]
    return 1 if too_many or any(row.get("faults") for row in rows) else 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
