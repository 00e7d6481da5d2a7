"""Nodes that route, in network namespaces of their own."""

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from nodes import PATIENCE, inside, ip, settings, space, until

PORT = 6363


class Node:
    """A daemon in a namespace."""

    def __init__(self, net: "Net", name: str) -> None:
        self.net, self.name = net, name
        self.space = net.stack.enter_context(space(f"rt{os.getpid()}{name}"))
        self.folder = net.folder / name
        self.folder.mkdir()
        self.links: list[str] = []
        self.addresses: list[str] = []
        self.process: subprocess.Popen[bytes] | None = None
        net.stack.callback(self.stop)

    def inside(self, *words: str) -> list[str]:
        return inside(self.space, *words)

    def start(self, *more: str) -> None:
        """Starts the daemon, and waits until it is ready."""
        neighbours = ",".join(self.links)
        sets = [
            f'faces.unix.path="{self.folder}/nfd.sock"',
            "faces.tcp.listen=[]",
            "faces.websocket.listen=[]",
            'routing.network="/net"',
            f'routing.router="/net/{self.name}"',
            f'routing.folder="{self.folder}/routing"',
            f"routing.neighbour=[{neighbours}]",
            'routing.announce="all"',
            *more,
        ]
        log = self.folder / "log"
        with log.open("w") as out:
            self.process = subprocess.Popen(
                self.inside(self.net.onym, "daemon", *settings(sets)), stderr=out
            )
        until(lambda: "ready" in log.read_text(), f"daemon {self.name}: {log}")

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def pid(self) -> int:
        """Of the daemon itself."""
        assert self.process
        return self.process.pid

    def kill(self) -> None:
        assert self.process
        self.process.kill()
        self.process.wait(PATIENCE)
        self.process = None

    def stop(self) -> None:
        if sys.exc_info()[0]:
            print(f"{self.name}: {self.log()[-4000:]}", file=sys.stderr)
        if self.process:
            self.process.terminate()
            self.process.wait(PATIENCE)
            self.process = None

    def command(self, *words: str) -> list[str]:
        return [self.net.onym, "--node", f"unix://{self.folder}/nfd.sock", *words]

    def run(self, *words: str) -> str:
        ran = subprocess.run(self.command(*words), capture_output=True, check=False, text=True)
        return ran.stdout

    def refused(self, *words: str) -> str:
        """What a command that fails says."""
        ran = subprocess.run(self.command(*words), capture_output=True, check=False, text=True)
        assert ran.returncode != 0, ran.stdout
        return ran.stderr

    def told(self, *words: str) -> dict | list:
        ran = subprocess.run(
            self.command(*words, "--json"), capture_output=True, check=False, text=True
        )
        return json.loads(ran.stdout) if ran.returncode == 0 and ran.stdout else {}

    def go(self, *words: str, **more) -> subprocess.Popen:
        """A command that goes on."""
        ran = subprocess.Popen(self.command(*words), **more)
        self.net.stack.callback(end, ran)
        return ran

    def reaches(self, router: str, by: str | None = None) -> bool:
        rows = [row for row in self.told("route", "table") or [] if row["router"] == router]
        return bool(rows) and (by is None or rows[0]["hops"][0][0] == by)

    def knows(self, prefix: str, router: str) -> bool:
        """Whether a prefix of another router has a way here."""
        shown = self.told("route", "prefixes") or {"remote": []}
        of = [p for p in shown["remote"] if p["prefix"] == prefix and p["ways"]]
        return any(exit_[0] == router for p in of for exit_ in p["exits"])


def end(process: subprocess.Popen) -> None:
    process.terminate()
    process.wait(PATIENCE)


class Net:
    """Namespaces and what joins them, taken away at the end."""

    def __init__(self, onym: str, stack: ExitStack) -> None:
        self.onym, self.stack = onym, stack
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="onym-route")))
        self.nodes: dict[str, Node] = {}
        self.count = 0

    def node(self, name: str) -> Node:
        self.nodes[name] = Node(self, name)
        return self.nodes[name]

    def join(self, a: Node, b: Node, cost: int = 1) -> None:
        """A wire between two nodes, with a link configured at both."""
        self.count += 1
        devices = (f"to{b.name}", f"to{a.name}")
        ip("link", "add", devices[0], "netns", a.space, "type", "veth",
           "peer", "name", devices[1], "netns", b.space)  # fmt: skip
        for node, device, last in ((a, devices[0], 1), (b, devices[1], 2)):
            address = f"10.77.{self.count}.{last}"
            node.addresses.append(address)
            ip("-n", node.space, "address", "add", f"{address}/24", "dev", device)
            ip("-n", node.space, "link", "set", device, "up")
        for node, other in ((a, b), (b, a)):
            uri = f"udp4://{other.addresses[-1]}:{PORT}"
            node.links.append(f'{{uri="{uri}",cost={cost}}}')

    def lan(self, nodes: list[Node], subnet: str | None, name: str = "lan0") -> str:
        """A bridge with a wire to each node; IPv4 addresses of `subnet`, or none."""
        where = self.stack.enter_context(space(f"rt{os.getpid()}{name}"))
        ip("-n", where, "link", "add", "name", "bridge0", "type", "bridge")
        ip("-n", where, "link", "set", "bridge0", "up")
        for number, node in enumerate(nodes, 1):
            ip("link", "add", name, "netns", node.space, "type", "veth",
               "peer", "name", f"p{number}", "netns", where)  # fmt: skip
            ip("-n", where, "link", "set", f"p{number}", "master", "bridge0")
            ip("-n", where, "link", "set", f"p{number}", "up")
            if subnet:
                ip("-n", node.space, "address", "add", f"{subnet}.{number}/24", "dev", name)
            ip("-n", node.space, "link", "set", name, "up")
        return where


def took(what: str, is_so) -> float:
    """Seconds until it is so."""
    begun = time.monotonic()
    until(is_so, what)
    return time.monotonic() - begun
