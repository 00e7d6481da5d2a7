"""Datagram sockets over two unidirectional channels (Blackadder, section V.B.4).

The server subscribes to a scope. A client publishes an item with a random label beneath it, which
carries what it sends, and subscribes to the item whose label follows from that one, which carries
what comes back; the server publishes that item when the first datagram comes. As with UDP, a
datagram that finds no room is gone.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import time
from collections import OrderedDict, deque
from types import TracebackType
from typing import Self

from onym.push._inbox import (
    Data,
    Event,
    Refused,
    RefusedError,
    StartPublish,
    StopPublish,
)
from onym.push.app import App
from onym.push.ident import LABEL, Id
from onym.push.message import Status, Strategy

ROOT = Id.parse("/5544500000000000")
"""The root scope of addresses of IPv4: the letters UDP."""
ROOT_IPV6 = Id.parse("/5544503600000000")
"""The root scope of addresses of IPv6: the letters UDP6."""
PEERS_MAX = 1024
"""Clients of a server; the one that was silent for longest makes room."""
WAITING_MAX = 64
"""Datagrams that wait for the way to a peer; further ones are dropped."""


def address(host: str, port: int) -> Id:
    """The scope that stands for an address and port; a mapped address is the one of IPv4."""
    place = ipaddress.ip_address(host.partition("%")[0])
    place = getattr(place, "ipv4_mapped", None) or place
    octets = place.packed + port.to_bytes(2, "big")
    if place.version == 4:
        return ROOT / (octets + b"\0\0")
    return ROOT_IPV6 / hashlib.sha256(octets).digest()[:LABEL]


def way_back(item: Id) -> Id:
    """The item by which the server answers what is sent under `item`."""
    return item.parent / hashlib.sha256(item.octets).digest()[:LABEL]


class _Channel:
    """One direction: an item that we publish; what is sent before it has started waits."""

    def __init__(self, app: App, item: Id) -> None:
        self.app = app
        self.item = item
        self.is_started = False
        self.waiting: deque[bytes] = deque()
        app.publish_item(item, Strategy.DOMAIN_LOCAL)

    def send(self, payload: bytes) -> bool:
        if self.is_started:
            self.app.publish(self.item, payload, Strategy.DOMAIN_LOCAL)
        elif len(self.waiting) < WAITING_MAX:
            self.waiting.append(payload)
        else:
            return False
        return True

    def start(self) -> None:
        self.is_started = True
        while self.waiting:
            self.app.publish(self.item, self.waiting.popleft(), Strategy.DOMAIN_LOCAL)


class _Endpoint:
    def __init__(self, node: str | None, name: str, scope: Id) -> None:
        self.dropped = 0
        self.scope = scope
        self._app = App.open(node, name)
        try:
            for length in range(1, len(scope) + 1):
                self._scope(Id(scope.octets[: length * LABEL]))
        except BaseException:
            self._app.close()
            raise

    def _scope(self, scope: Id) -> None:
        try:
            self._app.publish_scope(scope, Strategy.DOMAIN_LOCAL)
        except RefusedError as error:
            if error.status != Status.ALREADY:
                raise

    def _next(self, end: float | None) -> Data | None:
        """The next datagram, until the time `end`."""
        while True:
            left = None if end is None else max(0.0, end - time.monotonic())
            event = self._app.event(left)
            if event is None or isinstance(event, Data):
                return event
            self._handle(event)

    def _handle(self, event: Event) -> None:
        raise NotImplementedError

    def fileno(self) -> int:
        """The descriptor, for select."""
        return self._app.fileno()

    def close(self) -> None:
        """Closes it."""
        self._app.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _end(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


class Client(_Endpoint):
    """A datagram socket that is connected to a server."""

    def __init__(self, scope: Id, node: str | None = None) -> None:
        """Connects to the server of `scope`, which need not be there yet."""
        # What came while we waited for something else; the oldest make room.
        self._held: deque[bytes] = deque(maxlen=PEERS_MAX)
        super().__init__(node, "datagram client", scope)
        item = scope / secrets.token_bytes(LABEL)
        self._answers = way_back(item)
        self._app.subscribe_item(self._answers, Strategy.DOMAIN_LOCAL)
        self._channel = _Channel(self._app, item)

    def send(self, payload: bytes) -> None:
        """Sends a datagram; it is gone when there is no server and no room."""
        self._drain()
        self.dropped += not self._channel.send(payload)

    def recv(self, timeout: float | None = None) -> bytes | None:
        """The next datagram of the server, waiting for `timeout` seconds at most."""
        if self._held:
            return self._held.popleft()
        data = self._next(_end(timeout))
        return None if data is None else data.payload

    def wait_connected(self, timeout: float) -> bool:
        """Waits until the server is reached."""
        end = time.monotonic() + timeout
        while not self._channel.is_started:
            event = self._app.event(max(0.0, end - time.monotonic()))
            if event is None:
                return False
            self._keep(event)
        return True

    def _drain(self) -> None:
        while not self._channel.is_started and (event := self._app.event(0)) is not None:
            self._keep(event)

    def _keep(self, event: Event) -> None:
        if isinstance(event, Data):
            self._held.append(event.payload)
        else:
            self._handle(event)

    def _handle(self, event: Event) -> None:
        match event:
            case StartPublish():
                self._channel.start()
            case StopPublish():
                self._channel.is_started = False
            case Refused():
                self.dropped += 1
            case _:
                pass


class Server(_Endpoint):
    """A datagram socket that is bound to a scope."""

    def __init__(self, scope: Id, node: str | None = None) -> None:
        """Serves `scope`."""
        self._peers: OrderedDict[Id, _Channel] = OrderedDict()
        self._ways: dict[Id, _Channel] = {}
        super().__init__(node, "datagram server", scope)
        self._app.subscribe_scope(scope, Strategy.DOMAIN_LOCAL)

    def recvfrom(self, timeout: float | None = None) -> tuple[bytes, Id] | None:
        """The next datagram and who sent it, waiting for `timeout` seconds at most."""
        data = self._next(_end(timeout))
        if data is None:
            return None
        self._peer(data.id)
        return data.payload, data.id

    def sendto(self, payload: bytes, peer: Id) -> None:
        """Sends a datagram to a client that has sent one; it is gone when there is no room."""
        self.dropped += not self._peer(peer).send(payload)

    def _peer(self, peer: Id) -> _Channel:
        channel = self._peers.get(peer)
        if channel is None:
            if len(self._peers) >= PEERS_MAX:
                self._forget(next(iter(self._peers.values())).item)
            channel = _Channel(self._app, way_back(peer))
            self._peers[peer] = self._ways[channel.item] = channel
        self._peers.move_to_end(peer)
        return channel

    def _forget(self, item: Id) -> None:
        channel = self._ways.pop(item)
        self._peers = OrderedDict((p, c) for p, c in self._peers.items() if c is not channel)
        self._app.unpublish_item(item, Strategy.DOMAIN_LOCAL)

    def _handle(self, event: Event) -> None:
        match event:
            case StartPublish(item):
                if item in self._ways:
                    self._ways[item].start()
            case StopPublish(item):
                if item in self._ways:
                    self._forget(item)
            case Refused():
                self.dropped += 1
            case _:
                pass
