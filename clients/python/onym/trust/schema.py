"""LightVerSec models: read with all checks, and asked which key may sign what.

`onym trust compile site.lvs -o site.tlv` makes one from text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from onym._tlv import MalformedError, element, elements, read_nni

VERSION = 0x0001_1000
OCTETS_MAX = 16 << 20
NODES_MAX = 131_072
DEPTH_MAX = 64
STEPS_MAX = 20_000
"""Edges and options that one question may look at; with more the answer is no."""

_DIGEST = 1
_SEGMENT, _VERSION = 50, 54
_KEY = element(8, b"KEY")
_METADATA = element(32, b"metadata")

Function = Callable[[bytes, list[bytes]], bool]
"""What `$name(…)` calls: the component and the arguments, as elements. What it raises means no."""


class SchemaError(Exception):
    """A model that cannot be used."""


class _TooCostlyError(Exception):
    """The question would take too long."""


@dataclass
class _Option:
    value: bytes | None = None
    tag: int | None = None
    call: tuple[str, list[bytes | int]] | None = None


@dataclass
class _Pattern:
    dest: int
    tag: int
    constraints: list[list[_Option]] = field(default_factory=list)


@dataclass
class _Node:
    parent: int | None = None
    rules: list[str] = field(default_factory=list)
    values: dict[bytes, int] = field(default_factory=dict)
    patterns: list[_Pattern] = field(default_factory=list)
    signers: list[int] = field(default_factory=list)


def components(name: bytes) -> list[bytes]:
    """The components of a name, as elements, without an implicit digest at its end."""
    found = [element(typ, value) for typ, value in elements(name)]
    if found and found[-1][0] == _DIGEST:
        found.pop()
    return found


def of_object(name: list[bytes]) -> list[bytes]:
    """A name without segment, version and metadata at its end, unless it is a certificate's."""
    if len(name) >= 4 and name[-4] == _KEY and name[-1][0] == _VERSION:
        return name
    for ends in (
        lambda last: last[0] == _SEGMENT,
        lambda last: last[0] == _VERSION,
        lambda last: last == _METADATA,
    ):
        if name and ends(name[-1]):
            name = name[:-1]
    return name


def _equals(value: bytes, arguments: list[bytes]) -> bool:
    return all(argument == value for argument in arguments)


def _same_type(value: bytes, arguments: list[bytes]) -> bool:
    typ = next(elements(value))[0]
    return all(next(elements(argument))[0] == typ for argument in arguments)


class Schema:
    """Rules about names and keys."""

    def __init__(
        self,
        model: bytes,
        functions: dict[str, Function] | None = None,
        *,
        objects: bool = False,
    ) -> None:
        """Reads a model; with `objects` the rules are about names of objects, without segment and version."""
        self._functions: dict[str, Function] = {"$eq": _equals, "$eq_type": _same_type}
        self._functions |= functions or {}
        self._objects = objects
        self._nodes: list[_Node] = []
        self._start = self._named = 0
        if len(model) > OCTETS_MAX:
            raise SchemaError(f"the model has more than {OCTETS_MAX} octets")
        try:
            self._read(model)
        except (MalformedError, UnicodeDecodeError) as error:
            raise SchemaError(f"the model is malformed: {error}") from None
        self._check()

    @classmethod
    def load(cls, path: str | Path, *, objects: bool = False) -> Self:
        """Reads the file of a model."""
        return cls(Path(path).read_bytes(), objects=objects)

    def allows(self, packet: bytes, key: bytes) -> bool:
        """Whether the key of this certificate name may sign the Data of this name."""
        name = components(packet)
        if self._objects:
            name = of_object(name)
        steps = [STEPS_MAX]
        try:
            for node, bound in self._walk(name, {}, steps):
                signers = self._nodes[node].signers
                if signers and any(
                    found in signers for found, _ in self._walk(components(key), bound, steps)
                ):
                    return True
        except _TooCostlyError:
            pass
        return False

    def takes_anchor(self, key: bytes) -> bool:
        """Whether a certificate of this name can be an anchor: a rule that signs and is not signed."""
        signs = {signer for node in self._nodes for signer in node.signers}
        try:
            found = [node for node, _ in self._walk(components(key), {}, [STEPS_MAX])]
        except _TooCostlyError:
            return False
        return any(node in signs and not self._nodes[node].signers for node in found)

    def _walk(
        self, name: list[bytes], bound: dict[int, bytes], steps: list[int]
    ) -> Iterator[tuple[int, dict[int, bytes]]]:
        """Nodes that the whole name leads to, with the variables that are bound on the way."""
        # A stack instead of recursion: the depth of a model is bounded, that of Python's calls, too.
        todo = [(self._start, 0, bound)]
        while todo:
            at, depth, known = todo.pop()
            node = self._nodes[at]
            self._spend(steps)
            if depth == len(name):
                yield at, known
                continue
            first = name[depth]
            further = []
            if first in node.values:
                further.append((node.values[first], depth + 1, known))
            for edge in node.patterns:
                self._spend(steps)
                if edge.tag in known:
                    if known[edge.tag] == first:
                        further.append((edge.dest, depth + 1, known))
                elif all(self._any(options, first, known, steps) for options in edge.constraints):
                    named = edge.tag <= self._named
                    binds = known | {edge.tag: first} if named else known
                    further.append((edge.dest, depth + 1, binds))
            todo += reversed(further)

    def _any(
        self, options: list[_Option], first: bytes, known: dict[int, bytes], steps: list[int]
    ) -> bool:
        for option in options:
            self._spend(steps)
            if option.value is not None:
                holds = option.value == first
            elif option.tag is not None:
                holds = known.get(option.tag) == first
            else:
                holds = self._call(option, first, known)
            if holds:
                return True
        return False

    def _call(self, option: _Option, first: bytes, known: dict[int, bytes]) -> bool:
        function, arguments = option.call or ("", [])
        values = [known.get(a) if isinstance(a, int) else a for a in arguments]
        try:
            return bool(self._functions[function](first, [v for v in values if v is not None]))
        except Exception:  # noqa: BLE001 - whatever a user's function does, it does not say yes
            return False

    @staticmethod
    def _spend(steps: list[int]) -> None:
        steps[0] -= 1
        if steps[0] < 0:
            raise _TooCostlyError

    def _read(self, model: bytes) -> None:
        fields = _known(model, {0x61, 0x25, 0x69, 0x63, 0x67})
        if [typ for typ, _ in fields[:3]] != [0x61, 0x25, 0x69]:
            raise MalformedError("expected version, start and number of variables first")
        version, self._start, self._named = (read_nni(value) for _, value in fields[:3])
        if version != VERSION:
            raise SchemaError(f"the model has version {version:#010x}, only {VERSION:#010x} is known")
        is_behind_nodes = False
        for typ, value in fields[3:]:
            if typ == 0x67:
                is_behind_nodes = True
                self._read_symbol(value)
            elif typ == 0x63 and not is_behind_nodes:
                self._read_node(value)
            else:
                raise MalformedError("elements are out of order")

    def _read_symbol(self, value: bytes) -> None:
        fields = _known(value, {0x23, 0x29})
        if [typ for typ, _ in fields] != [0x23, 0x29]:
            raise MalformedError("a symbol is not a number and a name")
        fields[1][1].decode()
        if not 1 <= read_nni(fields[0][1]) <= self._named:
            raise SchemaError("a symbol is of no variable")

    def _read_node(self, value: bytes) -> None:
        if len(self._nodes) >= NODES_MAX:
            raise SchemaError(f"the model has more than {NODES_MAX} nodes")
        fields = _known(value, {0x25, 0x57, 0x29, 0x51, 0x53, 0x55})
        order = [(0x25, 0x57, 0x29, 0x51, 0x53, 0x55).index(typ) for typ, _ in fields]
        if not fields or order != sorted(order) or order.count(0) != 1 or order.count(1) > 1:
            raise MalformedError("the elements of a node are out of order")
        if read_nni(fields[0][1]) != len(self._nodes):
            raise SchemaError(f"node number {len(self._nodes)} says that it is another one")
        node = _Node()
        for typ, inner in fields[1:]:
            if typ == 0x57:
                node.parent = read_nni(inner)
            elif typ == 0x29:
                node.rules.append(inner.decode())
            elif typ == 0x51:
                dest, component = _pair(inner, (0x25, 0x21))
                if _whole(component) in node.values:
                    raise SchemaError("two edges of a node have the same value")
                node.values[component] = read_nni(dest)
            elif typ == 0x53:
                node.patterns.append(_pattern(inner))
            else:
                node.signers.append(read_nni(inner))
        self._nodes.append(node)

    def _check(self) -> None:
        count = len(self._nodes)
        if self._start >= count or self._nodes[self._start].parent is not None:
            raise SchemaError("the start node does not exist or has a parent")
        reached = {self._start: 0}
        todo = [self._start]
        while todo:
            at = todo.pop()
            node = self._nodes[at]
            for dest in [*node.values.values(), *(edge.dest for edge in node.patterns)]:
                if dest >= count:
                    raise SchemaError(f"an edge of node {at} leads to node {dest}, which does not exist")
                if dest in reached:
                    raise SchemaError(f"more than one edge leads to node {dest}")
                if self._nodes[dest].parent != at:
                    raise SchemaError(f"node {dest} is reached from node {at}, not its parent")
                reached[dest] = reached[at] + 1
                if reached[dest] > DEPTH_MAX:
                    raise SchemaError(f"node {dest} is more than {DEPTH_MAX} components deep")
                todo.append(dest)
            self._check_node(at, node)
        if len(reached) != count:
            raise SchemaError("a node cannot be reached from the start")
        self._check_circles()

    def _check_node(self, at: int, node: _Node) -> None:
        if any(signer >= len(self._nodes) for signer in node.signers):
            raise SchemaError(f"node {at} is signed by a node that does not exist")
        for edge in node.patterns:
            if edge.tag < 1:
                raise SchemaError("variable 0 is not one of the model")
            for option in (option for options in edge.constraints for option in options):
                if option.call is not None and option.call[0] not in self._functions:
                    raise SchemaError(f"{option.call[0]} is a function that nobody has")

    def _check_circles(self) -> None:
        """Rules that sign each other in a circle lead to no anchor."""
        left = {at: len(node.signers) for at, node in enumerate(self._nodes)}
        signs: dict[int, list[int]] = {}
        for at, node in enumerate(self._nodes):
            for signer in node.signers:
                signs.setdefault(signer, []).append(at)
        free = [at for at, count in left.items() if count == 0]
        seen = 0
        while free:
            seen += 1
            for at in signs.get(free.pop(), []):
                left[at] -= 1
                if left[at] == 0:
                    free.append(at)
        if seen != len(self._nodes):
            raise SchemaError("rules sign each other in a circle")


def _known(value: bytes, types: set[int]) -> list[tuple[int, bytes]]:
    """The elements of these types; others are skipped where they may be, else refused."""
    found = []
    for typ, inner in elements(value):
        if typ in types:
            found.append((typ, inner))
        elif typ < 32 or typ % 2:
            raise MalformedError(f"an unknown critical element {typ:#x}")
    return found


def _pair(value: bytes, types: tuple[int, int]) -> tuple[bytes, bytes]:
    fields = _known(value, set(types))
    if tuple(typ for typ, _ in fields) != types:
        raise MalformedError(f"expected the elements {types}")
    return fields[0][1], fields[1][1]


def _whole(component: bytes) -> bytes:
    if len(list(elements(component))) != 1:
        raise MalformedError("a value is not one component")
    return component


def _pattern(value: bytes) -> _Pattern:
    fields = _known(value, {0x25, 0x23, 0x43})
    if [typ for typ, _ in fields[:2]] != [0x25, 0x23] or any(t != 0x43 for t, _ in fields[2:]):
        raise MalformedError("the elements of an edge are out of order")
    edge = _Pattern(read_nni(fields[0][1]), read_nni(fields[1][1]))
    for _, constraint in fields[2:]:
        edge.constraints.append([_option(inner) for _, inner in _known(constraint, {0x41})])
    return edge


def _option(value: bytes) -> _Option:
    fields = _known(value, {0x21, 0x23, 0x31})
    if len(fields) != 1:
        raise SchemaError("an option must have exactly one of value, variable and function")
    typ, inner = fields[0]
    if typ == 0x21:
        return _Option(value=_whole(inner))
    if typ == 0x23:
        return _Option(tag=read_nni(inner))
    parts = _known(inner, {0x27, 0x33})
    if not parts or parts[0][0] != 0x27 or not parts[0][1]:
        raise SchemaError("a call has no name of a function")
    arguments: list[bytes | int] = []
    for part, argument in parts[1:]:
        found = _known(argument, {0x21, 0x23})
        if part != 0x33 or len(found) != 1:
            raise SchemaError("an argument must have exactly one of value and variable")
        arguments.append(read_nni(found[0][1]) if found[0][0] == 0x23 else _whole(found[0][1]))
    return _Option(call=(parts[0][1].decode(), arguments))
