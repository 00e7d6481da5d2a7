"""Experiment files: read, checked with line and reason, and put into plain units for one cell."""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from onym_lab import topology, units

HERE = Path(__file__).resolve().parent
LIBRARY = HERE.parent / "experiments"
BACKENDS = ("sim", "netns", "loopback", "bench")


class ExperimentError(Exception):
    """An experiment file that cannot be used: where, and why."""

    def __init__(self, file: Path | str, line: int, why: str) -> None:
        super().__init__(f"{file}:{line}: {why}" if line else f"{file}: {why}")
        self.file, self.line, self.why = str(file), line, why


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


@dataclass(frozen=True)
class Experiment:
    """A checked experiment file."""

    path: Path
    text: str
    data: dict[str, Any]
    lines: Mapping[tuple[str | int, ...], int]

    @property
    def name(self) -> str:
        """How the library calls it."""
        return str(self.data["name"])

    @property
    def backends(self) -> list[str]:
        """Where it is known to run; the first is the usual one."""
        return list(self.data.get("backends", ["sim"]))

    def error(self, place: tuple[str | int, ...], why: str) -> ExperimentError:
        """Make the error for a place of the file, or for the nearest place above it."""
        at = place
        while at and at not in self.lines:
            at = at[:-1]
        return ExperimentError(self.path, self.lines.get(at, 1), why)

    def spec(self, settings: Mapping[str, Any], seed: int) -> Spec:
        """Put the settings (path to value) in and give the replicate in plain units."""
        data = copy.deepcopy(self.data)
        for path, value in settings.items():
            put(data, path, value)
        return Resolver(self, data).spec(seed)


@cache
def _validator() -> Any:
    schema = json.loads((HERE / "schema.json").read_text())
    return jsonschema.Draft202012Validator(schema)


def _plain(node: yaml.Node, place: tuple[str | int, ...], lines: dict[Any, int], file: Path) -> Any:
    """Make values of YAML nodes, noting their lines; a key that comes twice is refused."""
    lines[place] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            line = key_node.start_mark.line + 1
            if key in mapping:
                raise ExperimentError(file, line, f"{key!r} comes twice")
            mapping[key] = _plain(value_node, (*place, key), lines, file)
            lines[(*place, key)] = line
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_plain(one, (*place, n), lines, file) for n, one in enumerate(node.value)]
    loader = yaml.SafeLoader("")
    # YAML 1.1 calls on and off truth values; here they are words of the schema.
    if node.tag == "tag:yaml.org,2002:bool" and node.value.lower() in ("on", "off", "yes", "no"):
        return node.value.lower()
    return loader.construct_object(node)


def _reason(error: jsonschema.ValidationError) -> tuple[tuple[str | int, ...], str]:
    place = tuple(error.absolute_path)
    if error.validator == "oneOf" and error.context:
        # The alternative that came nearest is the one that was meant.
        deepest = max(error.context, key=lambda one: len(one.absolute_path))
        if len(deepest.absolute_path) > len(place) or deepest.validator in (
            "additionalProperties",
            "required",
        ):
            return _reason(deepest)
    name = ".".join(str(part) for part in place) or "the file"
    return place, f"{name}: {error.message}"


def find(name: str) -> Path:
    """Find an experiment: a file, or a name of the library.

    Raises:
        ExperimentError: There is neither.
    """
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return path
    found = sorted(LIBRARY.rglob(f"{name}.yaml"))
    if not found:
        raise ExperimentError(name, 0, "is neither a .yaml file nor an experiment of the library")
    return found[0]


def library() -> list[Path]:
    """List the files of the library."""
    return sorted(LIBRARY.rglob("*.yaml"))


def load(path: Path | str) -> Experiment:
    """Read and check an experiment file.

    Raises:
        ExperimentError: With the line and the reason.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ExperimentError(path, 0, error.strerror or str(error)) from error
    lines: dict[tuple[str | int, ...], int] = {}
    try:
        root = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ExperimentError(path, mark.line + 1 if mark else 1, str(error.problem)) from error
    if root is None:
        raise ExperimentError(path, 1, "the file is empty")
    data = _plain(root, (), lines, path)
    if isinstance(data, dict) and "bench" in data:
        # A measurement that is no network: one node that nobody sees.
        data.setdefault("topology", {"preset": "line", "n": 1})
        data.setdefault("apps", [{"id": "bench", "node": "n1", "kind": "command", "run": ["-"]}])
        data.setdefault("phases", {"measure": "600s"})
    experiment = Experiment(path, text, data, lines)
    errors = sorted(_validator().iter_errors(data), key=lambda e: len(e.absolute_path))
    if errors:
        raise experiment.error(*_reason(errors[0]))
    check(experiment)
    return experiment


def check(experiment: Experiment) -> None:
    """Check what a schema cannot say: names that must exist, units, factors."""
    from onym_lab import design

    cells = design.cells(experiment)
    for cell in cells:
        experiment.spec(cell.settings, 1)
    for path in experiment.data.get("scale", []):
        value = get(experiment.data, path)
        if value is None:
            raise experiment.error(("scale",), f"scale: {path} is not in the file")
    _check_rules(experiment)


def _check_rules(experiment: Experiment) -> None:
    factors = experiment.data.get("factors", {})
    labels = {name: set(labels_of(factor)) for name, factor in factors.items()}
    paper = experiment.data.get("paper", {})

    def cells(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        yield entry.get("cell", {})
        yield from entry.get("cells", [])
        for side in ("of", "to"):
            yield entry.get(side, {}).get("cell", {})

    for part in ("values", "rules"):
        for number, entry in enumerate(paper.get(part, [])):
            for cell in cells(entry):
                for factor, label in cell.items():
                    if factor not in labels:
                        why = f"{entry['id']}: {factor!r} is no factor"
                        raise experiment.error(("paper", part, number), why)
                    if str(label) not in labels[factor]:
                        why = f"{entry['id']}: {label!r} is no level of {factor}"
                        raise experiment.error(("paper", part, number), why)


def label_of(level: Any) -> str:
    """Give a level's label as the results show it."""
    if isinstance(level, Mapping):
        return str(level["label"])
    return str(level)


def labels_of(factor: Mapping[str, Any]) -> list[str]:
    """Give the labels of a factor's levels in their order."""
    return [label_of(level) for level in factor["levels"]]


def _walk(data: Any, path: str) -> tuple[Any, str | int]:
    """Find the container of a path's last part. Applications are found by their id."""
    parts = path.split(".")
    here = data
    for part in parts[:-1]:
        if isinstance(here, list):
            here = next((one for one in here if one.get("id") == part), None)
            if here is None:
                raise KeyError(path)
        else:
            if here.get(part) is None:
                here[part] = {}
            here = here[part]
    if not isinstance(here, dict):
        raise KeyError(path)
    return here, parts[-1]


def put(data: dict[str, Any], path: str, value: Any) -> None:
    """Set the place that `path` names."""
    if path in data:
        data[path] = value
        return
    container, key = _walk(data, path)
    container[key] = value


def get(data: dict[str, Any], path: str) -> Any:
    """Read the place that `path` names; None when it is absent."""
    try:
        container, key = _walk(copy.deepcopy(data), path)
    except KeyError:
        return None
    return container.get(key)


def scaled(experiment: Experiment, scale: float) -> Experiment:
    """Multiply what the experiment says can be scaled; whole numbers stay at least 1."""
    if scale == 1:
        return experiment
    data = copy.deepcopy(experiment.data)
    for path in data.get("scale", []):
        value = get(data, path)
        if isinstance(value, int):
            put(data, path, max(1, math.ceil(value * scale)))
        elif isinstance(value, float):
            put(data, path, value * scale)
        else:
            put(data, path, _scaled_text(str(value), scale))
    return Experiment(experiment.path, experiment.text, data, experiment.lines)


def _scaled_text(text: str, scale: float) -> str:
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/%")
    return f"{float(digits) * scale:g}{text[len(digits) :]}"


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
        except (topology.TopologyError, OSError) as error:
            raise self.fail(("topology",), f"topology: {error}") from error
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
