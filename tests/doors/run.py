#!/usr/bin/env python3
"""What happens around a node that is none of its packets: clocks that jump, memory and disks that end,
groups that shout.

    tests/doors/run.py ONYM [CASE]...

Each case keeps a ping or a file running through a daemon while it does its worst. A case that cannot
be played here (no libfaketime, not root) is named and left out. docs/security.md has a row for each.
"""

import json
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import ndn

HERE = Path(__file__).resolve().parent
PATIENCE = 60.0
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


class Skipped(Exception):
    """This case cannot be played here."""


def until(check: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not check():
        if time.monotonic() > end:
            raise AssertionError(f"not before the deadline: {what}")
        time.sleep(0.05)


class Node:
    """A daemon in a folder of its own."""

    def __init__(self, onym: str, folder: Path, *settings: str, netns: str = "",
                 env: dict[str, str] | None = None, limit: int = 0, stderr: str = "",
                 group: Path | None = None):
        self.onym, self.folder = onym, folder
        self.socket = folder / "n.sock"
        self.uri = f"unix://{self.socket}"
        self.log = folder / "log"
        own = [f'faces.unix.path="{self.socket}"', "faces.websocket.listen=[]"]
        own += [s for s in ("faces.udp.listen=[]", "faces.tcp.listen=[]")
                if not any(t.startswith(s.split("=")[0]) for t in settings)]
        words = [w for s in (*own, *settings) for w in ("--set", s)]
        prefix = ["ip", "netns", "exec", netns] if netns else []

        def bound() -> None:
            if limit:
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            if group:
                group.write_text("0")

        out = open(stderr or self.log, "w")
        self.child = subprocess.Popen([*prefix, onym, "daemon", *words], stderr=out,
                                      env={**os.environ, **(env or {})}, preexec_fn=bound)
        out.close()
        self.netns = prefix
        until(self.is_up, f"the daemon is up: {self.log}")

    def is_up(self) -> bool:
        assert self.child.poll() is None, f"the daemon ended: {self.text()}"
        return self.socket.exists() and self.run("status", check=False).returncode == 0

    def text(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([*self.netns, self.onym, *words, "--node", self.uri], text=True,
                              capture_output=True, timeout=PATIENCE)
        assert not check or done.returncode == 0, f"{words}: {done.returncode} {done.stderr}"
        return done

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self.netns, self.onym, *words, "--node", self.uri],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ping(self, prefix: str, count: int = 20) -> None:
        """Every ping is answered."""
        self.run("ping", prefix, "--count", str(count), "--interval", "20")

    def is_alive(self) -> bool:
        return self.child.poll() is None

    def stop(self) -> None:
        self.child.terminate()
        self.child.wait(PATIENCE)

    def resident(self) -> int:
        """Octets of memory in use."""
        words = Path(f"/proc/{self.child.pid}/statm").read_text().split()
        return int(words[1]) * resource.getpagesize()


@contextmanager
def ended(*children: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        for child in children:
            child.terminate()
            child.wait(PATIENCE)


def serve(node: Node, prefix: str) -> subprocess.Popen[bytes]:
    server = node.start("ping-server", prefix)
    until(lambda: node.run("ping", prefix, "-c", "1", "-o", "500", check=False).returncode == 0,
          f"{prefix} is served")
    return server


def clock(onym: str, folder: Path) -> None:
    """The clock of the day jumps by a day and a year, both ways, under traffic."""
    if FAKETIME is None:
        raise Skipped("no libfaketime")
    jump = folder / "clock"
    jump.write_text("+0")
    env = {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(jump),
           "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    node = Node(onym, folder, env=env)
    source, copy = folder / "file", folder / "copy"
    source.write_bytes(random.Random(1).randbytes(4 << 20))
    try:
        with ended(serve(node, "/clock"), node.start("put", "/file", str(source))):
            until(lambda: node.run("get", "/file", "-o", str(copy), check=False).returncode == 0,
                  "the file is served")
            for step in ["+1d", "-1d", "+365d", "-365d", "+0"]:
                pings = node.start("ping", "/clock", "--count", "100", "--interval", "20")
                jump.write_text(step)
                node.run("get", "/file", "-o", str(copy))
                assert copy.read_bytes() == source.read_bytes(), step
                assert pings.wait(PATIENCE) == 0, f"pings were lost: {step}"
                # Commands, whose signatures have a time, count as before.
                name = step.replace("+", "p").replace("-", "m")
                with ended(serve(node, f"/clock/{name}")):
                    node.ping(f"/clock/{name}")
    finally:
        node.stop()


def memory(onym: str, folder: Path) -> None:
    """`ulimit -v`: a node whose tables would take more than there is."""
    node = Node(onym, folder, "cs.bytes_max=268435456", "shards=1", limit=3 << 30)
    source, copy = folder / "file", folder / "copy"
    source.write_bytes(random.Random(2).randbytes(64 << 20))
    try:
        with ended(serve(node, "/memory"), node.start("put", "/file", str(source))):
            until(lambda: node.run("get", "/file", "-o", str(copy), check=False).returncode == 0,
                  "the file is served")
            assert copy.stat().st_size == source.stat().st_size
            node.ping("/memory")
            assert node.is_alive()
    finally:
        node.stop()


@contextmanager
def group(octets: int) -> Iterator[Path]:
    """A control group with a limit of memory: the file that takes processes into it."""
    for root, file in [("memory", "memory.limit_in_bytes"), (".", "memory.max")]:
        folder = Path("/sys/fs/cgroup") / root / f"onym-doors-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            if not (folder / file).exists():
                continue
            (folder / file).write_text(str(octets))
            yield folder / "cgroup.procs"
            return
        finally:
            until(lambda: not (folder / "cgroup.procs").read_text(), "the group is empty")
            folder.rmdir()
    raise Skipped("no control group of memory can be made")


def cgroup(onym: str, folder: Path) -> None:
    """A control group with 256 MB: tables that fit hold, others are told of at the start."""
    with group(256 << 20) as procs:
        own = ("cs.bytes_max=67108864", "pit.bytes_max=33554432", "shards=1")
        for settings, fits in [(own, True), ((), False)]:
            place = folder / str(fits)
            place.mkdir()
            node = Node(onym, place, *settings, 'cs.unsolicited="admit-local"', group=procs)
            try:
                assert ("cs.bytes_max" in node.text()) != fits, node.text()
                if not fits:
                    continue
                with ended(serve(node, "/cgroup")):
                    attacker = ndn.App(str(node.socket))
                    filler = b"x" * 8000
                    for n in range(40):
                        attacker.send(b"".join(
                            ndn.data(ndn.name(b"fill", ndn.RNG.randbytes(8)), filler)
                            + ndn.interest(ndn.name(b"dead", ndn.RNG.randbytes(8), filler),
                                           lifetime_ms=3_600_000) for _ in range(500)))
                    node.ping("/cgroup")
                    # What the kernel would end it for: its own memory, without what files cached.
                    assert node.resident() < 256 << 20, node.resident()
                    attacker.close()
                    node.ping("/cgroup")
                    assert node.is_alive()
            finally:
                node.stop()


def silence(onym: str, folder: Path) -> None:
    """The log goes to a full disk, and so does a capture."""
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.bind(("127.0.0.1", 0))
    port = peer.getsockname()[1]
    face = f'face=[{{uri="udp4://127.0.0.1:{port}", pcap="/dev/full"}}]'
    node = Node(onym, folder, face, "log.filter=\"debug\"", stderr="/dev/full")
    try:
        with ended(serve(node, "/disk")):
            node.run("route", "add", "/far", "--via", f"udp4://127.0.0.1:{port}")
            node.run("ping", "/far", "-c", "5", "-i", "10", "-o", "200", check=False)
            node.ping("/disk")
            assert node.is_alive()
    finally:
        node.stop()


def disk(onym: str, folder: Path) -> None:
    """The disk is full where a rendezvous keeps its scopes."""
    if os.geteuid() != 0:
        raise Skipped("not root")
    small = folder / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(small)],
                             capture_output=True)
    if mounted.returncode != 0:
        raise Skipped("no mount")
    try:
        node = Node(onym, folder, "push.enabled=true", f'push.state="{small}/state"',
                    'push.node="1"')
        try:
            filler = small / "filler"
            fill(filler)
            with ended(serve(node, "/disk")):
                with ended(*(node.start("scope", "publish", f"/{n:x}") for n in range(1, 20))):
                    until(lambda: "scopes are not kept" in node.text(), "the disk is full")
                    node.ping("/disk")
                    filler.unlink()
                    until(lambda: "scopes are kept again" in node.text(), "there is room again")
                    node.ping("/disk")
        finally:
            node.stop()
    finally:
        subprocess.run(["umount", str(small)], check=True)


def fill(file: Path) -> None:
    """Writes until the disk is full."""
    with file.open("wb", buffering=0) as out:
        try:
            while True:
                out.write(b"x" * 4096)
        except OSError:
            pass


@contextmanager
def pair() -> Iterator[tuple[str, str]]:
    """Two network namespaces joined by a veth, 10.9.0.1 and 10.9.0.2."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        raise Skipped("not root, or no ip")
    names = [f"doors-{os.getpid()}-{side}" for side in "ab"]

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    made = []
    try:
        for name in names:
            ip("netns", "add", name)
            made.append(name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", names[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0",
           "netns", names[1])
        for at, name in enumerate(names, 1):
            ip("-n", name, "address", "add", f"10.9.0.{at}/16", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "route", "add", "224.0.0.0/4", "dev", "eth0")
        yield names[0], names[1]
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name], check=True)


def multicast(onym: str, folder: Path) -> None:
    """A neighbour shouts at the multicast group and at the port: junk, commands, endless fragments."""
    with pair() as (here, there):
        node = Node(onym, folder, 'faces.udp.listen=["10.9.0.1:6363"]',
                    'faces.udp.multicast=["224.0.23.170:56363"]', netns=here)
        try:
            with ended(serve(node, "/group")):
                shout = subprocess.Popen(["ip", "netns", "exec", there, sys.executable, HERE / "shout.py",
                                          "224.0.23.170", "56363"])
                before = node.resident()
                while shout.poll() is None:
                    node.ping("/group", 10)
                assert shout.returncode == 0
                node.ping("/group")
                assert node.resident() < before + (400 << 20), node.resident()
                faces = node.run("face", "list").stdout
                assert "unix" in faces, faces
        finally:
            node.stop()


@contextmanager
def lan() -> Iterator[list[str]]:
    """Three network namespaces on one bridge, 10.9.0.N and fd00:9::N, each with its `eth0`."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        raise Skipped("not root, or no ip")
    names = [f"doors-{os.getpid()}-{side}" for side in ("1", "2", "3", "switch")]

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    made = []
    try:
        for name in names:
            ip("netns", "add", name)
            made.append(name)
            ip("-n", name, "link", "set", "lo", "up")
        switch = names.pop()
        ip("-n", switch, "link", "add", "br0", "type", "bridge")
        ip("-n", switch, "link", "set", "br0", "up")
        for at, name in enumerate(names, 1):
            ip("-n", switch, "link", "add", f"p{at}", "type", "veth", "peer", "name", "eth0",
               "netns", name)
            ip("-n", switch, "link", "set", f"p{at}", "master", "br0", "up")
            ip("-n", name, "address", "add", f"10.9.0.{at}/24", "dev", "eth0")
            ip("-n", name, "address", "add", f"fd00:9::{at}/64", "dev", "eth0", "nodad")
            ip("-n", name, "link", "set", "eth0", "up")
        yield names
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name], check=True)


def station(netns: str) -> str:
    done = subprocess.run(["ip", "-n", netns, "-o", "link", "show", "eth0"], text=True, check=True,
                          capture_output=True)
    return done.stdout.split("link/ether ")[1].split()[0]


def neighbour(onym: str, folder: Path) -> None:
    """A neighbour says that the addresses of two nodes are its own: what goes by addresses is lost
    while it lies, and comes again; what goes by stations does not notice."""
    with lan() as (one, two, liar):
        listen = ('faces.ether.interfaces=["eth0"]',)
        for place in ("one", "two"):
            (folder / place).mkdir()
        here = Node(onym, folder / "one", 'faces.udp.listen=["10.9.0.1:6363", "[fd00:9::1]:6363"]',
                    *listen, netns=one)
        there = Node(onym, folder / "two", 'faces.udp.listen=["10.9.0.2:6363", "[fd00:9::2]:6363"]',
                     *listen, netns=two)
        try:
            ways = {"/four": "udp4://10.9.0.2:6363", "/six": "udp6://[fd00:9::2]:6363",
                    "/station": f"ether://[{station(two)}]"}
            for prefix, to in ways.items():
                local = ["--local", "dev://eth0"] if prefix == "/station" else []
                here.run("face", "create", to, *local)
                faces = json.loads(here.run("face", "list", "--json").stdout)
                face = next(f["id"] for f in faces if f["remote"] == to)
                here.run("route", "add", prefix, "--via", str(face))
            servers = [serve(there, prefix) for prefix in (*ways, "/own")]
            with ended(*servers, serve(here, "/here")):
                for prefix in ways:
                    here.ping(prefix)
                lie = subprocess.Popen(["ip", "netns", "exec", liar, sys.executable, HERE / "lie.py"],
                                       stdout=subprocess.PIPE)
                with ended(lie):
                    for _ in range(10):
                        lie.stdout.readline()
                    lost = [prefix for prefix in ("/four", "/six") if here.run(
                        "ping", prefix, "-c", "10", "-i", "10", "-o", "200",
                        check=False).returncode != 0]
                    assert lost, "the lie was believed by nobody: this case shows nothing"
                    for prefix, node in [("/station", here), ("/own", there), ("/here", here)]:
                        node.ping(prefix)
                    print(f"  lost while it lies: {' '.join(lost)}; by station none")
                # The true owners are asked again by who still believes the lie.
                for netns in (one, two):
                    subprocess.run(["ip", "-n", netns, "neigh", "flush", "all"], check=True)
                for prefix in ways:
                    until(lambda prefix=prefix: here.run(
                        "ping", prefix, "-c", "1", "-o", "500", check=False).returncode == 0,
                        f"{prefix} is answered again")
                    here.ping(prefix)
        finally:
            here.stop()
            there.stop()


SECRET = b"what nobody else may read" * 400


def served(onym: str, folder: Path) -> None:
    """Root serves a folder that another user may write, who does his worst with it."""
    if os.geteuid() != 0:
        raise Skipped("not root")
    folder.chmod(0o755)
    theirs, own = folder / "theirs", folder / "own"
    for place in (theirs, own):
        place.mkdir()
    os.chown(theirs, 54323, 54323)
    (own / "secret").write_bytes(SECRET)
    for path in (own / "secret", own):
        path.chmod(0o700)
    # Where the machine lets everybody link everything, his links are tried, too.
    linked = theirs / "linked"
    os.link(own / "secret", linked)
    # The kernel's rule is for files that he cannot read: one that root made stands for it.
    os.chmod(theirs, 0o777)
    node = Node(onym, folder)
    swapping = subprocess.Popen([sys.executable, HERE / "swap.py", str(theirs), str(own / "secret")],
                                stdout=subprocess.PIPE, text=True)
    try:
        with ended(node.start("serve", str(theirs), "/shelf"), serve(node, "/victim"), swapping):
            assert swapping.stdout.readline() in ("refused\n", "linked\n")
            assert swapping.stdout.readline() == "ready\n"
            until(lambda: node.run("ls", "/shelf", check=False).returncode == 0, "it is served")
            out, fetched = folder / "out", 0
            names = ["inner/secret", "way/secret", "file", "link", "pipe", "linked", "hard", "leased",
                     "grows", "inner", "..", "inner/../../own/secret"]
            for _ in range(4):
                for path in names:
                    begun = time.monotonic()
                    got = node.run("get", f"/shelf/{path}", "-o", str(out), check=False)
                    assert time.monotonic() - begun < 20, path
                    if got.returncode == 0:
                        fetched += 1
                        assert SECRET[:25] not in out.read_bytes(), f"{path} leads out of the folder"
                node.run("ls", "/shelf/inner", check=False)
            assert fetched, "nothing was fetched: this case shows nothing"
            # A folder of very many entries is looked at in part.
            begun = time.monotonic()
            node.run("ls", "/shelf/many")
            assert time.monotonic() - begun < 10
            assert swapping.poll() is None, "the other user stopped"
            node.run("get", "/shelf/inner/file", "-o", str(out), check=False)
            until(lambda: node.run("ls", "/shelf", check=False).returncode == 0, "it is still served")
            node.ping("/victim")
    finally:
        node.stop()


CASES = [clock, memory, cgroup, silence, disk, multicast, neighbour, served]


def play(cases: list[Callable[[str, Path], None]]) -> int:
    """Plays the cases that the command line names, or all; the exit code."""
    onym, wanted = str(Path(sys.argv[1]).resolve()), sys.argv[2:]
    failed = 0
    for case in cases:
        if wanted and case.__name__ not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            start = time.monotonic()
            try:
                case(onym, Path(folder))
                word = "ok"
            except Skipped as why:
                word = f"skipped: {why}"
            except Exception as error:
                failed += 1
                word = f"FAILED: {error!r}"
                log = Path(folder) / "log"
                if log.exists():
                    print(log.read_text()[-3000:], file=sys.stderr)
            print(f"{case.__name__}: {word} ({time.monotonic() - start:.1f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(play(CASES))
