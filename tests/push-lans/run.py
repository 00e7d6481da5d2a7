#!/usr/bin/env python3
"""Push over two LANs that an IP network joins, and a publication of 20 MB over it with losses.

    tests/push-lans/run.py ONYM [LOSS]

        a ── Ethernet ── b ── UDP, LOSS (0.02) of the datagrams lost ── c ── Ethernet ── d

Four daemons in network namespaces. A file published at a arrives at c and d as it was, each node
takes a bounded memory, and `explain --push` names the links. Exit status 77: not root, or no `ip`
or `iptables`.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from nodes import PATIENCE, inside, ip, is_root_with, running, settings, space, until

OCTETS = 20 << 20
MEMORY_MAX = 256 << 20
MACS = {n: f"02:00:00:00:00:0{n}" for n in "abcd"}
ADDRESSES = {"b": "10.99.0.2", "c": "10.99.0.3"}
PORT = 6363


def ethernet(other: str) -> tuple[str, str]:
    """The face to a node on the LAN, and the setting that makes it."""
    uri = f"ether://[{MACS[other]}]"
    return uri, f'face=[{{uri="{uri}", local="dev://lan"}}]'


def udp(other: str) -> str:
    return f"udp4://{ADDRESSES[other]}:{PORT}"


def sets_of(name: str) -> list[str]:
    lan = {"a": "b", "b": "a", "c": "d", "d": "c"}[name]
    uri, face = ethernet(lan)
    links = [uri] + [udp(other) for n, other in ("bc", "cb") if n == name]
    listen = [f"{ADDRESSES[name]}:{PORT}"] if name in ADDRESSES else []
    roles = ["rendezvous", "topology"] if name == "b" else []
    link = ", ".join(f'{{face="{uri}"}}' for uri in links)
    return [
        f"faces.udp.listen={json.dumps(listen)}",
        f"push.node={name}",
        f"push.roles={json.dumps(roles)}",
        f"push.link=[{link}]",
        face,
    ]


def daemon(onym: str, folder: Path, name: str, netns: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
    sets = [
        f'faces.unix.path="{folder}/{name}.sock"',
        "faces.tcp.listen=[]",
        "faces.websocket.listen=[]",
        "push.enabled=true",
        *sets_of(name),
    ]
    return running(inside(netns, onym, "daemon", *settings(sets)), folder / f"{name}.log", "ready")


def join(spaces: dict[str, str], ends: str, device: str) -> None:
    """A veth between two namespaces."""
    one, other = ends
    ip("link", "add", device, "netns", spaces[one], "address", MACS[one], "type", "veth",
       "peer", "name", device, "netns", spaces[other], "address", MACS[other])  # fmt: skip
    for name in ends:
        if device == "wide":
            ip("-n", spaces[name], "address", "add", f"{ADDRESSES[name]}/24", "dev", device)
        ip("-n", spaces[name], "link", "set", device, "up")


def lose(netns: str, share: str) -> None:
    rule = ["-A", "INPUT", "-p", "udp", "-m", "statistic", "--mode", "random"]
    words = inside(netns, "iptables", *rule, "--probability", share, "-j", "DROP")
    subprocess.run(words, check=True)


def memory(node: subprocess.Popen[bytes]) -> int:
    """Most octets of memory that a process had."""
    status = Path(f"/proc/{node.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10


def check(onym: str, loss: str, stack: ExitStack) -> None:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    spaces = {n: stack.enter_context(space(f"lan{os.getpid()}{n}")) for n in "abcd"}
    for ends, device in (("ab", "lan"), ("cd", "lan"), ("bc", "wide")):
        join(spaces, ends, device)
    for name in "bc":
        lose(spaces[name], loss)
    nodes = {n: stack.enter_context(daemon(onym, folder, n, spaces[n])) for n in "abcd"}

    def command(name: str, *words: str) -> list[str]:
        return [onym, "--node", f"unix://{folder}/{name}.sock", *words]

    def start(name: str, *words: str) -> subprocess.Popen[bytes]:
        ran = subprocess.Popen(command(name, *words), stdout=subprocess.DEVNULL)
        stack.callback(ran.wait, PATIENCE)
        stack.callback(ran.terminate)
        return ran

    def told(name: str, *words: str) -> dict:
        ran = subprocess.run(command(name, *words, "--json"), capture_output=True, check=False)
        return json.loads(ran.stdout) if ran.returncode == 0 else {}

    for name in "abcd":
        until(
            lambda n=name: bool(told(n, "rendezvous", "status").get("homes")), f"{name} has a home"
        )
    content = os.urandom(OCTETS)
    (folder / "in").write_bytes(content)
    out = {n: folder / f"out-{n}" for n in "cd"}
    for name, path in out.items():
        start(name, "subscribe", "/1/2", "-o", str(path))

    def subscribed() -> bool:
        vertices = told("b", "rendezvous", "graph").get("vertices", [])
        return any(len(v["subscribers"]) == 2 for v in vertices)

    until(subscribed, "both subscriptions are at the rendezvous")
    begun = time.monotonic()
    start("a", "publish", "/1/2", str(folder / "in"), "--keep")
    for name, path in out.items():
        until(lambda p=path: p.exists() and p.stat().st_size == OCTETS, f"the file at {name}")
        assert path.read_bytes() == content, f"the file at {name} is another one"
    took = time.monotonic() - begun
    counts = told("a", "rendezvous", "status")["publications"]
    # Without loss nothing has to be repeated, on a machine that keeps up.
    assert float(loss) == 0 or counts["repaired"] > 0, counts
    most = {name: memory(node) for name, node in nodes.items()}
    assert max(most.values()) < MEMORY_MAX, most
    tree = told("b", "explain", "--push", "/1/2")["matches"][0]["trees"][0]
    assert len(tree["links"]) == 3, tree
    print(f"20 MB over two LANs: {took:.1f} s, {counts['repaired']} fragments repeated, at most "
          f"{max(most.values()) >> 20} MiB in a node")  # fmt: skip


def main() -> int:
    if not is_root_with("iptables"):
        return 77
    with ExitStack() as stack:
        check(os.path.realpath(sys.argv[1]), sys.argv[2] if sys.argv[2:] else "0.02", stack)
    return 0


if __name__ == "__main__":
    sys.exit(main())
