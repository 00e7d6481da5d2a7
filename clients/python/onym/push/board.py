"""The blackboard: publications in shared memory (spec/blackboard.md).

A publication is written once and copied once for each subscriber, into the `bytes` that it gets.
Numbers of spec/blackboard.md are rules.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import platform
import select
import socket
import threading
import time
from dataclasses import dataclass
from typing import Self

from onym import _tlv
from onym._tlv import MalformedError

_TYPE, _VERSION_TYPE, _ENTRIES, _SLOTS, _SLOT_WORDS, _FIRST, _REFUSAL = (
    0xF4, 0x81, 0x83, 0x85, 0x87, 0x89, 0x8B,
)  # fmt: skip
_VERSION = 1
_TAIL, _FLOOR, _GOAL, _HEAD_WORDS = 0, 1, 2, 64
_PIN, _HEAD, _SLEEPS, _SEAT_OCTETS = 0, 1, 2, 4096
_LINE_WORDS, _WORDS_MAX, _ENTRIES_MAX, _SUBSCRIBERS_MAX = 8, 1 << 27, 1 << 16, 1024
_PAYLOAD_MAX = 64 << 20
_OFFER, _WANT, _TAKEN = 1, 2, 3
_ADD_SEALS, _GET_SEALS = 1033, 1034
_SEAL, _SHRINK, _GROW, _FUTURE_WRITE = 1, 2, 4, 16
_LOOK = 0.05
"""Seconds after which a sleeping side looks by itself."""
_SILENCE = 5.0


class BoardError(Exception):
    """The other side refused, ended, or broke the rules."""


@dataclass(frozen=True)
class BoardMissed:
    """So many publications are gone that were not read in time."""

    count: int


_lock = threading.Lock()


def _fence() -> None:
    """No store before it is seen after a load behind it.

    A lock is taken by an atomic exchange, which on x86-64 is such a fence; elsewhere it is not
    said to be one, so blackboards are refused there.
    """
    with _lock:
        pass


def _check_machine() -> None:
    if platform.machine() not in ("x86_64", "AMD64"):
        raise BoardError("blackboards of Python need the memory order of x86-64")


@dataclass(frozen=True)
class _Layout:
    entries: int
    slots: int
    slot_words: int

    @property
    def first_slot(self) -> int:
        return _HEAD_WORDS + -(-self.entries // _LINE_WORDS) * _LINE_WORDS

    @property
    def words(self) -> int:
        return self.first_slot + self.slots * self.slot_words

    def is_possible(self) -> bool:
        return (
            2 <= self.entries <= _ENTRIES_MAX
            and self.entries & (self.entries - 1) == 0
            and 1 <= self.slots <= _ENTRIES_MAX + _SUBSCRIBERS_MAX + 1
            and self.slot_words % _LINE_WORDS == 0
            and _LINE_WORDS <= self.slot_words <= _PAYLOAD_MAX // 8
            and self.words <= _WORDS_MAX
        )

    def entry(self, number: int) -> int:
        return _HEAD_WORDS + number % self.entries

    def octet(self, slot: int) -> int:
        return (self.first_slot + slot * self.slot_words) * 8


def _map(fd: int, octets: int, *, writing: bool) -> mmap.mmap:
    if not fcntl.fcntl(fd, _GET_SEALS) & _SHRINK or os.fstat(fd).st_size < octets:
        raise BoardError("the shared memory is shorter than was said, or could become so")
    protection = mmap.PROT_READ | (mmap.PROT_WRITE if writing else 0)
    return mmap.mmap(fd, octets, mmap.MAP_SHARED, protection)


def _make(name: str, octets: int, seals: int) -> tuple[int, mmap.mmap]:
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, octets)
    memory = mmap.mmap(fd, octets, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    fcntl.fcntl(fd, _ADD_SEALS, seals | _SHRINK | _GROW | _SEAL)
    return fd, memory


def _wake(peer: socket.socket) -> bool:
    """Sends a wake-up; whether the other side is still there. A full socket has woken it."""
    try:
        peer.send(b"\0", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return True


def _hear(peer: socket.socket) -> bool:
    """Takes wake-ups off; whether the other side is still there."""
    try:
        return bool(peer.recv(512, socket.MSG_DONTWAIT))
    except BlockingIOError:
        return True
    except OSError:
        return False


def _ask(path: str, kind: int, application: int, item: bytes) -> socket.socket:
    broker = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        broker.connect(path)
        broker.send(bytes([kind]) + application.to_bytes(8, "big") + item)
    except OSError as error:
        broker.close()
        raise BoardError(f"the node's blackboards: {error.strerror}") from None
    return broker


def _told(broker: socket.socket, patience: float) -> socket.socket | None:
    """The node's answer: an end of a pair of sockets, or none in it."""
    broker.settimeout(patience)
    try:
        said, fds, _, _ = socket.recv_fds(broker, 1, 1)
    except TimeoutError:
        raise BoardError("nobody offers a blackboard for the item") from None
    ends = [socket.socket(fileno=fd) for fd in fds]
    if said != bytes([_TAKEN]):
        raise BoardError(
            "the application has no such node-local item, or it has a blackboard"
            if said
            else "the node is gone"
        )
    return ends[0] if ends else None


class BoardSubscriber:
    """Reads what one publisher writes. Not for several threads at once."""

    def __init__(self, peer: socket.socket, patience: float = _SILENCE) -> None:
        """Waits until the publisher at the other end of `peer`, a Unix stream socket, admits us."""
        _check_machine()
        self._peer = peer
        peer.settimeout(patience)
        try:
            head = peer.recv(2, socket.MSG_PEEK | socket.MSG_WAITALL)
            if len(head) < 2 or head[0] != _TYPE:
                raise BoardError("the publisher is gone")
            octets, fds, _, _ = socket.recv_fds(peer, 2 + head[1], 2)
        except TimeoutError:
            raise BoardError("the publisher does not answer") from None
        try:
            self._layout, self._next = _granted(octets)
            if len(fds) != 2:
                raise BoardError("memory was promised and did not come")
            self._memory = _map(fds[0], self._layout.words * 8, writing=False)
            self._seat = _map(fds[1], _SEAT_OCTETS, writing=True)
        finally:
            for fd in fds:
                os.close(fd)
        # With a time-out Python would wait for wake-ups where it is asked not to.
        peer.setblocking(False)
        self._words = memoryview(self._memory).cast("Q")
        self._page = memoryview(self._seat).cast("Q")
        self._answered = 0
        self._is_over = False
        self.missed = 0
        """Publications that were missed so far."""

    def fileno(self) -> int:
        """The connection, for select: readable when asleep means that `receive(0)` may bring something."""
        return self._peer.fileno()

    def receive(self, timeout: float | None = None) -> bytes | BoardMissed | None:
        """The next publication, or how many are gone; None when nothing came for `timeout` seconds.

        Raises `BoardError` when the publisher is gone and everything was read.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while (found := self._find()) is None:
            if self._is_over:
                raise BoardError("the publisher is gone")
            left = _LOOK if end is None else min(_LOOK, end - time.monotonic())
            if left <= 0:
                return None
            self._page[_SLEEPS] = 1
            _fence()
            if self._words[_TAIL] == self._next:
                select.select([self._peer], [], [], left)
            self._page[_SLEEPS] = 0
            self._is_over |= not _hear(self._peer)
        return found

    def _find(self) -> bytes | BoardMissed | None:
        tail = self._words[_TAIL]
        if tail < self._next:
            raise BoardError("its publications became fewer")
        if tail == self._next:
            self._report()
            return None
        entry = self._words[self._layout.entry(self._next)]
        slot, octets = entry >> 32, entry & 0xFFFF_FFFF
        self._page[_PIN] = slot + 1
        _fence()
        floor = self._words[_FLOOR]
        if floor > self._next:
            self._page[_PIN] = 0
            return self._skip(floor)
        if slot >= self._layout.slots or octets > self._layout.slot_words * 8:
            raise BoardError("a publication lies outside of the memory")
        at = self._layout.octet(slot)
        payload = self._memory[at : at + octets]
        self._page[_PIN] = 0
        self._next += 1
        self._report()
        return payload

    def _skip(self, floor: int) -> BoardMissed:
        """Goes on in the middle of what can be read (rule 9)."""
        tail = self._words[_TAIL]
        if tail < floor:
            raise BoardError("it forgets more than it has published")
        after = tail - min(tail - floor, self._layout.entries) // 2
        count, self._next = after - self._next, after
        self.missed += count
        self._report()
        return BoardMissed(count)

    def _report(self) -> None:
        self._page[_HEAD] = self._next
        _fence()
        goal = self._words[_GOAL]
        if goal not in (0, self._answered) and self._next >= goal:
            self._answered = goal
            self._is_over |= not _wake(self._peer)

    def close(self) -> None:
        """Leaves."""
        self._words.release()
        self._page.release()
        self._memory.close()
        self._seat.close()
        self._peer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _granted(octets: bytes) -> tuple[_Layout, int]:
    given: dict[int, bytes] = {}
    found = _tlv.head(octets)
    if found is None or found[0] != _TYPE:
        raise MalformedError("no admission")
    for typ, value in _tlv.elements(octets[found[1] : found[2]]):
        given[typ] = value
    if _REFUSAL in given:
        raise BoardError(given[_REFUSAL].decode(errors="replace"))
    try:
        numbers = [
            _tlv.read_nni(given[typ])
            for typ in (_VERSION_TYPE, _ENTRIES, _SLOTS, _SLOT_WORDS, _FIRST)
        ]
    except KeyError:
        raise MalformedError("an admission without sizes") from None
    layout = _Layout(*numbers[1:4])
    if numbers[0] != _VERSION or not layout.is_possible():
        raise MalformedError("an admission that cannot be")
    return layout, numbers[4]


@dataclass
class _Seat:
    peer: socket.socket
    memory: mmap.mmap
    page: memoryview

    def close(self) -> None:
        self.page.release()
        self.memory.close()
        self.peer.close()


class BoardPublisher:
    """Writes publications once, whatever the number of subscribers; never waits for any of them."""

    def __init__(
        self, payload_max: int = 8800, depth: int = 255, subscribers_max: int = 64
    ) -> None:
        """A blackboard on which a subscriber may be `depth` publications behind."""
        _check_machine()
        if not (0 <= payload_max <= _PAYLOAD_MAX and 1 <= subscribers_max <= _SUBSCRIBERS_MAX):
            raise BoardError("a blackboard that large cannot be")
        entries = 1 << max(1, depth.bit_length())
        line = _LINE_WORDS * 8
        slot_words = max(1, -(-payload_max // line)) * _LINE_WORDS
        self._layout = _Layout(entries, entries + subscribers_max + 1, slot_words)
        if not self._layout.is_possible():
            raise BoardError("a blackboard that large cannot be")
        self._payload_max = payload_max
        self._subscribers_max = subscribers_max
        self._fd, self._memory = _make("onym-board", self._layout.words * 8, _FUTURE_WRITE)
        self._words = memoryview(self._memory).cast("Q")
        self._seats: list[_Seat] = []
        self._offers: list[socket.socket] = []
        self._free = list(range(self._layout.slots))
        self._held: list[int] = []
        self._slots = [0] * entries
        self._tail = self._floor = 0

    def admit(self, peer: socket.socket) -> None:
        """Admits the subscriber at the other end of a Unix stream socket."""
        if len(self._seats) >= self._subscribers_max:
            self.tend()
        if len(self._seats) >= self._subscribers_max:
            why = f"all {self._subscribers_max} seats are taken"
            with contextlib.suppress(OSError):
                peer.send(_admission((_REFUSAL, why.encode())), socket.MSG_DONTWAIT)
            raise BoardError(why)
        fd, memory = _make("onym-seat", _SEAT_OCTETS, 0)
        page = memoryview(memory).cast("Q")
        page[_HEAD] = self._tail
        sizes = (self._layout.entries, self._layout.slots, self._layout.slot_words, self._tail)
        grant = _admission(
            *zip((_ENTRIES, _SLOTS, _SLOT_WORDS, _FIRST), map(_tlv.nni, sizes), strict=True)
        )
        peer.setblocking(False)
        try:
            socket.send_fds(peer, [grant], [self._fd, fd])
        finally:
            os.close(fd)
        self._seats.append(_Seat(peer, memory, page))

    def admit_offered(self) -> int:
        """Admits everybody whom the node sent for what `App.offer_board` offered; how many."""
        admitted = 0
        for broker in self._offers:
            with contextlib.suppress(BlockingIOError):
                while (peer := _told(broker, 0)) is not None:
                    with contextlib.suppress(BoardError, OSError):
                        self.admit(peer)
                        admitted += 1
        return admitted

    @property
    def subscribers(self) -> int:
        """How many there are; who left is noticed by `tend`."""
        return len(self._seats)

    def publish(self, payload: bytes) -> int:
        """Publishes; the number of the publication."""
        if len(payload) > self._payload_max:
            raise BoardError(f"{len(payload)} octets are more than {self._payload_max}")
        slot = self._free.pop() if self._free else self._reclaim()
        at = self._layout.octet(slot)
        self._memory[at : at + len(payload)] = bytes(payload)
        number, entries = self._tail, self._layout.entries
        self._words[self._layout.entry(number)] = slot << 32 | len(payload)
        self._slots[number % entries] = slot
        self._tail += 1
        self._words[_TAIL] = self._tail
        floor = max(0, self._tail + 1 - entries)
        leaving = self._slots[self._floor % entries] if floor > self._floor else None
        self._floor = floor
        self._words[_FLOOR] = floor
        _fence()
        is_pinned = False
        for seat in self._seats:
            if seat.page[_SLEEPS]:
                seat.page[_SLEEPS] = 0
                _wake(seat.peer)
            is_pinned |= leaving is not None and seat.page[_PIN] == leaving + 1
        if leaving is not None:
            (self._held if is_pinned else self._free).append(leaving)
        if number % 4096 == 4095:
            self.tend()
        return number

    def _reclaim(self) -> int:
        pins = {seat.page[_PIN] for seat in self._seats}
        self._free += [slot for slot in self._held if slot + 1 not in pins]
        self._held = [slot for slot in self._held if slot + 1 in pins]
        return self._free.pop()

    def wait_for_readers(self, timeout: float) -> bool:
        """Waits until everybody has read everything; whether that is so."""
        end = time.monotonic() + timeout
        self._words[_GOAL] = self._tail
        try:
            while True:
                _fence()
                behind = [s.peer for s in self._seats if s.page[_HEAD] < self._tail]
                left = end - time.monotonic()
                if not behind or left <= 0:
                    return not behind
                select.select(behind, [], [], min(left, _LOOK))
                self.tend()
        finally:
            self._words[_GOAL] = 0

    def tend(self) -> None:
        """Takes the seats of those back who left, or claim to have read what was not published."""
        for seat in [s for s in self._seats if not _hear(s.peer) or s.page[_HEAD] > self._tail]:
            self._seats.remove(seat)
            seat.close()

    def close(self) -> None:
        """Ends: subscribers read what was published, and are then told."""
        for seat in self._seats:
            seat.close()
        for broker in self._offers:
            broker.close()
        self._seats, self._offers = [], []
        self._words.release()
        self._memory.close()
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _admission(*fields: tuple[int, bytes]) -> bytes:
    value = _tlv.element(_VERSION_TYPE, _tlv.nni(_VERSION))
    return _tlv.element(_TYPE, value + b"".join(_tlv.element(t, v) for t, v in fields))


def offer(path: str, application: int, item: bytes, publisher: BoardPublisher) -> None:
    """Tells the node whose boards are at `path` that `publisher` has the board of an item."""
    broker = _ask(path, _OFFER, application, item)
    try:
        _told(broker, _SILENCE)
    except BaseException:
        broker.close()
        raise
    publisher._offers.append(broker)  # noqa: SLF001


def want(path: str, application: int, item: bytes, patience: float) -> BoardSubscriber:
    """Asks the node for the board of an item, until somebody offers one."""
    with _ask(path, _WANT, application, item) as broker:
        peer = _told(broker, patience)
    if peer is None:
        raise BoardError("the node is gone")
    return BoardSubscriber(peer, patience)
