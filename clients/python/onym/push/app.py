"""An application: one connection to a node."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from onym import _places
from onym.push import board
from onym.push._inbox import (
    EVENTS_MAX,
    ClosedError,
    Event,
    Inbox,
    RefusedError,
    Sent,
    SilentError,
)
from onym.push.ident import Id
from onym.push.message import Kind, Message, Strategy, Terms, publication, request, retain

ANSWER_WITHIN = 10.0
"""Seconds within which a node answers; one without push half says nothing."""


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
        self._inbox = Inbox()
        self._tag = 0
        self._boards: str | None = None
        tag = self._send(Message(Kind.REGISTER, text=name))
        answer = self._answer(tag, "register")
        self.info = self._inbox.registered(answer)

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

    def retain(self, id: Id, count: int = 1, terms: Terms = Terms()) -> None:  # noqa: A002, B008
        """Has the node retain the last `count` publications of this application's item `id`.

        Who subscribes later starts with them; 0: not any more. From then on the item may be
        published whether somebody subscribed or not. Raises `BoundError` for more than 65,535, for
        terms that are too much, and where there are too many items; `UnknownRequestError` where the
        node retains nothing.
        """
        what = f"retain {id}"
        answer = self._answer(self._send(retain(id, count, terms)), what)
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
        data = publication(id, payload, strategy, about, route, node, lifetime_ms)
        self._send(data, tag=0)

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
        tag = self._send(publication(id, payload, strategy, about, route, node, lifetime_ms))
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
        while not self._inbox.events:
            if not self._take(end):
                return None
        return self._inbox.events.popleft()

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

    def _request(self, kind: Kind, id: Id, strategy: int) -> None:  # noqa: A002
        self._ask(kind, id.last, id.parent, strategy)

    def _ask(self, kind: Kind, id: Id, prefix: Id, strategy: int) -> None:  # noqa: A002
        what = f"{kind.name.lower().replace('_', ' ')} {prefix / id}"
        answer = self._answer(self._send(request(kind, id, prefix, strategy)), what)
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
        reads = not writing or len(self._inbox.events) < EVENTS_MAX
        readable, writable, _ = select.select(
            [self._socket] if reads else [], [self._socket] if writing else [], [], left
        )
        if readable:
            self._read()
        return bool(readable or writable)

    def _answer(self, tag: int, what: str) -> Message:
        end = time.monotonic() + ANSWER_WITHIN
        while tag not in self._inbox.answers:
            if not self._take(end):
                raise SilentError(f"{what}: the node does not answer")
        return self._inbox.answers.pop(tag)

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
        self._inbox.feed(octets)
