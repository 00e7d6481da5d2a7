"""Requests and replies over items (spec/push.md, P-76 and P-77), for asyncio.

>>> async with await Client.open(Id.parse("/services/sort")) as client:        # doctest: +SKIP
...     print(await client.call(b"b\\na\\n", timeout=5))
>>> async with await Server.open(Id.parse("/services/sort")) as server:        # doctest: +SKIP
...     async for request in server:
...         await request.reply(b"".join(sorted(request.payload.splitlines(True))))
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from onym.push._inbox import (
    ClosedError,
    Data,
    Event,
    Lost,
    Missed,
    Refused,
    RefusedError,
    StartPublish,
    StopPublish,
)
from onym.push.aio import App
from onym.push.ident import Id
from onym.push.message import Status, Strategy

OPEN_MAX = 1024
"""Replies that a client waits for."""
CLIENTS_MAX = 1024
"""Clients that a server knows."""
WAITING_MAX = 64
"""Replies that wait for the way to a client."""

_NUMBER = 8
_REPLIED, _REFUSED = 0, 1


class CallError(Exception):
    """There is no reply."""


class NoServerError(CallError):
    """Nobody serves."""


class GoneError(CallError):
    """The servers ended, or cannot be reached any more; the request may have been served."""


class CallRefusedError(CallError):
    """The server refused, with a text for people."""


class LateError(CallError):
    """Nothing came in time; the request may have been served."""


class LostError(LateError):
    """Nothing came in time, and `count` publications for this application were lost meanwhile."""

    def __init__(self, count: int) -> None:
        super().__init__(f"no reply in time, and {count} publications were lost")
        self.count = count


class FullError(CallError):
    """Too many replies are waited for."""


class MalformedReplyError(CallError):
    """What came as the reply is none."""


async def _scopes(app: App, service: Id, strategy: int) -> tuple[Id, Id]:
    """Publishes the scopes of a service; those of requests and of replies."""
    calls, replies = service / "~call", service / "~reply"
    for scope in (service, calls, replies):
        await app.join_scope(scope, strategy)
    return calls, replies


class _Side:
    """An application whose events are taken by a task of its own."""

    def __init__(self, app: App, service: Id, strategy: int) -> None:
        self.app = app
        self._service, self._strategy = service, strategy
        self._end: Exception | None = None
        self._running: asyncio.Task[None] | None = None

    def _run(self) -> None:
        self._running = asyncio.get_running_loop().create_task(self._take())

    async def _take(self) -> None:
        try:
            async for event in self.app:
                await self._obey(event)
            self._over(ClosedError("the node closed the connection"))
        except Exception as error:  # noqa: BLE001: who waits is told
            self._over(error)

    async def _obey(self, event: Event) -> None:
        raise NotImplementedError

    def _over(self, why: Exception) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        """Ends, and takes everything back."""
        if self._running:
            self._running.cancel()
        self._over(ClosedError("closed"))
        await self.app.leave()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class Client(_Side):
    """A client of a service. Any number of tasks may call."""

    def __init__(self, app: App, service: Id, strategy: int) -> None:
        super().__init__(app, service, strategy)
        self._item = self._replies = Id()
        self._open: dict[int, asyncio.Future[bytes]] = {}
        self._started = asyncio.Event()
        self._last = self._lost = 0

    @classmethod
    async def open(
        cls, service: Id, strategy: int = Strategy.DOMAIN_LOCAL, node: str | None = None
    ) -> Self:
        """Connects to a node as a client of `service`, the scopes above which are there."""
        return await cls.over(await App.open(node), service, strategy)

    @classmethod
    async def over(cls, app: App, service: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> Self:
        """An application as a client of `service`."""
        client = cls(app, service, strategy)
        calls, replies = await _scopes(app, service, strategy)
        client._item, client._replies = calls / app.info.token, replies / app.info.token
        await app.subscribe_item(client._replies, strategy)
        await app.publish_item(client._item, strategy)
        client._run()
        return client

    async def call(self, payload: bytes, timeout: float = 10.0) -> bytes:
        """Sends a request once and waits for its reply, `timeout` seconds for all together.

        Raises `CallError`: of it `NoServerError`, `GoneError`, `CallRefusedError`, `LateError`,
        `LostError`, `FullError`, `MalformedReplyError`; `ClosedError` when the connection ended.
        """
        if len(self._open) >= OPEN_MAX:
            raise FullError("too many replies are waited for already")
        # Its place is taken while it waits for a server, too.
        self._last += 1
        number, reply = self._last, asyncio.get_running_loop().create_future()
        self._open[number] = reply
        is_sent = False
        try:
            async with asyncio.timeout(timeout):
                while not self._started.is_set():
                    self._check()
                    await self._started.wait()
                self._check()
                is_sent = True
                octets = number.to_bytes(_NUMBER, "big") + payload
                await self.app.publish(self._item, octets, self._strategy)
                return await reply
        except TimeoutError:
            if not is_sent:
                raise NoServerError(f"{self._service.path}: nobody serves requests there") from None
            if self._lost:
                raise LostError(self._lost) from None
            raise LateError("no reply in time") from None
        finally:
            self._open.pop(number, None)
            if not self._open:
                self._lost = 0
            if reply.done() and not reply.cancelled():
                reply.exception()

    def _check(self) -> None:
        if self._end:
            raise self._end

    async def _obey(self, event: Event) -> None:
        match event:
            case StartPublish(id) if id == self._item:
                self._started.set()
            case StopPublish(id) if id == self._item:
                self._stopped()
            case Refused(id, Status.STOPPED) if id == self._item:
                self._stopped()
            case Data(id, payload) if id == self._replies:
                self._arrived(payload)
            case Missed(count) | Lost(count) if self._open:
                self._lost += count
            case _:
                pass

    def _stopped(self) -> None:
        if self._started.is_set():
            self._started.clear()
            self._fail(GoneError("the server went before it replied"))

    def _arrived(self, payload: bytes) -> None:
        reply = self._open.get(int.from_bytes(payload[:_NUMBER], "big"))
        if len(payload) < _NUMBER or reply is None or reply.done():
            return
        match payload[_NUMBER : _NUMBER + 1]:
            case b"\x00":
                reply.set_result(payload[_NUMBER + 1 :])
            case b"\x01":
                text = payload[_NUMBER + 1 :].decode(errors="replace")
                reply.set_exception(CallRefusedError(text))
            case _:
                reply.set_exception(MalformedReplyError("what came as the reply is none"))

    def _fail(self, why: Exception) -> None:
        for reply in self._open.values():
            if not reply.done():
                reply.set_exception(why)

    def _over(self, why: Exception) -> None:
        self._end = self._end or why
        self._fail(why)
        self._started.set()


@dataclass
class Request:
    """A request; one of `reply` and `refuse` once."""

    client: bytes
    """The token of the client."""
    payload: bytes
    _number: int = field(repr=False)
    _server: Server = field(repr=False)

    async def reply(self, payload: bytes) -> None:
        """Replies."""
        await self._server._answer(self, _REPLIED, payload)

    async def refuse(self, why: str) -> None:
        """Refuses, with a text for people."""
        await self._server._answer(self, _REFUSED, why.encode())


@dataclass
class _Asker:
    asked: int = 0
    is_started: bool = False
    waiting: deque[bytes] = field(default_factory=deque)


class Server(_Side):
    """A server of a service: `async for request in server`."""

    def __init__(self, app: App, service: Id, strategy: int) -> None:
        super().__init__(app, service, strategy)
        self._calls = self._replies = Id()
        self._askers: dict[bytes, _Asker] = {}
        self._asked = 0
        self._requests: asyncio.Queue[Request | Exception] = asyncio.Queue(OPEN_MAX)
        self.unsent = 0
        """Replies for which there was no room, or no client any more."""
        self.lost = 0
        """Publications, requests for one, that were lost on their way here."""

    @classmethod
    async def open(
        cls, service: Id, strategy: int = Strategy.DOMAIN_LOCAL, node: str | None = None
    ) -> Self:
        """Connects to a node as a server of `service`, the scopes above which are there."""
        return await cls.over(await App.open(node), service, strategy)

    @classmethod
    async def over(cls, app: App, service: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> Self:
        """An application as a server of `service`."""
        server = cls(app, service, strategy)
        server._calls, server._replies = await _scopes(app, service, strategy)
        await app.subscribe_scope(server._calls, strategy)
        server._run()
        return server

    @property
    def clients(self) -> int:
        """Clients that are known."""
        return len(self._askers)

    async def request(self, timeout: float | None = None) -> Request | None:
        """The next request, waiting for `timeout` seconds at most, or as long as it takes."""
        if self._end and self._requests.empty():
            raise self._end
        try:
            async with asyncio.timeout(timeout):
                request = await self._requests.get()
        except TimeoutError:
            return None
        if isinstance(request, Exception):
            raise request
        return request

    async def __aiter__(self) -> AsyncIterator[Request]:
        """Requests, until the connection ends."""
        while True:
            try:
                request = await self.request()
            except ClosedError:
                return
            if request is not None:
                yield request

    async def _answer(self, request: Request, code: int, octets: bytes) -> None:
        asker = self._askers.get(request.client)
        if asker is None:
            self.unsent += 1
            return
        payload = request._number.to_bytes(_NUMBER, "big") + bytes([code]) + octets
        if asker.is_started:
            await self.app.publish(self._replies / request.client, payload, self._strategy)
            return
        if len(asker.waiting) >= WAITING_MAX:
            asker.waiting.popleft()
            self.unsent += 1
        asker.waiting.append(payload)

    async def _obey(self, event: Event) -> None:
        match event:
            case Data(id, payload) if id.parent == self._calls and len(payload) >= _NUMBER:
                await self._came(id.last.octets, payload)
            case StartPublish(id) if id.parent == self._replies:
                asker = self._askers.get(id.last.octets)
                while asker and asker.waiting:
                    await self.app.publish(id, asker.waiting.popleft(), self._strategy)
                if asker:
                    asker.is_started = True
            case StopPublish(id) if id.parent == self._replies:
                await self._forget(id.last.octets)
            case Missed(count) | Lost(count):
                self.lost += count
            case Refused():
                self.unsent += 1
            case _:
                pass

    async def _came(self, client: bytes, payload: bytes) -> None:
        self._asked += 1
        if client not in self._askers:
            if len(self._askers) >= CLIENTS_MAX:
                await self._forget(min(self._askers, key=lambda one: self._askers[one].asked))
            try:
                await self.app.publish_item(self._replies / client, self._strategy)
            except RefusedError as error:
                if error.status != Status.ALREADY:
                    # It left meanwhile, or a bound of the node is reached: nobody can be told.
                    self.unsent += 1
                    return
            self._askers[client] = _Asker()
        self._askers[client].asked = self._asked
        number = int.from_bytes(payload[:_NUMBER], "big")
        # Waits while nobody takes requests: the node tells what is missed.
        await self._requests.put(Request(client, payload[_NUMBER:], number, self))

    async def _forget(self, client: bytes) -> None:
        asker = self._askers.pop(client, None)
        if asker:
            self.unsent += len(asker.waiting)
            with contextlib.suppress(RefusedError):
                await self.app.unpublish_item(self._replies / client, self._strategy)

    def _over(self, why: Exception) -> None:
        self._end = self._end or why
        with contextlib.suppress(asyncio.QueueFull):
            self._requests.put_nowait(why)
