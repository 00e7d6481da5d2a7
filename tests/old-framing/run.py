#!/usr/bin/env python3
"""The old Blackadder framing over Ethernet (EtherType 0x080A; spec/push.md, section 7).

    tests/old-framing/run.py ONYM

Two daemons in network namespaces joined by a veth exchange publications in old frames, which a socket
of the test sees and can send, as an old node would. Exit status 77: not root, or no `ip`.
"""

import ctypes
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[n] / at) for n, at in ((1, "support"), (2, "clients/python"))]
from nodes import inside, ip, is_root_with, running, settings, space, until
from onym.push import App, Data, Id, Strategy

ETHERTYPE = 0x080A
MACS = {"a": "02:00:00:00:00:0a", "b": "02:00:00:00:00:0b"}
INSIDE = {"a": 1, "b": 2}
LINK = {"a": 7, "b": 8}
ITEM = Id.parse("/1/2")
FOR_ALL = Id.parse("/1/3")


def bits(*numbers: int) -> bytes:
    """The filter with these bits: bit i is bit i % 8 of octet i / 8."""
    return sum(1 << n for n in numbers).to_bytes(32, "little")


def route(filter_: bytes) -> bytes:
    """A flat route (form 1), table 0."""
    return bytes([1, 0]) + filter_


def old_frame(filter_: bytes, payload: bytes, item: Id = ITEM) -> bytes:
    octets = item.octets
    return filter_ + bytes([1, len(octets) // 8]) + octets + payload


@contextmanager
def daemon(onym: str, folder: str, name: str, netns: str) -> Iterator[str]:
    other = "b" if name == "a" else "a"
    uri = f"ether://[{MACS[other]}]"
    path = f"{folder}/{name}.sock"
    sets = [
        f'faces.unix.path="{path}"',
        "faces.udp.listen=[]",
        "faces.tcp.listen=[]",
        "faces.websocket.listen=[]",
        "push.enabled=true",
        'push.scheme="bits"',
        f"push.inside={INSIDE[name]}",
        f'face=[{{uri="{uri}", local="dev://eth0", framing="old-push"}}]',
        f'push.link=[{{face="{uri}", number={LINK[name]}}}]',
    ]
    with running(inside(netns, onym, "daemon", *settings(sets)), Path(folder) / f"{name}.log", "ready"):
        yield f"unix://{path}"


def listen(netns: str) -> socket.socket:
    """A packet socket in a namespace: made there, used here."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{netns}", os.O_RDONLY)
    try:
        setns(there)
        packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        packets.bind(("eth0", ETHERTYPE))
        packets.settimeout(0.2)
        return packets
    finally:
        setns(own)
        os.close(own)
        os.close(there)


def setns(fd: int) -> None:
    """As `os.setns`, which Python has from 3.12 on."""
    if ctypes.CDLL(None, use_errno=True).setns(fd, 0):
        raise OSError(ctypes.get_errno(), "setns")


def heard(app: App, payload: bytes, item: Id = ITEM, by: Strategy = Strategy.IMPLICIT) -> bool:
    return app.event(0.2) == Data(item, payload, by)


def publish(giver: App, filter_: bytes, payload: bytes, is_there: Callable[[], bool]) -> None:
    """Publishes by the filter until it has arrived: nobody repeats what is lost at the start."""

    def again() -> bool:
        giver.publish(ITEM, payload, Strategy.IMPLICIT, route=route(filter_))
        return is_there()

    until(again, f"{payload!r}")


def check(onym: str, stack: ExitStack) -> None:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    names = {n: stack.enter_context(space(f"old{os.getpid()}{n}")) for n in "ab"}
    ip("link", "add", "eth0", "netns", names["a"], "address", MACS["a"], "type", "veth",
       "peer", "name", "eth0", "netns", names["b"], "address", MACS["b"])  # fmt: skip
    for name in names.values():
        ip("-n", name, "link", "set", "eth0", "up")
    nodes = {n: stack.enter_context(daemon(onym, folder, n, names[n])) for n in "ab"}
    apps = {n: stack.enter_context(App.open(nodes[n], n)) for n in "ab"}
    for app in apps.values():
        app.subscribe_item(ITEM, Strategy.IMPLICIT)
    for n, other in ("ab", "ba"):
        ways = bits(LINK[n], INSIDE[other])
        payload = b"from " + n.encode()
        publish(apps[n], ways, payload, lambda o=other, p=payload: heard(apps[o], p))
    print("two nodes: ok")

    wire = stack.enter_context(listen(names["b"]))
    ways = bits(LINK["a"], INSIDE["b"])

    def seen() -> bool:
        try:
            octets = wire.recv(2048)
        except TimeoutError:
            return False
        ends = bytes.fromhex((MACS["b"] + MACS["a"]).replace(":", "")) + ETHERTYPE.to_bytes(2, "big")
        return octets[:14] == ends and octets[14:].rstrip(b"\0") == old_frame(ways, b"layout")

    publish(apps["a"], ways, b"layout", seen)
    print("octets on the wire: ok")

    # An old node at the place of b sends; what is nonsense before it does no harm.
    head = bytes.fromhex((MACS["a"] + MACS["b"]).replace(":", "")) + ETHERTYPE.to_bytes(2, "big")

    def sent() -> bool:
        for frame in (b"nonsense", bytes(100), old_frame(bits(INSIDE["a"]), b"old")):
            wire.send(head + frame)
        return heard(apps["a"], b"old")

    until(sent, "the publication of an old node")

    def sent_to_all() -> bool:
        wire.send(head + old_frame(b"\xff" * 32, b"to all", FOR_ALL))
        return heard(apps["a"], b"to all", FOR_ALL, Strategy.BROADCAST)

    apps["a"].subscribe_item(FOR_ALL, Strategy.BROADCAST)
    until(sent_to_all, "the publication for neighbours")
    print("an old node: ok")


def main() -> int:
    if not is_root_with():
        return 77
    with ExitStack() as stack:
        check(str(Path(sys.argv[1]).resolve()), stack)
    return 0


if __name__ == "__main__":
    sys.exit(main())
