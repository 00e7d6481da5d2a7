"""A small client of a forwarder's Unix socket: status datasets and probes, one at a time."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Mapping
from pathlib import Path

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


def _fields(octets: bytes, fields: Mapping[int, str], found: dict[str, int]) -> None:
    for kind, start, stop in ndn.elements(octets):
        if kind in fields:
            found[fields[kind]] = int.from_bytes(octets[start:stop], "big")
        elif kind == 0x80 and stop - start > 8:
            # CsInfo wraps its fields in one element.
            _fields(octets[start:stop], fields, found)
