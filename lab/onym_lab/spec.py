"""One replicate in plain units: what backends and subjects read."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from onym_lab import topology


@dataclass(frozen=True)
class Hog:
    """A program that competes for a node's processor (seconds, share)."""

    duty: float
    on: float
    off: float
    phase: float


@dataclass(frozen=True)
class Node:
    """A node's limits; times in seconds, sizes in octets, shares from 0 to 1."""

    name: str
    cs: int = 65536
    pit: int = 262144
    cpu: float | None = None
    memory: int | None = None
    cost: float | None = None
    backlog: int = 1000
    buffer: int | None = None
    defences: bool = True
    hog: Hog | None = None
    set: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Link:
    """A link, the same in both directions (seconds, bits per second, share, frames)."""

    a: str
    b: str
    delay: float = 0.0
    rate: float | None = None
    loss: float = 0.0
    jitter: float = 0.0
    queue: int = 1000
    mtu: int | None = None

    @property
    def name(self) -> str:
        """How files call it."""
        return f"{self.a}-{self.b}"


@dataclass(frozen=True)
class App:
    """An application; its options in plain units."""

    id: str
    node: str
    kind: str
    prefix: str
    options: Mapping[str, Any]

    @property
    def consumes(self) -> bool:
        """Whether it asks for data, so that a run can wait for it."""
        return self.kind in ("consumer", "files", "get")

    @property
    def ends(self) -> bool:
        """Whether the measuring phase may wait for its end."""
        return self.consumes and not self.options.get("background", False)


@dataclass(frozen=True)
class Fault:
    """Something that is broken at a moment (seconds)."""

    at: float
    duration: float | None
    action: str
    link: str | None
    node: str | None


@dataclass(frozen=True)
class Spec:
    """One replicate in plain units: everything that a backend needs."""

    name: str
    subject: str
    transport: str
    seed: int
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    routes: tuple[tuple[str, tuple[str, ...]], ...]
    strategies: Mapping[str, str]
    apps: tuple[App, ...]
    warmup: float
    at_most: float
    until_done: bool
    cooldown: float
    sample: float
    capture: tuple[str, ...]
    snaplen: int
    checks: Mapping[str, Any]
    faults: tuple[Fault, ...]
    bench: Mapping[str, Any] = field(default_factory=dict)

    def node(self, name: str) -> Node:
        """Find the node of that name."""
        return next(node for node in self.nodes if node.name == name)

    def neighbours(self, name: str) -> list[str]:
        """Name the nodes that a node has a link to, in the order of the file."""
        return [
            link.b if link.a == name else link.a for link in self.links if name in (link.a, link.b)
        ]

    def link(self, a: str, b: str) -> Link:
        """Find the link between two nodes."""
        return next(link for link in self.links if {link.a, link.b} == {a, b})

    def path(self) -> list[str]:
        """Name the nodes from the first consumer to the producer: what "hop" counts."""
        first = next((app for app in self.apps if app.kind in ("files", "consumer", "flood")), None)
        first = first or next((app for app in self.apps if app.kind == "get"), None)
        if first is None:
            return []
        for prefix, via in self.routes:
            if via[0] == first.node and (first.prefix + "/").startswith(prefix.rstrip("/") + "/"):
                return list(via)
        target = next(
            (
                app.node
                for app in self.apps
                if app.kind in ("producer", "put")
                and (first.prefix + "/").startswith(app.prefix.rstrip("/") + "/")
            ),
            None,
        )
        if target is None:
            return [first.node]
        return topology.shortest(self.weights(), first.node, target) or [first.node]

    def weights(self) -> dict[str, dict[str, float]]:
        """Give the graph with delays as costs."""
        graph: dict[str, dict[str, float]] = {node.name: {} for node in self.nodes}
        for link in self.links:
            cost = max(link.delay, 1e-6)
            graph[link.a][link.b] = graph[link.b][link.a] = cost
        return graph

    def capture_peer(self, name: str) -> str | None:
        """Name the neighbour that a node's capture looks at: toward the producer, else back."""
        path = self.path()
        if name in path and len(path) > 1:
            at = path.index(name)
            return path[at + 1] if at + 1 < len(path) else path[at - 1]
        return next(iter(self.neighbours(name)), None)

    def next_hops(self) -> list[tuple[str, str, str]]:
        """List the routes as (node, prefix, next node)."""
        if self.routes:
            return [
                (here, prefix, there)
                for prefix, via in self.routes
                for here, there in itertools.pairwise(via)
            ]
        graph = self.weights()
        hops = []
        for app in self.apps:
            if app.kind not in ("producer", "put"):
                continue
            parents = topology.tree(graph, app.node)
            hops += [(node, app.prefix, parent) for node, parent in parents.items()]
        return hops

    def plain(self) -> dict[str, Any]:
        """Give everything as it is written to spec.json."""
        return asdict(self)
