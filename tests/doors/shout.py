"""Sends what is no packet, packets cut short, Interests for management and for nothing, and fragments
that never end, to the group, from many ports and addresses."""

import os
import random
import socket
import struct
import sys

rng = random.Random(3)
group, port = sys.argv[1], int(sys.argv[2])


def tlv(kind, value):
    n = len(value)
    return bytes([kind]) + (bytes([n]) if n < 253 else b"\xfd" + struct.pack(">H", n)) + value


def name(*parts):
    return tlv(7, b"".join(tlv(8, p) for p in parts))


def interest(n):
    return tlv(5, n + tlv(10, rng.randbytes(4)) + tlv(12, b"\x00\x36\xee\x80"))


sockets = []
for n in range(200):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("10.9.0.2", 0))
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
    sockets.append(s)
for n in range(40000):
    kind = n % 6
    if kind == 0:
        wire = rng.randbytes(rng.randrange(1, 1400))
    elif kind == 1:
        wire = interest(name(b"x", rng.randbytes(8)))[: rng.randrange(1, 20)]
    elif kind == 2:
        wire = interest(name(b"localhost", b"nfd", b"faces", b"destroy", rng.randbytes(8)))
    elif kind == 3:
        wire = interest(name(b"localhop", b"nfd", b"rib", b"register", rng.randbytes(8)))
    elif kind == 4:
        wire = interest(name(b"nothing", rng.randbytes(1200)))
    else:
        lp = tlv(81, struct.pack(">Q", n)) + tlv(82, b"\x00") + tlv(83, b"\x09")
        wire = tlv(100, lp + tlv(80, rng.randbytes(1000)))
    to = (group, port) if n % 2 else ("10.9.0.1", 6363)
    try:
        sockets[rng.randrange(len(sockets))].sendto(wire, to)
    except OSError:
        pass
