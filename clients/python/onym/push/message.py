"""Messages between an application and its node (spec/push.md, section 8)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

from onym import _tlv
from onym._tlv import MalformedError
from onym.push.ident import Id

TYPE = 0xF2
VERSION = 1
MESSAGE_MAX = 8800
"""Most octets of a message."""
PIECE_MAX = 8192
"""Most octets of payload that we put into one message."""


class Kind(IntEnum):
    """What a message is."""

    PUBLISH_SCOPE = 0
    PUBLISH_ITEM = 1
    UNPUBLISH_SCOPE = 2
    UNPUBLISH_ITEM = 3
    SUBSCRIBE_SCOPE = 4
    SUBSCRIBE_ITEM = 5
    UNSUBSCRIBE_SCOPE = 6
    UNSUBSCRIBE_ITEM = 7
    PUBLISH = 8
    REGISTER = 9
    RETAIN = 10
    LEAVE = 13
    START_PUBLISH = 100
    STOP_PUBLISH = 101
    SCOPE_PUBLISHED = 102
    SCOPE_UNPUBLISHED = 103
    DATA = 104
    STATUS = 106
    MISSED = 109
    REGISTERED = 110
    OVERDUE = 111


class Strategy(IntEnum):
    """How a scope and what is beneath it are disseminated."""

    NODE_LOCAL = 0
    LINK_LOCAL = 1
    DOMAIN_LOCAL = 2
    IMPLICIT = 3
    BROADCAST = 4
    ALGORITHMIC_LOCAL = 5
    ALGORITHMIC_DOMAIN = 6
    INTER_DOMAIN = 7


class Status(IntEnum):
    """The answer to a request."""

    OK = 0
    WRONG_IDS = 1
    STRATEGY_DIFFERS = 2
    ALREADY = 3
    NO_PARENT = 4
    ITEM_HAS_ID = 5
    NO_SCOPE = 6
    SCOPE_HAS_ID = 7
    NO_ITEM = 8
    NEITHER = 9
    UNKNOWN_REQUEST = 10
    OTHER_RENDEZVOUS = 11
    BOUND = 12
    RESERVED = 13
    NO_RENDEZVOUS = 14
    NOT_TOGETHER = 15
    STOPPED = 16
    TOO_LONG = 17
    NOT_REGISTERED = 18
    PUSH_OFF = 19
    WRONG_FACE = 20
    OTHER_WORD = 21


class _Field(IntEnum):
    ID = 1
    PREFIX = 3
    STRATEGY = 5
    STATUS = 7
    ROUTE = 9
    NODE = 17
    EPOCH = 23
    NUMBER = 25
    ROLE = 31
    LENGTH = 65
    OFFSET = 67
    ABOUT = 69
    PAYLOAD = 71
    TEXT = 96
    LOCAL = 98
    FRAMES = 100
    LIFETIME = 102
    DEADLINE = 104
    PRIORITY = 106
    WAIT = 108


@dataclass(frozen=True)
class Terms:
    """How an item that is retained is delivered; times in seconds, an hour at most."""

    lifetime: float | None = None
    """Each publication is forgotten after so long."""
    deadline: float | None = None
    """The next publication follows within so long; otherwise subscribers hear `Overdue`."""
    priority: int = 0
    """What a subscriber that is behind in several items is told first: 0, the last one, to 7."""
    waits: bool = False
    """Wait for subscribers of this node that are behind before the oldest is lost to them."""


@dataclass(frozen=True)
class Message:
    """A message; fields that are absent are None or empty."""

    kind: int
    tag: int = 0
    id: bytes = b""
    prefix: bytes = b""
    about: bytes = b""
    strategy: int | None = None
    status: int | None = None
    route: bytes = b""
    node: bytes = b""
    epoch: int = 0
    number: int = 0
    role: int = 0
    length: int | None = None
    offset: int | None = None
    text: str = ""
    local: int = 0
    frames: int = 0
    lifetime: int = 0
    deadline: int = 0
    priority: int = 0
    wait: int = 0
    payload: bytes | None = None

    def encode(self) -> bytes:
        """The message as octets."""
        out = bytearray([VERSION, self.kind]) + self.tag.to_bytes(4, "big")
        for typ, octets in (
            (_Field.ID, self.id),
            (_Field.PREFIX, self.prefix),
            (_Field.ABOUT, self.about),
            (_Field.ROUTE, self.route),
            (_Field.NODE, self.node),
            (_Field.TEXT, self.text.encode()),
        ):
            if octets:
                out += _tlv.element(typ, octets)
        for typ, octet in (
            (_Field.STRATEGY, self.strategy),
            (_Field.STATUS, self.status),
            (_Field.ROLE, self.role or None),
            (_Field.PRIORITY, self.priority or None),
            (_Field.WAIT, self.wait or None),
        ):
            if octet is not None:
                out += _tlv.element(typ, bytes([octet]))
        for typ, n in (
            (_Field.EPOCH, self.epoch or None),
            (_Field.NUMBER, self.number or None),
            (_Field.LOCAL, self.local or None),
            (_Field.FRAMES, self.frames or None),
            (_Field.LIFETIME, self.lifetime or None),
            (_Field.DEADLINE, self.deadline or None),
            (_Field.LENGTH, self.length),
            (_Field.OFFSET, self.offset),
        ):
            if n is not None:
                out += _tlv.element(typ, _tlv.nni(n))
        if self.payload is not None:
            out += _tlv.element(_Field.PAYLOAD, self.payload)
        return _tlv.element(TYPE, bytes(out))

    def pieces(self) -> Iterator[bytes]:
        """The message, cut where its payload does not fit one (P-54)."""
        payload = self.payload
        if payload is None or len(payload) <= PIECE_MAX:
            yield self.encode()
            return
        bare = Message(kind=self.kind, tag=self.tag)
        for offset in range(0, len(payload), PIECE_MAX):
            base = self if offset == 0 else bare
            part = payload[offset : offset + PIECE_MAX]
            yield replace(base, length=len(payload), offset=offset, payload=part).encode()

    @classmethod
    def parse(cls, value: bytes) -> Message:
        """Reads the VALUE of a message."""
        if len(value) < 6 or value[0] != VERSION:
            raise MalformedError("a message of another version, or cut")
        given: dict[str, int | str | bytes] = {}
        for typ, octets in _tlv.elements(value[6:]):
            if typ in _OCTETS:
                given[_OCTETS[typ]] = octets
            elif typ in _NUMBERS:
                given[_NUMBERS[typ]] = _tlv.read_nni(octets)
            elif typ in _SINGLE:
                if len(octets) != 1:
                    raise MalformedError(f"field {typ} is not one octet")
                given[_SINGLE[typ]] = octets[0]
            elif typ == _Field.TEXT:
                given["text"] = octets.decode(errors="replace")
            elif typ <= 31 or typ % 2:
                raise MalformedError(f"unknown critical field {typ}")
        tag = int.from_bytes(value[2:6], "big")
        return cls(kind=value[1], tag=tag, **given)  # type: ignore[arg-type]


_OCTETS: dict[int, str] = {
    _Field.ID: "id",
    _Field.PREFIX: "prefix",
    _Field.ABOUT: "about",
    _Field.ROUTE: "route",
    _Field.NODE: "node",
    _Field.PAYLOAD: "payload",
}
_NUMBERS: dict[int, str] = {
    _Field.EPOCH: "epoch",
    _Field.NUMBER: "number",
    _Field.LENGTH: "length",
    _Field.OFFSET: "offset",
    _Field.LOCAL: "local",
    _Field.FRAMES: "frames",
    _Field.LIFETIME: "lifetime",
    _Field.DEADLINE: "deadline",
}
_SINGLE: dict[int, str] = {
    _Field.STRATEGY: "strategy",
    _Field.STATUS: "status",
    _Field.ROLE: "role",
    _Field.PRIORITY: "priority",
    _Field.WAIT: "wait",
}


def request(kind: Kind, id: Id, prefix: Id, strategy: int) -> Message:  # noqa: A002
    """The request `kind` for what has the label `id` beneath `prefix`."""
    return Message(kind, id=id.octets, prefix=prefix.octets, strategy=strategy, text=id.word)


def retain(id: Id, count: int, terms: Terms) -> Message:  # noqa: A002
    """The request to retain the last publications of an item."""
    lifetime, deadline = _milliseconds(terms.lifetime), _milliseconds(terms.deadline)
    return Message(
        Kind.RETAIN,
        id=id.octets,
        number=count,
        lifetime=lifetime,
        deadline=deadline,
        priority=terms.priority,
        wait=int(terms.waits),
    )


def _milliseconds(seconds: float | None) -> int:
    # Part of a millisecond is one: none would be for ever.
    return 0 if seconds is None else max(1, math.ceil(seconds * 1000))


def publication(
    id: Id,  # noqa: A002
    payload: bytes,
    strategy: int,
    about: Id | None = None,
    route: bytes = b"",
    node: bytes = b"",
    lifetime_ms: int = 0,
) -> Message:
    """A publication, with what its strategy needs beside."""
    return Message(
        Kind.PUBLISH,
        id=id.octets,
        strategy=strategy,
        about=about.octets if about else b"",
        route=route,
        node=node,
        lifetime=lifetime_ms,
        payload=payload,
    )
