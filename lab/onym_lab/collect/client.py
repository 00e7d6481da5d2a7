"""A small client of a forwarder's Unix socket: status datasets and probes, one at a time."""

from __future__ import annotations

import ctypes
import random
import re
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onym_lab.collect import ndn

GENERAL = {
    0x83: "names", 0x84: "fib", 0x85: "pending", 0x86: "measurements", 0x87: "cs_entries",
    0x90: "interests_in", 0x91: "data_in", 0x97: "nacks_in",
    0x92: "interests_out", 0x93: "data_out", 0x98: "nacks_out",
    0x99: "satisfied", 0x9A: "unsatisfied",
}  # fmt: skip
"""Fields of the dataset status/general."""
CS_INFO = {0x83: "capacity", 0x87: "cs_entries", 0x81: "cs_hits", 0x82: "cs_misses"}
"""Fields of the dataset cs/info."""


class UnansweredError(Exception):
    """No Data came in time, or a Nack."""


class Client:
    """One connection; it is made again when it broke."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.socket: socket.socket | None = None
        self.buffer = b""
        self.random = random.Random()

    def close(self) -> None:
        """End the connection."""
        if self.socket is not None:
            self.socket.close()
        self.socket, self.buffer = None, b""

    def _connected(self) -> socket.socket:
        if self.socket is None:
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            made.settimeout(1.0)
            try:
                made.connect(str(self.path))
            except OSError:
                made.close()
                raise
            self.socket, self.buffer = made, b""
        return self.socket

    def ask(self, name: str, timeout: float, prefix: bool = True, fresh: bool = True) -> bytes:
        """Send one Interest and give the content of the Data that answers it.

        Raises:
            UnansweredError: Nothing came in time, or the connection broke.
        """
        end = time.monotonic() + timeout
        nonce = self.random.randrange(2**32)
        lifetime = max(1, min(60_000, round(timeout * 1000)))
        wanted = ndn.name_of(name)[2:] if len(ndn.name_of(name)) < 255 else ndn.name_of(name)[4:]
        try:
            connection = self._connected()
            connection.settimeout(max(0.001, end - time.monotonic()))
            connection.sendall(ndn.interest(name, nonce, lifetime, prefix, fresh))
            while True:
                found = self._answer(wanted)
                if found is not None:
                    return found
                left = end - time.monotonic()
                if left <= 0:
                    raise UnansweredError(f"{name}: no answer within {timeout:g} s")
                connection.settimeout(left)
                more = connection.recv(1 << 16)
                if not more:
                    raise ConnectionError("the forwarder closed the connection")
                self.buffer += more
        except TimeoutError as error:
            raise UnansweredError(f"{name}: no answer within {timeout:g} s") from error
        except OSError as error:
            self.close()
            raise UnansweredError(f"{name}: {error}") from error

    def _answer(self, wanted: bytes) -> bytes | None:
        """Take whole packets from the buffer until one answers."""
        while self.buffer:
            try:
                _, _, stop = ndn.head(self.buffer, 0, len(self.buffer))
            except ndn.Malformed:
                return None
            if stop > len(self.buffer):
                return None
            frame, self.buffer = self.buffer[:stop], self.buffer[stop:]
            for packet in ndn.packets(frame):
                if packet.kind == "Nack" and packet.name == wanted:
                    raise UnansweredError("a Nack")
                if packet.kind == "Data" and packet.name.startswith(wanted):
                    return ndn.content(frame)[1]
        return None

    def dataset(self, name: str, fields: Mapping[int, str], timeout: float) -> dict[str, int]:
        """Ask for a dataset of numbers."""
        content = self.ask(name, timeout)
        found: dict[str, int] = {}
        _fields(content, fields, found)
        return found

    def general(self, timeout: float) -> dict[str, int]:
        """Ask for the general status."""
        return self.dataset("/localhost/nfd/status/general", GENERAL, timeout)

    def cs(self, timeout: float) -> dict[str, int]:
        """Ask how the content store is."""
        return self.dataset("/localhost/nfd/cs/info", CS_INFO, timeout)


_METRIC = re.compile(r"^(onym_[a-z_]+)(?:\{([^}]*)\})? ([0-9.eE+-]+)$")
_LABEL = re.compile(r'([a-z_]+)="([^"]*)"')
ACCEPTED = ("forwarded", "aggregated", "suppressed", "cs_hit", "delivered")
"""Verdicts of Interests that are no drops (spec/registry.md)."""


class Metrics:
    """A node's Prometheus page: what it says now, while datasets may be a second old.

    A thread that reads the page of a node in a network namespace lives in that namespace.
    """

    def __init__(self, address: str, space: str | None) -> None:
        self.host, _, port = address.rpartition(":")
        self.port, self.space = int(port), space

    def enter(self) -> None:
        """Let this thread live in the node's namespace."""
        if self.space is None:
            return
        libc = ctypes.CDLL(None, use_errno=True)
        with Path(f"/run/netns/{self.space}").open() as file:
            if libc.setns(file.fileno(), 0x40000000):
                raise OSError(ctypes.get_errno(), f"cannot enter the namespace {self.space}")

    def read(self, timeout: float) -> dict[str, Any]:
        """Read the page and give the counters in the words of the samples.

        Raises:
            UnansweredError: It did not come in time.
        """
        try:
            with socket.create_connection((self.host, self.port), timeout) as connection:
                connection.sendall(b"GET /metrics HTTP/1.0\r\nHost: onym\r\n\r\n")
                parts = []
                while part := connection.recv(1 << 16):
                    parts.append(part)
        except OSError as error:
            raise UnansweredError(f"metrics: {error}") from error
        text = b"".join(parts).decode(errors="replace")
        if "200 OK" not in text.partition("\n")[0]:
            raise UnansweredError("metrics: no page")
        return read_metrics(text)

    def once(self, timeout: float) -> dict[str, Any]:
        """Read the page from any thread; empty when it does not come."""
        found: dict[str, Any] = {}

        def read() -> None:
            try:
                self.enter()
                found.update(self.read(timeout))
            except (OSError, UnansweredError):
                return

        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        return found


def read_metrics(text: str) -> dict[str, Any]:
    """Give the counters of a Prometheus page of onym in the words of the samples."""
    plain: dict[str, float] = {}
    received = {"interest": 0, "data": 0, "nack": 0}
    verdicts: dict[str, int] = {}
    for line in text.splitlines():
        found = _METRIC.match(line.strip())
        if not found:
            continue
        name, value = found[1], float(found[3])
        labels = dict(_LABEL.findall(found[2] or ""))
        if name != "onym_packets_total":
            plain[name] = plain.get(name, 0) + value
            continue
        received[labels["kind"]] += int(value)
        if labels["kind"] == "interest":
            verdicts[labels["verdict"]] = verdicts.get(labels["verdict"], 0) + int(value)

    def whole(name: str) -> int:
        return int(plain.get(name, 0))

    drops = {word: count for word, count in verdicts.items() if word not in ACCEPTED}
    pending, cached = whole("onym_pit_entries"), whole("onym_cs_entries")
    # What was sent is told by face only, and faces that closed are not told of: it is absent here.
    return {
        "names": pending + cached + whole("onym_fib_entries"),
        "pending": pending,
        "cs_entries": cached,
        "cs_hits": whole("onym_cs_hits_total"),
        "cs_misses": whole("onym_cs_misses_total"),
        "interests_in": received["interest"],
        "data_in": received["data"],
        "nacks_in": received["nack"],
        "dropped": sum(drops.values()),
        "verdicts": drops,
    }


def _fields(octets: bytes, fields: Mapping[int, str], found: dict[str, int]) -> None:
    for kind, start, stop in ndn.elements(octets):
        if kind in fields:
            found[fields[kind]] = int.from_bytes(octets[start:stop], "big")
        elif kind == 0x80 and stop - start > 8:
            # CsInfo wraps its fields in one element.
            _fields(octets[start:stop], fields, found)
