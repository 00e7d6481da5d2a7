"""Makes the replicate of a checked file: names that must exist, defaults, plain units."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from onym_lab import topology, units
from onym_lab.spec import App, Fault, Hog, Link, Node, Spec

if TYPE_CHECKING:
    from onym_lab.experiment import Experiment, ExperimentError

_APP_UNITS: dict[str, Callable[[object], Any]] = {
    "freshness": units.seconds,
    "start": units.seconds,
    "lifetime": units.seconds,
    "refresh": units.seconds,
    "every": units.seconds,
    "octets": units.octets,
    "rate": units.per_second,
}

_APP_NEEDS = {
    "producer": ("prefix",),
    "consumer": ("prefix",),
    "files": ("prefix", "files", "octets", "rate"),
    "flood": ("prefix", "total", "batch", "every"),
    "put": ("prefix", "octets"),
    "get": ("prefix",),
    "command": ("run",),
}


class Resolver:
    """Makes a :class:`Spec` of a file with its settings put in."""

    def __init__(self, experiment: Experiment, data: dict[str, Any]) -> None:
        self.experiment, self.data = experiment, data

    def fail(self, place: tuple[str | int, ...], why: str) -> ExperimentError:
        """Make the error for a place."""
        return self.experiment.error(place, why)

    def unit(self, place: tuple[str | int, ...], convert: Callable[[object], Any], raw: Any) -> Any:
        """Convert a value or say where it stands."""
        try:
            return convert(raw)
        except units.UnitError as error:
            name = ".".join(str(part) for part in place)
            raise self.fail(place, f"{name}: {error}") from error

    def spec(self, seed: int) -> Spec:
        """Make it."""
        data = self.data
        try:
            graph = topology.of(data["topology"], self.experiment.path.parent)
        except topology.TopologyError as error:
            raise self.fail(("topology", *error.place), f"topology: {error}") from error
        except OSError as error:
            why = f"topology: {data['topology'].get('file')}: {error.strerror}"
            raise self.fail(("topology",), why) from error
        names = set(graph.nodes)
        for name in data.get("nodes", {}):
            if name not in names:
                raise self.fail(("nodes", name), f"nodes: {name!r} is no node of the topology")
        nodes = tuple(self.node(name, graph.nodes[name]) for name in graph.nodes)
        links = self.links(graph)
        apps = tuple(self.app(n, app, names) for n, app in enumerate(data["apps"]))
        ids = [app.id for app in apps]
        for n, one in enumerate(ids):
            if one in ids[:n]:
                raise self.fail(("apps", n), f"apps: {one!r} comes twice")
        known = {frozenset((link.a, link.b)) for link in links}
        routes = self.routes(known)
        warmup, at_most, until_done, cooldown = self.phases(apps)
        capture, snaplen = self.capture(nodes)
        return Spec(
            name=data["name"],
            subject=str(data.get("subject", "onym")),
            transport=data.get("transport", "udp"),
            seed=seed,
            nodes=nodes,
            links=links,
            routes=routes,
            strategies=data.get("strategy", {}),
            apps=apps,
            warmup=warmup,
            at_most=at_most,
            until_done=until_done,
            cooldown=cooldown,
            sample=self.unit(("sample",), units.seconds, data.get("sample", "500ms")),
            capture=capture,
            snaplen=snaplen,
            checks=self.checks(),
            faults=tuple(
                self.fault(n, one, names, known) for n, one in enumerate(data.get("faults", []))
            ),
            bench=data.get("bench", {}),
        )

    def node(self, name: str, found: Mapping[str, Any]) -> Node:
        """Make one node: its own keys over those of the topology over the defaults."""
        own = self.data.get("nodes", {}).get(name, {})
        keys = {**self.data.get("defaults", {}), **found, **own}
        place = ("nodes", name)
        hog = keys.get("hog")
        defences = keys.get("defences", "on") in ("on", True)
        optional = {
            key: self.unit((*place, key), convert, keys[key])
            for key, convert in (
                ("cpu", units.share),
                ("memory", units.octets),
                ("buffer", units.octets),
                ("cost", units.seconds),
            )
            if keys.get(key) is not None
        }
        return Node(
            name=name,
            cs=int(keys.get("cs", 65536)),
            pit=int(keys.get("pit", 262144)),
            backlog=int(keys.get("backlog", 1000)),
            defences=defences,
            hog=None if hog is None else self.hog((*place, "hog"), hog),
            set=keys.get("set", {}),
            **optional,
        )

    def hog(self, place: tuple[str | int, ...], raw: Mapping[str, Any]) -> Hog:
        """Make a competing load."""
        duty = self.unit((*place, "duty"), units.share, raw["duty"])
        times = {
            key: self.unit(
                (*place, key), units.seconds, raw.get(key, 0 if key != "phase" else "0s")
            )
            for key in ("on", "off", "phase")
        }
        if not 0 <= duty < 1 or times["on"] <= 0:
            raise self.fail(place, "hog: duty is below 100%, on is more than 0")
        return Hog(duty=duty, **times)

    def links(self, graph: topology.Topology) -> tuple[Link, ...]:
        """Make the links: `*`, then the topology's own, then those named."""
        given = self.data.get("links", {})
        known = {frozenset((a, b)): (a, b) for a, b, _ in graph.links}
        named: dict[frozenset[str], tuple[str, Mapping[str, Any]]] = {}
        for name, keys in given.items():
            if name == "*":
                continue
            ends = frozenset(split_link(name, graph.nodes))
            if ends not in known:
                raise self.fail(("links", name), f"links: {name!r} is no link of the topology")
            named[ends] = (name, keys)
        made = []
        for a, b, found in graph.links:
            name, own = named.get(frozenset((a, b)), ("*", {}))
            keys = {**given.get("*", {}), **found, **own}
            made.append(self.link(a, b, ("links", name), keys))
        return tuple(made)

    def link(self, a: str, b: str, place: tuple[str | int, ...], keys: Mapping[str, Any]) -> Link:
        """Make one link."""
        convert = {
            "delay": units.seconds,
            "jitter": units.seconds,
            "rate": units.bits,
            "loss": units.share,
        }
        plain = {
            key: self.unit((*place, key), convert.get(key, lambda value: value), value)
            for key, value in keys.items()
            if value is not None
        }
        if not 0 <= plain.get("loss", 0) <= 1:
            raise self.fail(place, "loss: 0% to 100% are expected")
        return Link(a, b, **plain)

    def app(self, number: int, raw: Mapping[str, Any], names: set[str]) -> App:
        """Make one application."""
        place = ("apps", number)
        kind = raw["kind"]
        if raw["node"] not in names:
            raise self.fail((*place, "node"), f"apps: {raw['node']!r} is no node of the topology")
        for key in _APP_NEEDS[kind]:
            if key not in raw:
                raise self.fail(place, f"apps: {raw['id']}: a {kind} needs {key!r}")
        if "zipf" in raw and "catalogue" not in raw:
            raise self.fail(place, f"apps: {raw['id']}: zipf only goes with catalogue")
        options = {
            key: self.unit((*place, key), _APP_UNITS.get(key, lambda value: value), value)
            for key, value in raw.items()
            if key not in ("id", "node", "kind", "prefix")
        }
        return App(raw["id"], raw["node"], kind, raw.get("prefix", "/"), options)

    def routes(self, known: set[frozenset[str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Make the routes, each step over a link that exists."""
        made = []
        for number, route in enumerate(self.data.get("routes", [])):
            via = route["via"]
            for here, there in itertools.pairwise(via):
                if frozenset((here, there)) not in known:
                    why = f"routes: there is no link between {here!r} and {there!r}"
                    raise self.fail(("routes", number), why)
            made.append((route["prefix"], tuple(via)))
        return tuple(made)

    def phases(self, apps: tuple[App, ...]) -> tuple[float, float, bool, float]:
        """Make the times of the phases."""
        phases = self.data.get("phases", {})
        measure = phases.get("measure", {"until": "done", "at_most": "60s"})
        until_done = isinstance(measure, Mapping) and measure.get("until") == "done"
        longest = measure["at_most"] if isinstance(measure, Mapping) else measure
        if until_done and not any(app.ends for app in apps):
            why = "phases: until done needs an application that ends"
            raise self.fail(("phases",), why)
        return (
            self.unit(("phases", "warmup"), units.seconds, phases.get("warmup", "0s")),
            self.unit(("phases", "measure"), units.seconds, longest),
            until_done,
            self.unit(("phases", "cooldown"), units.seconds, phases.get("cooldown", "0s")),
        )

    def capture(self, nodes: tuple[Node, ...]) -> tuple[tuple[str, ...], int]:
        """Name the nodes whose link toward the producer is captured."""
        capture = self.data.get("capture", False)
        if capture is False:
            return (), 500
        names = [node.name for node in nodes]
        chosen = capture.get("nodes", "all")
        if chosen == "all":
            return tuple(names), capture.get("snaplen", 500)
        for name in chosen:
            if name not in names:
                raise self.fail(("capture", "nodes"), f"capture: {name!r} is no node")
        return tuple(chosen), capture.get("snaplen", 500)

    def checks(self) -> dict[str, Any]:
        """Make the limits of the checks."""
        given = self.data.get("checks", {})
        made: dict[str, Any] = {"invalid_samples": 0.02, "capture_drops": 0.001, "counters": True}
        for key, value in given.items():
            convert = units.share if key != "counters" else bool
            made[key] = self.unit(("checks", key), convert, value)
        return made

    def fault(
        self, number: int, raw: Mapping[str, Any], names: set[str], known: set[frozenset[str]]
    ) -> Fault:
        """Make one fault."""
        place = ("faults", number)
        link, node = raw.get("link"), raw.get("node")
        if link is not None and frozenset(split_link(link, names)) not in known:
            raise self.fail(place, f"faults: {link!r} is no link")
        if node is not None and node not in names:
            raise self.fail(place, f"faults: {node!r} is no node")
        if (raw["action"] == "down") != (link is not None) or (link is None and node is None):
            raise self.fail(place, "faults: down goes with a link, kill with a node")
        duration = raw.get("for")
        return Fault(
            at=self.unit((*place, "at"), units.seconds, raw["at"]),
            duration=None
            if duration is None
            else self.unit((*place, "for"), units.seconds, duration),
            action=raw["action"],
            link=link,
            node=node,
        )


def split_link(name: str, nodes: Any) -> tuple[str, str]:
    """Split `a-b` where both parts are nodes; names may have hyphens themselves."""
    known = set(nodes)
    for at, sign in enumerate(name):
        if sign in "-:" and name[:at] in known and name[at + 1 :] in known:
            return name[:at], name[at + 1 :]
    return name, name
