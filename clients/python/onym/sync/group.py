"""Publications of a group, in order for each node: names as ndnd's SvsALO, `onym chat` and NDNts use them."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass

from onym._tlv import MalformedError
from onym.sync import _packet
from onym.sync._face import Face, NotRegisteredError, UnansweredError
from onym.sync._packet import SEGMENT, SEQ, TIMESTAMP, VERSION, Interest, keyword, numbered
from onym.sync.svs import Svs, Update

SEGMENT_OCTETS = 8000
OBJECT_OCTETS_MAX = 1 << 20
# Our own packets and others' publications that nobody took, at most: the oldest packets go, and
# fetching stands still.
STORE_MAX, INBOX_MAX = 4096, 1024
# Vectors that were under way when we came may be old: only then is it known what is the newest.
START_WAIT_S = 0.1
FETCHES_MAX = 256
# Publications between two bundles of history, by which members of ndnd's library learn what was before.
BUNDLE_EVERY = 10
INDEX_FRESHNESS_MS = 10


@dataclass(frozen=True)
class Publication:
    """What a node published."""

    node: str
    boot: int
    seq: int
    content: bytes


class Group:
    """A member of a group: `async with await Group.join(face, "/chat", "/alice") as group`."""

    def __init__(self, face: Face, group: str, node: str, last: int) -> None:
        self._face, self._last = face, last
        self._group, node_name = _packet.name(group), _packet.name(node)
        boot = int(time.time())
        self._sync = self._group + keyword("svs")
        self._svs = Svs(self._sync, node_name, boot, time.monotonic())
        self._base = self._group + node_name + numbered(TIMESTAMP, boot)
        self._packets: OrderedDict[bytes, bytes] = OrderedDict()
        # Publications since the last bundle, bundles by their last publication, metadata by its name.
        self._unbundled: list[tuple[int, bytes]] = []
        self._bundles: list[int] = []
        self._metadata: dict[bytes, bytes] = {}
        self._inbox: asyncio.Queue[Publication] = asyncio.Queue(INBOX_MAX)
        self._latest: dict[tuple[bytes, int], int] = {}
        self._tasks: dict[tuple[bytes, int], asyncio.Task[None]] = {}
        self._fetches = asyncio.Semaphore(FETCHES_MAX)
        self._wake = asyncio.Event()
        self._timer: asyncio.Task[None] | None = None

    @classmethod
    async def join(cls, face: Face, group: str, node: str, last: int = 10) -> Group:
        """Joins as `node`; of what others published before, the `last` of each are fetched."""
        self = cls(face, group, node, last)
        face.serve(self._sync, self._on_sync)
        face.serve(self._base, self._answer)
        await face.register(self._sync)
        await face.register(self._base)
        with contextlib.suppress(NotRegisteredError):
            # Otherwise an operator chooses it.
            await face.multicast(self._sync)
        self._timer = asyncio.create_task(self._run())
        return self

    async def __aenter__(self) -> Group:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()

    async def leave(self) -> None:
        """Ends what runs for the group; the face stays open."""
        for task in [*self._tasks.values(), self._timer]:
            if task is not None:
                task.cancel()

    def publish(self, content: bytes) -> int:
        """Publishes; its sequence number."""
        if len(content) > OBJECT_OCTETS_MAX:
            raise ValueError(f"{len(content)} octets are too many for a publication")
        seq = self._svs.seq + 1
        self._keep(self._base + numbered(SEQ, seq) + numbered(VERSION, 0), content, 4000)
        self._unbundled.append((seq, content))
        if not self._bundles or len(self._unbundled) >= BUNDLE_EVERY:
            self._bundle(seq)
        while len(self._packets) > STORE_MAX:
            self._packets.popitem(last=False)
        self._svs.publish(time.monotonic())
        self._wake.set()
        return seq

    def _keep(self, base: bytes, content: bytes, freshness_ms: int) -> int:
        """Keeps an object in segments; the number of the last one."""
        last = max(1, -(-len(content) // SEGMENT_OCTETS)) - 1
        for n in range(last + 1):
            part = content[n * SEGMENT_OCTETS : (n + 1) * SEGMENT_OCTETS]
            segment = base + numbered(SEGMENT, n)
            self._packets[segment] = _packet.write_data(segment, part, freshness_ms, last)
        return last

    def _bundle(self, seq: int) -> None:
        """Writes what is not in a bundle into one, and the index of all bundles."""
        bundle = self._base + keyword("HIST") + numbered(VERSION, seq)
        self._keep(bundle, _packet.write_history(self._unbundled), 4000)
        self._unbundled = []
        self._bundles = [*self._bundles, seq][-STORE_MAX:]
        index = self._base + keyword("HIDX")
        named = index + numbered(VERSION, seq)
        last = self._keep(named, _packet.write_index(self._bundles), INDEX_FRESHNESS_MS)
        wanted = index + keyword("metadata")
        full = wanted + numbered(VERSION, seq) + numbered(SEGMENT, 0)
        content = _packet.write_metadata(named, last)
        self._metadata[wanted] = _packet.write_data(full, content, INDEX_FRESHNESS_MS, 0)

    def _answer(self, interest: Interest) -> bytes | None:
        return self._packets.get(interest.name) or self._metadata.get(interest.name)

    async def publications(self) -> AsyncIterator[Publication]:
        """What others publish, in order for each node, until the face closes."""
        while not self._face.closed:
            with contextlib.suppress(TimeoutError):
                yield await asyncio.wait_for(self._inbox.get(), 1)

    def _on_sync(self, interest: Interest) -> None:
        if interest.name != self._svs.prefix or interest.parameters is None:
            return
        now = time.monotonic()
        for update in self._svs.receive(now, time.time(), interest.parameters):
            self._on_update(update)
        self._wake.set()

    def _on_update(self, update: Update) -> None:
        key = (update.node, update.boot)
        self._latest[key] = update.high
        task = self._tasks.get(key)
        if task is None:
            self._tasks[key] = asyncio.create_task(self._follow(key, None))
        elif task.done():
            self._tasks[key] = asyncio.create_task(self._follow(key, update.low))

    async def _follow(self, key: tuple[bytes, int], seq: int | None) -> None:
        """Fetches what `key` published, from `seq` on, until there is no more."""
        if seq is None:
            await asyncio.sleep(START_WAIT_S)
            seq = max(1, self._latest[key] - self._last + 1)
        node, boot = key
        while seq <= self._latest[key]:
            base = self._group + node + numbered(TIMESTAMP, boot) + numbered(SEQ, seq)
            try:
                async with self._fetches:
                    content = await self._fetch(base + numbered(VERSION, 0))
            except (UnansweredError, MalformedError):
                # Gone everywhere: the later ones may still be there.
                seq += 1
                continue
            await self._inbox.put(Publication(_packet.uri(node), boot, seq, content))
            seq += 1

    async def _fetch(self, base: bytes) -> bytes:
        content, segment, last = b"", 0, 0
        while segment <= last:
            data = await self._face.request(base + numbered(SEGMENT, segment))
            content += data.content
            last = data.last_segment if data.last_segment is not None else last
            if len(content) > OBJECT_OCTETS_MAX:
                raise MalformedError("a publication is longer than accepted")
            segment += 1
        return content

    async def _run(self) -> None:
        while not self._face.closed:
            self._wake.clear()
            now = time.monotonic()
            parameters = self._svs.poll(now)
            if parameters is not None:
                nonce = secrets.token_bytes(4)
                prefix = self._svs.prefix
                self._face.send(_packet.write_interest(prefix, nonce, 1000, parameters))
            wait = max(0.0, min(self._svs.deadline - now, 1.0))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), wait)
