"""A connection to a node: Interests out and in, Data in and out, registration."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable

from onym import _places
from onym._tlv import MalformedError, element, elements, head, read_nni
from onym.sync._packet import (
    DATA,
    GENERIC,
    INTEREST,
    NAME,
    PACKET_MAX,
    Data,
    Interest,
    name,
    read_data,
    read_interest,
    write_command,
    write_interest,
)

LP_PACKET, FRAGMENT, TOKEN, NACK = 100, 80, 98, 800
# Requests that wait for an answer, at most; further ones are refused.
PENDING_MAX = 4096


class UnansweredError(Exception):
    """No Data came, or a Nack."""


class NotRegisteredError(Exception):
    """The node refused a prefix."""


class Face:
    """A connection to the node. Open it with `await Face.open()`; what it reads, it reads in a task."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._pending: dict[bytes, list[asyncio.Future[Data]]] = {}
        self._under: dict[bytes, list[asyncio.Future[Data]]] = {}
        self._served: dict[bytes, Callable[[Interest], bytes | None]] = {}
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, node: str | None = None) -> Face:
        """Connects to the first node that answers at the usual places, or to `node`."""
        tried: list[str] = []
        for path in _places.unix_paths(node):
            try:
                return cls(*await asyncio.open_unix_connection(path))
            except OSError as error:
                tried.append(f"{path}: {error}")
        raise ConnectionError("no node answers: " + "; ".join(tried))

    async def close(self) -> None:
        """Ends the connection; what waits for an answer fails."""
        self._task.cancel()
        self._writer.close()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await self._task
        self._fail()

    @property
    def closed(self) -> bool:
        """Whether the node is gone."""
        return self._task.done()

    def send(self, packet: bytes) -> None:
        """Sends an Interest that nobody waits for an answer to."""
        self._writer.write(packet)

    async def request(self, wanted: bytes, lifetime_ms: int = 1000, tries: int = 4) -> Data:
        """The Data of exactly this name."""
        for _ in range(tries):
            packet = write_interest(wanted, secrets.token_bytes(4), lifetime_ms)
            with contextlib.suppress(UnansweredError):
                return await self._ask(wanted, packet, lifetime_ms)
        raise UnansweredError("no answer in time")

    async def request_packet(self, wanted: bytes, *, newest: bool = False) -> bytes:
        """The Data of exactly this name, as it came, or with `newest` a fresh one under it."""
        lifetime_ms, tries = 1000, 4
        for _ in range(tries):
            packet = write_interest(wanted, secrets.token_bytes(4), lifetime_ms, newest=newest)
            with contextlib.suppress(UnansweredError):
                return (await self._ask(wanted, packet, lifetime_ms, newest=newest)).wire
        raise UnansweredError("no answer in time")

    async def _ask(
        self, wanted: bytes, packet: bytes, lifetime_ms: int, *, newest: bool = False
    ) -> Data:
        pending = self._under if newest else self._pending
        if sum(map(len, pending.values())) >= PENDING_MAX:
            raise UnansweredError("too many requests at the same time")
        future: asyncio.Future[Data] = asyncio.get_running_loop().create_future()
        pending.setdefault(wanted, []).append(future)
        self._writer.write(packet)
        try:
            return await asyncio.wait_for(future, lifetime_ms / 1000)
        except TimeoutError:
            raise UnansweredError("no answer in time") from None
        finally:
            waiting = pending.get(wanted, [])
            if future in waiting:
                waiting.remove(future)
            if not waiting:
                pending.pop(wanted, None)

    def serve(self, prefix: bytes, answer: Callable[[Interest], bytes | None]) -> None:
        """Answers Interests under `prefix` with the Data that `answer` gives, if any."""
        self._served[prefix] = answer

    async def register(self, prefix: bytes) -> None:
        """Asks the node for the Interests under `prefix`."""
        await self._command("register", element(NAME, prefix))

    async def multicast(self, prefix: bytes) -> None:
        """Asks the node to send Interests under `prefix` to everybody."""
        strategy = element(0x6B, element(NAME, name("/localhost/nfd/strategy/multicast")))
        await self._command("set", element(NAME, prefix) + strategy, "strategy-choice")

    async def _command(self, verb: str, parameters: bytes, module: str = "rib") -> None:
        wanted = name(f"/localhost/nfd/{module}/{verb}")
        wanted += element(GENERIC, element(0x68, parameters))
        packet = write_command(wanted, secrets.token_bytes(4), int(time.time() * 1000))
        full = next(value for typ, value in elements(next(elements(packet))[1]) if typ == NAME)
        try:
            data = await self._ask(full, packet, 4000)
        except UnansweredError as error:
            raise NotRegisteredError(f"{module}/{verb}: {error}") from None
        response = dict(elements(dict(elements(data.content))[0x65]))
        if read_nni(response[0x66]) >= 400:
            text = response.get(0x67, b"").decode(errors="replace")
            raise NotRegisteredError(f"{module}/{verb}: {read_nni(response[0x66])} {text}")

    async def _read(self) -> None:
        octets = bytearray()
        try:
            while more := await self._reader.read(65536):
                octets += more
                while found := head(octets):
                    if found[2] > PACKET_MAX:
                        raise MalformedError("a frame is longer than 8800 octets")
                    if found[2] > len(octets):
                        break
                    frame = bytes(octets[: found[2]])
                    del octets[: found[2]]
                    # One bad packet is dropped; only bad framing ends a stream.
                    with contextlib.suppress(MalformedError):
                        self._take(frame)
        finally:
            self._fail()

    def _take(self, frame: bytes) -> None:
        token, nacked = b"", False
        typ, value = next(elements(frame))
        if typ == LP_PACKET:
            fields = dict(elements(value))
            token, nacked = fields.get(TOKEN, b""), NACK in fields
            frame = fields.get(FRAGMENT, b"")
            if not frame:
                return
            typ, value = next(elements(frame))
        if typ == INTEREST and nacked:
            wanted = next(elements(value))[1]
            refused = self._pending.pop(wanted, []) + self._under.pop(wanted, [])
            for future in refused:
                if not future.done():
                    future.set_exception(UnansweredError("refused with a Nack"))
        elif typ == INTEREST:
            self._answer(read_interest(frame, token))
        elif typ == DATA:
            data = read_data(frame)
            answered = self._pending.pop(data.name, [])
            # Octets of a name begin with those of another one where components do.
            for under in [name for name in self._under if data.name.startswith(name)]:
                answered += self._under.pop(under)
            for future in answered:
                if not future.done():
                    future.set_result(data)

    def _answer(self, interest: Interest) -> None:
        fits = [prefix for prefix in self._served if interest.name.startswith(prefix)]
        if not fits:
            return
        data = self._served[max(fits, key=len)](interest)
        if data is None:
            return
        if interest.token:
            data = element(LP_PACKET, element(TOKEN, interest.token) + element(FRAGMENT, data))
        self._writer.write(data)

    def _fail(self) -> None:
        for futures in [*self._pending.values(), *self._under.values()]:
            for future in futures:
                if not future.done():
                    future.set_exception(UnansweredError("the connection to the node is gone"))
        self._pending.clear()
        self._under.clear()
