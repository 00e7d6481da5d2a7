"""The same for asyncio: an application whose requests, publications and events are awaited.

>>> async with await App.open() as app:                       # doctest: +SKIP
...     await app.subscribe_item(Id.parse("/sensors/roof/temperature"))
...     async for event in app:
...         print(event)
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from onym import _places
from onym._tlv import MalformedError
from onym.push._inbox import (
    EVENTS_MAX,
    ClosedError,
    Event,
    Inbox,
    NodeInfo,
    RefusedError,
    Sent,
    SilentError,
)
from onym.push.ident import Id
from onym.push.message import Kind, Message, Status, Strategy, Terms, publication, request, retain

ANSWER_WITHIN = 10.0
"""Seconds within which a node answers."""

SEND_QUEUE = 1 << 20
"""Octets that wait to be sent before publications wait for the node."""


class App:
    """Publishes and subscribes. One task takes events; any number may publish and request.

    Publications wait while the node does not keep up. While `EVENTS_MAX` events are not taken and
    no answer is awaited nothing is read, and the node counts what is missed.
    """

    info: NodeInfo

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Over a connection to a node; `register` comes next."""
        self._reader, self._writer = reader, writer
        writer.transport.set_write_buffer_limits(SEND_QUEUE)
        self._inbox = Inbox()
        self._tag = 0
        self._asked: dict[int, asyncio.Future[Message]] = {}
        self._end: Exception | None = None
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @classmethod
    async def open(cls, node: str | None = None, name: str = "python") -> Self:
        """Connects to `node` (`unix:///path`), or to the first that answers at the usual places."""
        faults = []
        for path in _places.unix_paths(node):
            try:
                reader, writer = await asyncio.open_unix_connection(path)
            except OSError as error:
                faults.append(f"{path}: {error.strerror}")
                continue
            app = cls(reader, writer)
            try:
                await app.register(name)
            except BaseException:
                await app.close()
                raise
            return app
        raise ClosedError("no node: " + "; ".join(faults))

    async def register(self, name: str = "python") -> None:
        """Registers under a name for people; first."""
        answer = await self._answer(Message(Kind.REGISTER, text=name), "register")
        self.info = self._inbox.registered(answer)

    async def publish_scope(self, id: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:  # noqa: A002
        """Publishes a scope."""
        await self._request(Kind.PUBLISH_SCOPE, id, strategy)

    async def join_scope(self, id: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:  # noqa: A002
        """Publishes a scope that this application may have published already."""
        try:
            await self.publish_scope(id, strategy)
        except RefusedError as error:
            if error.status != Status.ALREADY:
                raise

    async def publish_item(self, id: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:  # noqa: A002
        """Publishes an item; its data follows after `StartPublish`."""
        await self._request(Kind.PUBLISH_ITEM, id, strategy)

    async def retain(
        self,
        id: Id,  # noqa: A002
        count: int = 1,
        terms: Terms = Terms(),  # noqa: B008
    ) -> None:
        """Has the node retain the last `count` publications of this application's item `id`."""
        what = f"retain {id}"
        answer = await self._answer(retain(id, count, terms), what)
        if answer.status:
            raise RefusedError(answer.status, what)

    async def unpublish_scope(self, id: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:  # noqa: A002
        """Takes a scope back."""
        await self._request(Kind.UNPUBLISH_SCOPE, id, strategy)

    async def unpublish_item(self, id: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:  # noqa: A002
        """Takes an item back."""
        await self._request(Kind.UNPUBLISH_ITEM, id, strategy)

    async def subscribe_scope(self, id: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:  # noqa: A002
        """Subscribes to a scope: to its items, and to news of the scopes right beneath it."""
        await self._request(Kind.SUBSCRIBE_SCOPE, id, strategy)

    async def subscribe_item(self, id: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:  # noqa: A002
        """Subscribes to an item."""
        await self._request(Kind.SUBSCRIBE_ITEM, id, strategy)

    async def unsubscribe_scope(self, id: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:  # noqa: A002
        """Ends a subscription."""
        await self._request(Kind.UNSUBSCRIBE_SCOPE, id, strategy)

    async def unsubscribe_item(self, id: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:  # noqa: A002
        """Ends a subscription."""
        await self._request(Kind.UNSUBSCRIBE_ITEM, id, strategy)

    async def publish(
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
        """Publishes data and waits for no answer; a refusal comes as `Refused`.

        Waits while the node does not keep up.
        """
        self._send(publication(id, payload, strategy, about, route, node, lifetime_ms))
        await self._drain()

    async def publish_told(
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
        data = publication(id, payload, strategy, about, route, node, lifetime_ms)
        answer = await self._answer(data, f"publish {id}")
        if answer.status:
            raise RefusedError(answer.status, f"publish {id}")
        return Sent(answer.local, answer.frames)

    async def event(self, timeout: float | None = None) -> Event | None:
        """The next event, waiting for `timeout` seconds at most, or as long as it takes."""
        try:
            async with asyncio.timeout(timeout):
                while not self._inbox.events:
                    if self._end:
                        raise self._end
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return None
        event = self._inbox.events.popleft()
        if len(self._inbox.events) < EVENTS_MAX:
            self._room.set()
        return event

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Events, until the connection ends."""
        while True:
            try:
                event = await self.event()
            except ClosedError:
                return
            if event is not None:
                yield event

    async def leave(self) -> None:
        """Takes everything back that was published and subscribed, and closes."""
        with contextlib.suppress(OSError, ClosedError):
            self._send(Message(Kind.LEAVE))
            await self._drain()
        await self.close()

    async def close(self) -> None:
        """Closes the connection; the node takes everything back."""
        self._reading.cancel()
        self._ended(ClosedError("the application closed the connection"))
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _request(self, kind: Kind, id: Id, strategy: int) -> None:  # noqa: A002
        what = f"{kind.name.lower().replace('_', ' ')} {id}"
        answer = await self._answer(request(kind, id.last, id.parent, strategy), what)
        if answer.status:
            raise RefusedError(answer.status, what)

    async def _answer(self, message: Message, what: str) -> Message:
        self._tag = self._tag % 0xFFFF_FFFF + 1
        tag = self._tag
        answer = asyncio.get_running_loop().create_future()
        self._asked[tag] = answer
        self._room.set()
        try:
            async with asyncio.timeout(ANSWER_WITHIN):
                self._send(dataclasses.replace(message, tag=tag))
                await self._drain()
                return await answer
        except TimeoutError:
            raise SilentError(f"{what}: the node does not answer") from None
        finally:
            del self._asked[tag]
            # Nobody else may be told of it.
            if answer.done() and not answer.cancelled():
                answer.exception()

    def _send(self, message: Message) -> None:
        if self._end:
            raise self._end
        for piece in message.pieces():
            self._writer.write(piece)

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except (BrokenPipeError, ConnectionResetError):
            raise ClosedError("the node closed the connection") from None

    async def _read(self) -> None:
        try:
            while octets := await self._reader.read(1 << 16):
                self._inbox.feed(octets)
                for tag in list(self._inbox.answers):
                    asked = self._asked.get(tag)
                    answer = self._inbox.answers.pop(tag)
                    if asked and not asked.done():
                        asked.set_result(answer)
                self._news.set()
                while len(self._inbox.events) >= EVENTS_MAX and not self._is_asking():
                    self._room.clear()
                    await self._room.wait()
        except MalformedError as error:
            self._ended(error)
        except OSError:
            self._ended(ClosedError("the node closed the connection"))
        else:
            self._ended(ClosedError("the node closed the connection"))

    def _is_asking(self) -> bool:
        return any(not asked.done() for asked in self._asked.values())

    def _ended(self, why: Exception) -> None:
        self._end = self._end or why
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(why)
        self._news.set()
