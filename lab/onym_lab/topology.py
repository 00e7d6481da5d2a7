"""Networks: presets, inline, Mini-NDN ``.conf`` and ndnSIM text."""

from __future__ import annotations

import heapq
import itertools
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onym_lab import units


class TopologyError(Exception):
    """A network that cannot be read or made: the line where it has one, and why.

    ``place`` is where in an experiment's ``topology`` it is, where it is written there.
    """

    place: tuple[str | int, ...] = ()


@dataclass
class Topology:
    """Nodes and links with what their text says of them, in the words of experiment files."""

    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    links: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    positions: dict[str, tuple[float, float]] = field(default_factory=dict)

    def link(self, a: str, b: str, **keys: Any) -> None:
        """Add a link, and its ends where they are new. Links are not parallel: the first stays."""
        if a == b:
            raise TopologyError(f"{a!r} cannot be linked to itself")
        for name in (a, b):
            self.nodes.setdefault(name, {})
        if not any({a, b} == {x, y} for x, y, _ in self.links):
            self.links.append((a, b, keys))


def _names(count: int) -> list[str]:
    return [f"n{number}" for number in range(1, count + 1)]


def _line(made: Topology, raw: Mapping[str, Any]) -> None:
    names = _names(raw.get("n", 2))
    made.nodes.update({name: {} for name in names})
    for a, b in itertools.pairwise(names):
        made.link(a, b)


def _ring(made: Topology, raw: Mapping[str, Any]) -> None:
    _line(made, raw)
    names = list(made.nodes)
    if len(names) > 2:
        made.link(names[-1], names[0])


def _star(made: Topology, raw: Mapping[str, Any]) -> None:
    hub, *leaves = _names(raw.get("n", 2))
    made.nodes[hub] = {}
    for leaf in leaves:
        made.link(hub, leaf)


def _mesh(made: Topology, raw: Mapping[str, Any]) -> None:
    names = _names(raw.get("n", 2))
    made.nodes.update({name: {} for name in names})
    for at, a in enumerate(names):
        for b in names[at + 1 :]:
            made.link(a, b)


def _grid(made: Topology, raw: Mapping[str, Any]) -> None:
    columns, rows = raw.get("columns", 2), raw.get("rows", 2)
    names = _names(columns * rows)
    made.nodes.update({name: {} for name in names})
    for at, name in enumerate(names):
        if (at + 1) % columns:
            made.link(name, names[at + 1])
        if at + columns < len(names):
            made.link(name, names[at + columns])


def _tree(made: Topology, raw: Mapping[str, Any]) -> None:
    branches, levels = raw.get("branches", 2), raw.get("levels", 2)
    count = sum(branches**level for level in range(levels))
    names = _names(count)
    made.nodes[names[0]] = {}
    for at in range(1, count):
        made.link(names[(at - 1) // branches], names[at])


def _dumbbell(made: Topology, raw: Mapping[str, Any]) -> None:
    """Clients c1.., one router r, servers s1..: the shape of the content distribution study."""
    for number in range(1, raw.get("left", 2) + 1):
        made.link(f"c{number}", "r")
    for number in range(1, raw.get("right", 2) + 1):
        made.link("r", f"s{number}")


def _random(made: Topology, raw: Mapping[str, Any]) -> None:
    count, degree = raw.get("n", 10), raw.get("degree", 3.0)
    rng = random.Random(raw.get("seed", 1))
    names = _names(count)
    made.nodes.update({name: {} for name in names})
    # A tree first, so that everything is reached; then links at random up to the degree.
    for at in range(1, count):
        made.link(names[rng.randrange(at)], names[at])
    wanted = min(round(count * degree / 2), count * (count - 1) // 2)
    have = {frozenset((a, b)) for a, b, _ in made.links}
    while len(have) < wanted:
        a, b = rng.sample(names, 2)
        if frozenset((a, b)) not in have:
            have.add(frozenset((a, b)))
            made.links.append((a, b, {}))


_PRESETS = {
    "line": _line,
    "ring": _ring,
    "star": _star,
    "mesh": _mesh,
    "grid": _grid,
    "tree": _tree,
    "dumbbell": _dumbbell,
    "random": _random,
}


def of(raw: Mapping[str, Any], folder: Path) -> Topology:
    """Make the network that an experiment file names; files are looked for beside it.

    Raises:
        TopologyError: What is wrong and where.
    """
    if "preset" in raw:
        made = Topology()
        _PRESETS[raw["preset"]](made, raw)
        return made
    if "file" in raw:
        return read(file_of(raw, folder))
    made = Topology()
    made.nodes.update({name: {} for name in raw.get("nodes", [])})
    for number, (a, b) in enumerate(raw["links"]):
        # Where the file lists its nodes, a link to another is a slip of the pen.
        if unknown := [end for end in (a, b) if raw.get("nodes") and end not in made.nodes]:
            raise _at(number, f"{unknown[0]!r} is none of the nodes")
        if a == b:
            raise _at(number, f"{a!r} cannot be linked to itself")
        made.link(a, b)
    return made


def _at(number: int, why: str) -> TopologyError:
    error = TopologyError(f"links.{number}: {why}")
    error.place = ("links", number)
    return error


def file_of(raw: Mapping[str, Any], folder: Path) -> Path:
    """Find the network's file: the copy that a run keeps, beside the experiment, in the library."""
    name = str(raw["file"])
    library = [above / "topologies" / name for above in (folder.parent, folder.parent.parent)]
    places = [copy_of(raw, folder), folder / name, *library]
    return next((place for place in places if place.is_file()), folder / name)


def copy_of(raw: Mapping[str, Any], folder: Path) -> Path:
    """Say where a run keeps its copy of the network's file."""
    return folder / "topologies" / Path(str(raw["file"])).name


def read(path: Path) -> Topology:
    """Read a Mini-NDN ``.conf`` or an ndnSIM ``.txt``."""
    text = path.read_text(encoding="utf-8")
    try:
        return mini_ndn(text) if path.suffix == ".conf" else ndnsim(text)
    except TopologyError as error:
        # `FILE:LINE: what`, as compilers say it, so that editors find the place.
        line, what = re.match(r"(?:line (\d+): )?(.*)", str(error), re.DOTALL).groups()  # type: ignore[union-attr]
        raise TopologyError(
            f"{path.name}:{line}: {what}" if line else f"{path.name}: {what}"
        ) from error


def _value(line: int, key: str, text: str, convert: Callable[[str], Any]) -> Any:
    """Convert a value, or name the line and the key that it is wrong for.

    ``UnitError`` is a ``ValueError``.
    """
    try:
        return convert(text)
    except ValueError as error:
        said = str(error) if isinstance(error, units.UnitError) else f"{text!r} is no number"
        raise TopologyError(f"line {line}: {key}: {said}") from error


def _text(check: Callable[[object], Any], form: str = "{}") -> Callable[[str], str]:
    """Make a converter that checks a value and gives it in the words of experiment files."""

    def convert(text: str) -> str:
        given = form.format(text)
        check(given)
        return given

    return convert


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _loss(text: object) -> float:
    share = units.share(text)
    if not 0 <= share <= 1:
        raise units.UnitError(f"{text!r}: 0% to 100% are expected")
    return share


def _pairs(words: list[str], line: int) -> dict[str, str]:
    pairs = {}
    for word in words:
        if word == "_":
            continue
        key, sign, value = word.partition("=")
        if not sign:
            raise TopologyError(f"line {line}: {word!r}: key=value is expected")
        pairs[key] = value
    return pairs


_LINK_KEYS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "delay": ("delay", _text(units.seconds)),
    "jitter": ("jitter", _text(units.seconds)),
    "bw": ("rate", _text(units.bits, "{}mbit")),
    "loss": ("loss", _text(_loss, "{}%")),
    "max_queue_size": ("queue", _positive),
}
"""Mini-NDN's keys of links: ours, and how a value is read. Others change nothing here."""


def _mini_ndn_link(words: list[str], line: int) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for key, text in _pairs(words, line).items():
        if key in _LINK_KEYS:
            ours, convert = _LINK_KEYS[key]
            keys[ours] = _value(line, key, text, convert)
    return keys


_WIRELESS = ("stations", "accessPoints", "adhocNetwork", "mobility", "wmediumd")


def mini_ndn(text: str) -> Topology:
    """Read Mini-NDN's form. Sections that change nothing here are skipped; wireless is refused."""
    made = Topology()
    section = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#")[0].strip()
        if not line:
            continue
        if line.startswith("["):
            section = line.strip("[]")
            if section in _WIRELESS:
                raise TopologyError(f"line {number}: [{section}]: wireless links are not here")
            continue
        if section in ("nodes", "switches"):
            name, sign, rest = line.partition(":")
            if not sign:
                raise TopologyError(f"line {number}: NAME: key=value is expected")
            keys = _mini_ndn_node(_pairs(rest.split(), number), number)
            made.nodes.setdefault(name.strip(), keys)
        elif section == "links":
            ends, *words = line.split()
            a, sign, b = ends.partition(":")
            if not sign:
                raise TopologyError(f"line {number}: {ends!r}: a:b is expected")
            _known(made, (a, b), "node", number)
            made.link(a, b, **_mini_ndn_link(words, number))
        elif section not in ("faces", "bgpd"):
            raise TopologyError(f"line {number}: [{section}] is no section that is known")
    if not made.nodes:
        raise TopologyError("there is no node")
    return made


def _known(made: Topology, ends: Sequence[str], what: str, line: int) -> None:
    """Refuse a link to what was not said before, and a link of a node to itself."""
    for end in ends:
        if end not in made.nodes:
            raise TopologyError(f"line {line}: {end!r} is no {what}")
    if ends[0] == ends[1]:
        raise TopologyError(f"line {line}: {ends[0]!r} cannot be linked to itself")


def _mini_ndn_node(pairs: Mapping[str, str], line: int) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    if "cpu" in pairs:
        keys["cpu"] = f"{_value(line, 'cpu', pairs['cpu'], float) * 100:g}%"
    if "cs-size" in pairs:
        keys["cs"] = _value(line, "cs-size", pairs["cs-size"], _positive)
    return keys


_NDNSIM_RATE = re.compile(r"^([0-9.]+)([kKMG]?)(bps|b/s|Bps|B/s)$")


def _ndnsim_rate(text: str, line: int) -> str:
    found = _NDNSIM_RATE.match(text)
    if not found:
        raise TopologyError(f"line {line}: {text!r} is no bandwidth such as 10Mbps")
    factor = 8 if found[3].startswith("B") else 1
    scale = {"": "bit", "k": "kbit", "K": "kbit", "M": "mbit", "G": "gbit"}[found[2]]
    return f"{float(found[1]) * factor:g}{scale}"


_LOSS = re.compile(r"^ns3::RateErrorModel,ErrorUnit=ERROR_UNIT_PACKET,ErrorRate=([0-9.]+)$")


def _ndnsim_link(words: list[str], line: int) -> dict[str, Any]:
    keys: dict[str, Any] = {"rate": _ndnsim_rate(words[2], line)}
    if len(words) > 4:
        keys["delay"] = _value(line, "delay", words[4], _text(units.seconds))
    if len(words) > 5:
        if not words[5].isdigit():
            raise TopologyError(f"line {line}: queue {words[5]!r}: a number of packets is expected")
        keys["queue"] = int(words[5])
    if len(words) > 6:
        loss = _LOSS.match(words[6])
        if not loss:
            raise TopologyError(f"line {line}: loss model {words[6]!r} is not here")
        keys["loss"] = f"{float(loss[1]) * 100:g}%"
    return keys


def ndnsim(text: str) -> Topology:
    """Read ndnSIM's annotated form: sections `router` and `link`."""
    made = Topology()
    section = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#")[0].strip()
        if not line:
            continue
        if line in ("router", "link"):
            section = line
            continue
        words = line.split()
        if section == "router":
            made.nodes.setdefault(words[0], {})
            _position(made, words)
        elif section == "link":
            if len(words) < 4:
                raise TopologyError(
                    f"line {number}: source, target, bandwidth, metric are expected"
                )
            keys = _ndnsim_link(words, number)
            _known(made, words[:2], "router", number)
            made.link(words[0], words[1], **keys)
        else:
            raise TopologyError(f"line {number}: neither router nor link was said before")
    if not made.nodes:
        raise TopologyError("there is no router")
    return made


def _position(made: Topology, words: list[str]) -> None:
    if len(words) >= 4:
        try:
            made.positions[words[0]] = (float(words[3]), -float(words[2]))
        except ValueError:
            return


def tree(graph: Mapping[str, Mapping[str, float]], target: str) -> dict[str, str]:
    """Give each node's next node on its shortest path to `target`; ties go to the first name."""
    distance = {target: 0.0}
    parent: dict[str, str] = {}
    queue: list[tuple[float, str]] = [(0.0, target)]
    while queue:
        cost, here = heapq.heappop(queue)
        if cost > distance.get(here, math.inf):
            continue
        for there, weight in sorted(graph[here].items()):
            total = cost + weight
            if total < distance.get(there, math.inf) - 1e-12:
                distance[there] = total
                parent[there] = here
                heapq.heappush(queue, (total, there))
    return parent


def shortest(graph: Mapping[str, Mapping[str, float]], start: str, target: str) -> list[str] | None:
    """Give the nodes of the shortest path, both ends included; None when there is none."""
    parent = tree(graph, target)
    path = [start]
    while path[-1] != target:
        if path[-1] not in parent:
            return None
        path.append(parent[path[-1]])
    return path
