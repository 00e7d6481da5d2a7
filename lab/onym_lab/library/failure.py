"""Mini-NDN's experiments on routers as processes: failures, prefixes that come and go, late ones.

A network of namespaces and veth pairs after a file of `topologies`; a node is a forwarder with
its router: `onym daemon`, or `ndnd fw` with `ndnd dv` where ndnd is on PATH. Every node answers
pings under a prefix of its own, which it announces; the pings and all questions about routes are
those of `onym`, by the management protocol that both forwarders speak. Nobody has keys. Links
have no delay. Needs root.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from onym_lab.library import ROOT, NeedsError, Row, call, pick, program, row
from onym_lab.tools import unusable

PORT = 6363
AT_MOST_S = 120.0
PING_MS = 100
PING_TIMEOUT_MS = 300
STEADY_S = 10.0


def needs(options: Mapping[str, Any]) -> None:
    """Say what is missing.

    Raises:
        NeedsError: Root, a tool, or a program that is not built.
    """
    program("onym")
    if os.geteuid() != 0:
        raise NeedsError("network namespaces need root")
    if not shutil.which("ip"):
        raise NeedsError("missing Debian package: iproute2")
    if options.get("subject") == "ndn-dv" and (reasons := unusable("ndnd")):
        raise NeedsError(reasons[0])


class Node:
    """A forwarder and its router in a namespace."""

    def __init__(self, net: Network, name: str, number: int) -> None:
        """Make its namespace."""
        self.net, self.name, self.number = net, name, number
        self.space = f"fail{os.getpid()}n{number}"
        self.folder = net.folder / name
        self.folder.mkdir()
        self.socket = net.sockets / f"{number}.sock"
        self.neighbours: dict[str, str] = {}
        self.children: list[subprocess.Popen[bytes]] = []
        call(["ip", "netns", "add", self.space])
        call(["ip", "-n", self.space, "link", "set", "lo", "up"])

    @property
    def prefix(self) -> str:
        """What it is pinged by."""
        return f"/nodes/{self.name}"

    @property
    def announced(self) -> str:
        """What it announces to answer pings."""
        return f"{self.prefix}/ping"

    def spawn(self, *argv: str | Path, inside: bool = True) -> subprocess.Popen[bytes]:
        """Start something that goes on."""
        words = ["ip", "netns", "exec", self.space] if inside else []
        environment = {
            **os.environ,
            "HOME": str(self.folder),
            "NDN_CLIENT_TRANSPORT": f"unix://{self.socket}",
        }
        with (self.folder / "log").open("ab") as log:
            child = subprocess.Popen(
                [*words, *map(str, argv)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )
        self.children.append(child)
        return child

    def start(self) -> None:
        """Start forwarder, router and what answers pings."""
        if self.net.subject == "onym":
            self._onym()
        else:
            self._ndnd()
        self.spawn(*self.command("ping-server", self.prefix, "--announce"), inside=False)

    def _onym(self) -> None:
        links = ", ".join(f'{{uri="udp4://{ip}:{PORT}"}}' for ip in self.neighbours.values())
        settings = {
            "faces.unix.path": json.dumps(str(self.socket)),
            "faces.tcp.listen": "[]",
            "faces.websocket.listen": "[]",
            "shards": "1",
            "routing.network": '"/net"',
            "routing.router": json.dumps(f"/net/{self.name}"),
            "routing.folder": json.dumps(str(self.folder / "routing")),
            "routing.neighbour": f"[{links}]",
            "routing.insecure": "true",
            "routing.advertise_interval_ms": str(self.net.interval_ms),
            "routing.dead_interval_ms": str(self.net.dead_ms),
        }
        words = [w for key, value in settings.items() for w in ("--set", f"{key}={value}")]
        self.spawn(program("onym"), "daemon", *words)
        self._answers()

    def _ndnd(self) -> None:
        (self.folder / "fw.yml").write_text(
            "core:\n  log_level: ERROR\nfaces:\n  udp:\n    enabled_unicast: true\n"
            f"    enabled_multicast: false\n    port_unicast: {PORT}\n  tcp:\n    enabled: false\n"
            f"  unix:\n    enabled: true\n    socket_path: {self.socket}\n"
            "  websocket:\n    enabled: false\nfw:\n  threads: 1\n"
        )
        links = "".join(f'    - uri: "udp4://{ip}:{PORT}"\n' for ip in self.neighbours.values())
        (self.folder / "dv.yml").write_text(
            f"dv:\n  network: /net\n  router: /net/{self.name}\n  keychain: insecure\n"
            f"  advertise_interval: {self.net.interval_ms}\n"
            f"  router_dead_interval: {self.net.dead_ms}\n  neighbors:\n{links}"
        )
        self.spawn("ndnd", "fw", "run", self.folder / "fw.yml")
        self._answers()
        self.spawn("ndnd", "dv", "run", self.folder / "dv.yml")
        # Its forwarder tells of a prefix once, whether a router hears it or not.
        until(f"the router of {self.name}", self._routes_ndnd)

    def _routes_ndnd(self) -> bool:
        environment = {**os.environ, "NDN_CLIENT_TRANSPORT": f"unix://{self.socket}"}
        argv = ["ndnd", "dv", "status"]
        done = subprocess.run(argv, capture_output=True, env=environment, check=False)
        return done.returncode == 0 and b"nRibEntries" in done.stdout

    def _answers(self) -> None:
        until(f"the forwarder of {self.name}", lambda: self.routes() is not None)

    def command(self, *words: str) -> list[str | Path]:
        """A command to its node."""
        return [program("onym"), "--node", f"unix://{self.socket}", *words]

    def routes(self) -> set[str] | None:
        """Prefixes that have a route; none when nobody answers."""
        argv = [str(w) for w in self.command("route", "list", "--json")]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
        if done.returncode:
            return None
        return {str(route["prefix"]) for route in json.loads(done.stdout)}

    def knows(self, prefixes: Iterable[str]) -> bool:
        """Whether all of them have routes."""
        routes = self.routes()
        return routes is not None and routes.issuperset(prefixes)

    def sent(self) -> tuple[int, int]:
        """Octets and frames that left by its links."""
        shown = json.loads(call(["ip", "-n", self.space, "-s", "-j", "link"]))
        links = [link["stats64"]["tx"] for link in shown if link["ifname"] != "lo"]
        return sum(tx["bytes"] for tx in links), sum(tx["packets"] for tx in links)

    def kill(self) -> None:
        """End everything of it at once."""
        for child in self.children:
            child.kill()
        for child in self.children:
            child.wait()
        self.children.clear()
        self.socket.unlink(missing_ok=True)

    def remove(self) -> None:
        """Take it away."""
        self.kill()
        subprocess.run(["ip", "netns", "delete", self.space], capture_output=True, check=False)


class Network:
    """Nodes and wires."""

    def __init__(self, options: Mapping[str, Any], folder: Path, stack: ExitStack) -> None:
        """Make them after a file of `topologies`."""
        self.subject = str(options["subject"])
        self.interval_ms = round(1000 * float(options["interval"]))
        self.dead_ms = round(1000 * float(options["dead"]))
        self.folder = folder
        # The path of a socket has 107 octets at most.
        sockets = tempfile.TemporaryDirectory(prefix="onym-fail-")
        self.sockets = Path(stack.enter_context(sockets))
        self.nodes: dict[str, Node] = {}
        self.edges: list[tuple[str, str]] = []
        self.stack = stack
        path = ROOT / "lab/topologies" / f"{options['topology']}.conf"
        names, self.edges = read(path)
        for number, name in enumerate(names):
            self.nodes[name] = Node(self, name, number)
            stack.callback(self.nodes[name].remove)
        for number, (a, b) in enumerate(self.edges):
            self._wire(number, self.nodes[a], self.nodes[b])

    def _wire(self, number: int, a: Node, b: Node) -> None:
        ends = (f"e{number}a", f"e{number}b")
        call(["ip", "link", "add", ends[0], "netns", a.space, "type", "veth",
              "peer", "name", ends[1], "netns", b.space])  # fmt: skip
        for node, other, end, last in ((a, b, ends[0], 1), (b, a, ends[1], 2)):
            address = f"10.{80 + number // 250}.{number % 250}.{last}"
            call(["ip", "-n", node.space, "addr", "add", f"{address}/24", "dev", end])
            call(["ip", "-n", node.space, "link", "set", end, "up"])
            other.neighbours[node.name] = address

    def degree(self, name: str) -> int:
        """How many links a node has."""
        return len(self.nodes[name].neighbours)

    def path(self, start: str, goal: str, without: str | None = None) -> list[str]:
        """The first shortest path; empty when there is none."""
        before: dict[str, str] = {start: start}
        queue = deque([start])
        while queue:
            here = queue.popleft()
            for there in sorted(self.nodes[here].neighbours):
                if there not in before and there != without:
                    before[there] = here
                    queue.append(there)
        if goal not in before:
            return []
        path = [goal]
        while path[-1] != start:
            path.append(before[path[-1]])
        return path[::-1]

    def start(self, without: Iterable[str] = ()) -> float:
        """Start all nodes but some; when the last of them was begun."""
        begun = time.monotonic()
        for name, node in self.nodes.items():
            if name not in without:
                begun = time.monotonic()
                node.start()
        return begun

    def converged(self, since: float, without: Iterable[str] = ()) -> float:
        """Wait until every node has a route to the prefix of every other one; the seconds since."""
        there = [node for name, node in self.nodes.items() if name not in without]
        wanted = {node.announced for node in there}
        until_all("routes everywhere", there, lambda node: node.knows(wanted))
        return time.monotonic() - since

    def gone(self, prefix: str, at: Iterable[Node]) -> float:
        """Seconds until nobody has a route to a prefix."""

        def is_gone(node: Node) -> bool:
            routes = node.routes()
            return routes is not None and prefix not in routes

        return until_all(f"{prefix} to go", at, is_gone)

    def sent(self) -> tuple[int, int]:
        """Octets and frames of all nodes."""
        each = [node.sent() for node in self.nodes.values()]
        return sum(o for o, _ in each), sum(f for _, f in each)


def read(path: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Nodes and links of a file in Mini-NDN's form."""
    names: list[str] = []
    edges: list[tuple[str, str]] = []
    section = ""
    for text in path.read_text().splitlines():
        line = text.split("#")[0].strip()
        if line.startswith("["):
            section = line.strip("[]")
        elif line and section == "nodes":
            names.append(line.split(":")[0].strip())
        elif line and section == "links":
            a, b = line.split()[0].split(":")
            edges.append((a, b))
    return names, edges


def until(what: str, is_so: Callable[[], bool]) -> float:
    """Wait; the seconds that it took.

    Raises:
        RuntimeError: It did not come.
    """
    begun = time.monotonic()
    while not is_so():
        if time.monotonic() > begun + AT_MOST_S:
            raise RuntimeError(f"{what}: not within {AT_MOST_S:.0f} s")
        time.sleep(0.02)
    return time.monotonic() - begun


def until_all(what: str, nodes: Iterable[Node], is_so: Callable[[Node], bool]) -> float:
    """Wait until it is so at every node; each is asked until it is, and not after."""
    open_ = list(nodes)

    def done() -> bool:
        open_[:] = [node for node in open_ if not is_so(node)]
        return not open_

    return until(what, done)


class Pings:
    """One ping after another from a node to a prefix, with the times of the answers."""

    def __init__(self, node: Node, prefix: str) -> None:
        """Begin."""
        argv = node.command(
            "ping", prefix, "-i", str(PING_MS), "-o", str(PING_TIMEOUT_MS), "--json"
        )
        self.child = subprocess.Popen(list(map(str, argv)), stdout=subprocess.PIPE, text=True)
        self.answers: list[float] = []
        self.lost = 0
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        assert self.child.stdout
        for text in self.child.stdout:
            line = json.loads(text)
            if line["event"] == "answered":
                self.answers.append(time.monotonic())
            elif line["event"] != "summary":
                self.lost += 1

    def end(self) -> None:
        """Stop, and read the rest."""
        self.child.terminate()
        self.child.wait()
        self.thread.join()

    def outage(self) -> float:
        """Longest time without an answer, in seconds, beyond the time between two pings."""
        pairs = zip(self.answers, self.answers[1:], strict=False)
        return max((b - a for a, b in pairs), default=AT_MOST_S) - PING_MS / 1000

    def loss(self) -> float:
        """Share of pings without an answer."""
        return self.lost / max(1, self.lost + len(self.answers))


def run(options: Mapping[str, Any], seed: int, folder: Path) -> list[Row]:
    """One experiment: `event` is `hub`, `each`, `prefix` or `late`."""
    chosen = pick(
        options,
        subject="onym",
        topology="abilene",
        event="hub",
        interval=1.0,
        dead=3.0,
        down=15.0,
        pairs=4,
    )
    needs(chosen)
    events = {"hub": hub, "each": each, "prefix": prefix, "late": late}
    with ExitStack() as stack:
        net = Network(chosen, folder, stack)
        return events[str(chosen["event"])](net, chosen, random.Random(seed))


def _cold(net: Network) -> list[Row]:
    """Start everything; how long it took, and what it cost."""
    before = net.sent()
    took = net.converged(net.start())
    after = net.sent()
    time.sleep(STEADY_S)
    later = net.sent()
    links = len(net.edges)
    return [
        row("all", "converge", "s", took),
        row("all", "cold_octets", "octets", (after[0] - before[0]) / links),
        row("all", "cold_frames", "frames", (after[1] - before[1]) / links),
        row("all", "steady_octets", "octets/s", (later[0] - after[0]) / links / STEADY_S),
    ]


def _through(net: Network, victim: str, count: int, rng: random.Random) -> list[tuple[str, str]]:
    """Pairs of nodes whose shortest path leads by a node, and that have another one."""
    names = [name for name in net.nodes if name != victim]
    pairs = [(a, b) for a in names for b in names if a != b]
    by = [p for p in pairs if victim in net.path(*p) and net.path(*p, without=victim)]
    rng.shuffle(by)
    if not by:
        by = [p for p in pairs if net.path(*p, without=victim)]
        rng.shuffle(by)
    return by[:count]


def _fail(net: Network, victim: str, options: Mapping[str, Any], rng: random.Random) -> list[Row]:
    """Kill a node, wait, and start it again."""
    pairs = _through(net, victim, int(options["pairs"]), rng)
    pings = [Pings(net.nodes[a], net.nodes[b].prefix) for a, b in pairs]
    until("the first answers", lambda: all(len(p.answers) > 5 for p in pings))
    before = net.sent()
    net.nodes[victim].kill()
    begun = time.monotonic()
    rest = [node for name, node in net.nodes.items() if name != victim]
    withdrawn = net.gone(net.nodes[victim].announced, rest)
    time.sleep(max(0.0, float(options["down"]) - (time.monotonic() - begun)))
    for ping in pings:
        ping.end()
    after = net.sent()
    begun = time.monotonic()
    net.nodes[victim].start()
    back = net.converged(begun)
    where = victim
    return [
        row(where, "outage", "s", max(p.outage() for p in pings)),
        row(where, "loss", "ratio", sum(p.loss() for p in pings) / len(pings)),
        row(where, "withdrawn", "s", withdrawn),
        row(where, "rejoin", "s", back),
        row(where, "failure_frames", "frames", (after[1] - before[1]) / len(net.edges)),
    ]


def hub(net: Network, options: Mapping[str, Any], rng: random.Random) -> list[Row]:
    """The best-connected node fails and comes back."""
    rows = _cold(net)
    victim = max(sorted(net.nodes), key=net.degree)
    return rows + [{**r, "where": "hub"} for r in _fail(net, victim, options, rng)]


def each(net: Network, options: Mapping[str, Any], rng: random.Random) -> list[Row]:
    """Every node fails and comes back, one after the other."""
    rows = _cold(net)
    for victim in net.nodes:
        rows += _fail(net, victim, options, rng)
    worst: dict[str, float] = {}
    for one in rows[4:]:
        worst[one["metric"]] = max(worst.get(one["metric"], 0.0), one["value"])
    units = {one["metric"]: one["unit"] for one in rows}
    return rows + [row("worst", metric, units[metric], value) for metric, value in worst.items()]


def prefix(net: Network, _: Mapping[str, Any], rng: random.Random) -> list[Row]:
    """A prefix is announced at one node and withdrawn; when does everybody know."""
    rows = _cold(net)
    node = net.nodes[rng.choice(sorted(net.nodes))]
    others = [other for other in net.nodes.values() if other is not node]
    server = node.spawn(*node.command("ping-server", "/moving", "--announce"), inside=False)
    name = "/moving/ping"
    announced = until_all("the prefix", others, lambda other: other.knows([name]))
    begun = time.monotonic()
    server.terminate()
    server.wait()
    net.gone(name, others)
    withdrawn = time.monotonic() - begun
    return [
        *rows,
        row("all", "announced", "s", announced),
        row("all", "withdrawn", "s", withdrawn),
    ]


def late(net: Network, _: Mapping[str, Any], rng: random.Random) -> list[Row]:
    """One node starts when all others have long known each other."""
    newcomer = rng.choice([name for name in sorted(net.nodes) if net.degree(name) <= 2])
    first = net.converged(net.start(without=[newcomer]), without=[newcomer])
    time.sleep(STEADY_S)
    begun = time.monotonic()
    net.nodes[newcomer].start()
    return [row("all", "converge", "s", first), row("late", "join", "s", net.converged(begun))]
