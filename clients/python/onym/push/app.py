"""An application: one connection to a node."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from onym import _places, _tlv
from onym._tlv import MalformedError
from onym.push import board
from onym.push.ident import Id
from onym.push.message import MESSAGE_MAX, TYPE, Kind, Message, Status, Strategy

ANSWER_WITHIN = 10.0
"""Seconds within which a node answers; one without push half says nothing."""

EVENTS_MAX = 65_536
"""Events that wait for `event`; with more, nothing is read, and the node counts what is missed."""


class ClosedError(Exception):
    """The connection ended."""


class SilentError(Exception):
    """The node does not answer: it has no push half, or is of another kind."""


class RefusedError(Exception):
    """A request was answered with another status than ok."""

    def __init__(self, status: int, what: str) -> None:
        name = status
        with contextlib.suppress(ValueError):
            name = Status(status)
        text = name.name.lower().replace("_", " ") if isinstance(name, Status) else f"{status}"
        super().__init__(f"{what}: {text}")
        self.status = name


@dataclass(frozen=True)
class NodeInfo:
    """What the node said of itself."""

    node: bytes
    application: int
    publication_max: int
    epoch: int
    program: str


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
    | Refused
)


class App:
    """Publishes and subscribes. Not for several threads at once.

    >>> with App.open("unix:///run/nfd/nfd.sock") as app:      # doctest: +SKIP
    ...     app.publish_scope(Id.parse("/1"))
    ...     app.subscribe_item(Id.parse("/1/2"))
    ...     print(app.event(timeout=5))
    """

    def __init__(self, connection: socket.socket, name: str = "python") -> None:
        """Registers over a stream socket that is connected to a node."""
        self._socket = connection
        self._buffer = bytearray()
        self._events: deque[Event] = deque()
        self._answers: dict[int, Message] = {}
        self._tag = 0
        self._piece: tuple[Message, bytearray] | None = None
        self._publication_max = 0
        self._boards: str | None = None
        tag = self._send(Message(Kind.REGISTER, text=name))
        answer = self._answer(tag, "register")
        if answer.kind != Kind.REGISTERED:
            raise RefusedError(answer.status or 0, "register")
        self._publication_max = answer.length or 0
        self.info = NodeInfo(
            answer.node, answer.number, self._publication_max, answer.epoch, answer.text
        )

    @classmethod
    def open(cls, node: str | None = None, name: str = "python") -> Self:
        """Connects to `node` (`unix:///path`), or to the first that answers at the usual places."""
        faults = []
        for path in _places.unix_paths(node):
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.connect(path)
            except OSError as error:
                connection.close()
                faults.append(f"{path}: {error.strerror}")
                continue
            try:
                app = cls(connection, name)
                app._boards = f"{path}.boards"
                return app
            except BaseException:
                connection.close()
                raise
        raise ClosedError("no node: " + "; ".join(faults))

    def fileno(self) -> int:
        """The descriptor, for select; readable means that `event(0)` may have something."""
        return self._socket.fileno()

    def publish_scope(self, id: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:  # noqa: A002
        """Publishes a scope."""
        self._request(Kind.PUBLISH_SCOPE, id, strategy)

    def publish_item(self, id: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:  # noqa: A002
        """Publishes an item; its data follows after `StartPublish`."""
        self._request(Kind.PUBLISH_ITEM, id, strategy)

    def retain(self, id: Id, count: int = 1) -> None:  # noqa: A002
        """Has the node retain the last `count` publications of this application's item `id`.

        Who subscribes later starts with them; 0: not any more. From then on the item may be
        published whether somebody subscribed or not. Raises `RefusedError`: `Status.BOUND` for more
        than 65,535 or too many items, `Status.UNKNOWN_REQUEST` from a node that retains nothing.
        """
        what = f"retain {id}"
        answer = self._answer(self._send(Message(Kind.RETAIN, id=id.octets, number=count)), what)
        if answer.status:
            raise RefusedError(answer.status, what)

    def unpublish_scope(self, id: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:  # noqa: A002
        """Takes a scope back."""
        self._request(Kind.UNPUBLISH_SCOPE, id, strategy)

    def unpublish_item(self, id: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:  # noqa: A002
        """Takes an item back."""
        self._request(Kind.UNPUBLISH_ITEM, id, strategy)

    def subscribe_scope(self, id: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:  # noqa: A002
        """Subscribes to a scope: to its items, and to news of the scopes right beneath it."""
        self._request(Kind.SUBSCRIBE_SCOPE, id, strategy)

    def subscribe_item(self, id: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:  # noqa: A002
        """Subscribes to an item."""
        self._request(Kind.SUBSCRIBE_ITEM, id, strategy)

    def unsubscribe_scope(self, id: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:  # noqa: A002
        """Ends a subscription."""
        self._request(Kind.UNSUBSCRIBE_SCOPE, id, strategy)

    def unsubscribe_item(self, id: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:  # noqa: A002
        """Ends a subscription."""
        self._request(Kind.UNSUBSCRIBE_ITEM, id, strategy)

    def publish_again(self, known: Id, prefix: Id, strategy: int, *, scope: bool) -> None:
        """Publishes what is known as `known` once more, under `prefix` (P-20)."""
        kind = Kind.PUBLISH_SCOPE if scope else Kind.PUBLISH_ITEM
        self._ask(kind, known, prefix, strategy)

    def publish(
        self,
        id: Id,  # noqa: A002
        payload: bytes,
        strategy: int = Strategy.DOMAIN_LOCAL,
        *,
        about: Id | None = None,
        route: bytes = b"",
        node: bytes = b"",
        lifetime_ms: int = 0,
    ) -> None:
        """Publishes data and does not wait for an answer; a refusal comes as `Refused`.

        Waits while the node does not keep up. With an algorithmic strategy, caches may answer with it
        for `lifetime_ms` milliseconds.
        """
        self._send(self._data(id, payload, strategy, about, route, node, lifetime_ms), tag=0)

    def publish_told(
        self,
        id: Id,  # noqa: A002
        payload: bytes,
        strategy: int = Strategy.DOMAIN_LOCAL,
        *,
        about: Id | None = None,
        route: bytes = b"",
        node: bytes = b"",
        lifetime_ms: int = 0,
    ) -> Sent:
        """Publishes data and waits for what became of it."""
        tag = self._send(self._data(id, payload, strategy, about, route, node, lifetime_ms))
        answer = self._answer(tag, f"publish {id}")
        if answer.status:
            raise RefusedError(answer.status, f"publish {id}")
        return Sent(answer.local, answer.frames)

    def offer_board(self, id: Id, publisher: board.BoardPublisher) -> None:  # noqa: A002
        """Offers a blackboard for the node-local item `id`, which this application publishes.

        Subscribers come with `publisher.admit_offered()`.
        """
        board.offer(self._boards_path(), self.info.application, id.octets, publisher)

    def want_board(self, id: Id, patience: float = 10.0) -> board.BoardSubscriber:  # noqa: A002
        """Takes part in the blackboard of the node-local item `id`, which is subscribed."""
        return board.want(self._boards_path(), self.info.application, id.octets, patience)

    def _boards_path(self) -> str:
        if self._boards is None:
            raise board.BoardError("blackboards need the Unix socket of the node")
        return self._boards

    def event(self, timeout: float | None = None) -> Event | None:
        """The next event, waiting for `timeout` seconds at most, or as long as it takes."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._events:
            if not self._take(end):
                return None
        return self._events.popleft()

    def events(self, timeout: float | None = None) -> Iterator[Event]:
        """Events, until none comes for `timeout` seconds."""
        while (event := self.event(timeout)) is not None:
            yield event

    def leave(self) -> None:
        """Takes everything back that was published and subscribed, and closes."""
        with contextlib.suppress(OSError):
            self._send(Message(Kind.LEAVE))
        self.close()

    def close(self) -> None:
        """Closes the connection; the node takes everything back."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @staticmethod
    def _data(
        id: Id,  # noqa: A002
        payload: bytes,
        strategy: int,
        about: Id | None,
        route: bytes,
        node: bytes,
        lifetime_ms: int,
    ) -> Message:
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

    def _request(self, kind: Kind, id: Id, strategy: int) -> None:  # noqa: A002
        self._ask(kind, id.last, id.parent, strategy)

    def _ask(self, kind: Kind, id: Id, prefix: Id, strategy: int) -> None:  # noqa: A002
        request = Message(
            kind, id=id.octets, prefix=prefix.octets, strategy=strategy, text=id.word
        )
        what = f"{kind.name.lower().replace('_', ' ')} {prefix / id}"
        answer = self._answer(self._send(request), what)
        if answer.status:
            raise RefusedError(answer.status, what)

    def _send(self, message: Message, tag: int | None = None) -> int:
        if tag is None:
            self._tag = self._tag % 0xFFFF_FFFF + 1
            tag = self._tag
        tagged = Message(**{**message.__dict__, "tag": tag})
        # The node may want to be read from before it reads: never wait for writing alone.
        out = memoryview(b"".join(tagged.pieces()))
        self._socket.settimeout(0)
        while out:
            try:
                out = out[self._socket.send(out) :]
            except BlockingIOError:
                self._wait(writing=True)
            except (BrokenPipeError, ConnectionResetError):
                raise ClosedError("the node closed the connection") from None
        return tag

    def _wait(self, *, writing: bool, end: float | None = None) -> bool:
        """Waits until something can be read, which is taken, or written."""
        left = None if end is None else max(0.0, end - time.monotonic())
        reads = not writing or len(self._events) < EVENTS_MAX
        readable, writable, _ = select.select(
            [self._socket] if reads else [], [self._socket] if writing else [], [], left
        )
        if readable:
            self._read()
        return bool(readable or writable)

    def _answer(self, tag: int, what: str) -> Message:
        end = time.monotonic() + ANSWER_WITHIN
        while tag not in self._answers:
            if not self._take(end):
                raise SilentError(f"{what}: the node does not answer")
        return self._answers.pop(tag)

    def _take(self, end: float | None) -> bool:
        return self._wait(writing=False, end=end)

    def _read(self) -> None:
        self._socket.settimeout(0)
        try:
            octets = self._socket.recv(1 << 16)
        except BlockingIOError:
            return
        except ConnectionResetError:
            octets = b""
        if not octets:
            raise ClosedError("the node closed the connection")
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
                self._answers[message.tag] = message
            case Kind.STATUS if message.tag:
                self._answers[message.tag] = message
            case Kind.STATUS:
                self._events.append(Refused(Id(message.id), message.status or 0))
            case Kind.DATA:
                self._delivery(message)
            case Kind.MISSED if message.status == Status.NO_RENDEZVOUS:
                self._events.append(Lost(message.number))
            case Kind.MISSED:
                self._events.append(Missed(message.number))
            case Kind.START_PUBLISH:
                self._events.append(StartPublish(Id(message.id)))
            case Kind.STOP_PUBLISH:
                self._events.append(StopPublish(Id(message.id)))
            case Kind.SCOPE_PUBLISHED:
                self._events.append(ScopePublished(Id(message.id)))
            case Kind.SCOPE_UNPUBLISHED:
                self._events.append(ScopeUnpublished(Id(message.id)))
            case _:
                pass

    def _delivery(self, message: Message) -> None:
        payload = message.payload or b""
        if message.length is None or message.offset is None:
            self._piece = None
            self._events.append(Data(Id(message.id), payload, _strategy(message)))
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
            self._events.append(Data(Id(first.id), bytes(held), _strategy(first)))
            self._piece = None


def _strategy(message: Message) -> Strategy | None:
    known = message.strategy is not None and message.strategy in Strategy.__members__.values()
    return Strategy(message.strategy) if known else None
