"""What a node says to an application: events and answers, put together from octets."""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass

from onym import _tlv
from onym._tlv import MalformedError
from onym.push.ident import Id
from onym.push.message import MESSAGE_MAX, TYPE, Kind, Message, Status, Strategy
from onym.push.refused import RefusedError

EVENTS_MAX = 65_536
"""Events that wait for `event`; with more, nothing is read, and the node counts what is missed."""


class ClosedError(Exception):
    """The connection ended."""


class SilentError(Exception):
    """The node does not answer: it has no push half, or is of another kind."""


@dataclass(frozen=True)
class NodeInfo:
    """What the node said of itself."""

    node: bytes
    application: int
    publication_max: int
    epoch: int
    program: str

    @property
    def token(self) -> bytes:
        """The label that stands for the application in conventions (spec/push.md, section 8.1)."""
        numbers = self.epoch.to_bytes(8, "big") + self.application.to_bytes(8, "big")
        return hashlib.sha256(self.node + numbers).digest()[:8]


@dataclass(frozen=True)
class Sent:
    """What became of a publication."""

    local: int
    """Applications of this node that got it."""
    frames: int
    """Frames that left for other nodes."""


@dataclass(frozen=True)
class StartPublish:
    """The item has subscribers: publish."""

    id: Id


@dataclass(frozen=True)
class StopPublish:
    """The item has none any more."""

    id: Id


@dataclass(frozen=True)
class ScopePublished:
    """A scope came into being beneath one that is subscribed."""

    id: Id


@dataclass(frozen=True)
class ScopeUnpublished:
    """A scope is gone."""

    id: Id


@dataclass(frozen=True)
class Data:
    """A publication."""

    id: Id
    payload: bytes
    came_by: Strategy | None = None
    """The strategy that it came by, where that is one without rendezvous; else that of the scope."""


@dataclass(frozen=True)
class Missed:
    """So many publications were not delivered, for want of room."""

    count: int


@dataclass(frozen=True)
class Lost:
    """So many publications were lost on their way to the node of this application."""

    count: int


@dataclass(frozen=True)
class Overdue:
    """Nothing came of the item within the deadline of its publisher; told to that, too."""

    id: Id
    within: float
    """Seconds of the deadline."""


@dataclass(frozen=True)
class Refused:
    """Data that was published without waiting for an answer was refused."""

    id: Id
    status: int


Event = (
    StartPublish
    | StopPublish
    | ScopePublished
    | ScopeUnpublished
    | Data
    | Missed
    | Lost
    | Overdue
    | Refused
)


class Inbox:
    """Takes the octets of a connection as they come."""

    def __init__(self) -> None:
        self.events: deque[Event] = deque()
        self.answers: dict[int, Message] = {}
        self._buffer = bytearray()
        self._piece: tuple[Message, bytearray] | None = None
        self._publication_max = 0

    def registered(self, answer: Message) -> NodeInfo:
        """What the node said of itself in its answer to *register*."""
        if answer.kind != Kind.REGISTERED:
            raise RefusedError(answer.status or 0, "register")
        self._publication_max = answer.length or 0
        return NodeInfo(
            answer.node, answer.number, self._publication_max, answer.epoch, answer.text
        )

    def feed(self, octets: bytes) -> None:
        """Takes what came."""
        self._buffer += octets
        at = 0
        while (found := _tlv.head(self._buffer, at)) is not None:
            typ, start, stop = found
            if stop - at > MESSAGE_MAX:
                raise MalformedError("an element longer than 8800 octets")
            if stop > len(self._buffer):
                break
            # Packets of the pull half may come between; they are not ours.
            if typ == TYPE:
                self._message(Message.parse(bytes(self._buffer[start:stop])))
            at = stop
        del self._buffer[:at]

    def _message(self, message: Message) -> None:
        match message.kind:
            case Kind.REGISTERED:
                self.answers[message.tag] = message
            case Kind.STATUS if message.tag:
                self.answers[message.tag] = message
            case Kind.STATUS:
                self.events.append(Refused(Id(message.id), message.status or 0))
            case Kind.DATA:
                self._delivery(message)
            case Kind.MISSED if message.status == Status.NO_RENDEZVOUS:
                self.events.append(Lost(message.number))
            case Kind.MISSED:
                self.events.append(Missed(message.number))
            case Kind.OVERDUE:
                self.events.append(Overdue(Id(message.id), message.deadline / 1000))
            case Kind.START_PUBLISH:
                self.events.append(StartPublish(Id(message.id)))
            case Kind.STOP_PUBLISH:
                self.events.append(StopPublish(Id(message.id)))
            case Kind.SCOPE_PUBLISHED:
                self.events.append(ScopePublished(Id(message.id)))
            case Kind.SCOPE_UNPUBLISHED:
                self.events.append(ScopeUnpublished(Id(message.id)))
            case _:
                pass

    def _delivery(self, message: Message) -> None:
        payload = message.payload or b""
        if message.length is None or message.offset is None:
            self._piece = None
            self.events.append(Data(Id(message.id), payload, _strategy(message)))
            return
        if message.offset == 0:
            if message.length > self._publication_max:
                raise MalformedError("a publication longer than the node said")
            self._piece = (message, bytearray())
        if self._piece is None or message.offset != len(self._piece[1]):
            raise MalformedError("a piece that does not follow the one before")
        first, held = self._piece
        held += payload
        if len(held) > (first.length or 0):
            raise MalformedError("pieces longer than the whole")
        if len(held) == first.length:
            self.events.append(Data(Id(first.id), bytes(held), _strategy(first)))
            self._piece = None


def _strategy(message: Message) -> Strategy | None:
    known = message.strategy is not None and message.strategy in Strategy.__members__.values()
    return Strategy(message.strategy) if known else None
