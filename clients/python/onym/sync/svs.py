"""The vector of a group, without I/O: times in seconds of a steady clock go in, packets come out."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from onym._tlv import MalformedError, element, elements, nni, read_nni
from onym.sync import _packet
from onym.sync._packet import NAME, VERSION, numbered

# (node, bootstrap time) -> sequence number
Vector = dict[tuple[bytes, int], int]

PERIODIC_S, SUPPRESSION_S, FUTURE_S = 30.0, 0.2, 86400
# Octets of the encoded vector; what does not fit is not taken.
VECTOR_OCTETS_MAX = 7800
SEQ_MAX = (1 << 63) - 1


@dataclass(frozen=True)
class Update:
    """Publications that were not known."""

    node: bytes
    boot: int
    low: int
    high: int


def write_vector(vector: Vector) -> bytes:
    """The StateVector element, in canonical order."""
    entries: dict[bytes, bytes] = {}
    for (node, boot), seq in sorted(vector.items()):
        one = element(210, element(212, nni(boot)) + element(214, nni(seq)))
        entries[node] = entries.get(node, b"") + one
    return element(
        201, b"".join(element(202, element(NAME, n) + one) for n, one in entries.items())
    )


def read_vector(octets: bytes) -> Vector:
    """Reads a StateVector element; what follows it is left alone."""
    vector: Vector = {}
    typ, value = next(elements(octets), (0, b""))
    if typ != 201:
        raise MalformedError("no state vector")
    for entry_type, entry in elements(value):
        if entry_type != 202:
            continue
        fields = list(elements(entry))
        if not fields or fields[0][0] != NAME:
            raise MalformedError("an entry without a name")
        for one_type, one in fields[1:]:
            if one_type != 210:
                continue
            found = dict(elements(one))
            if 212 not in found or 214 not in found:
                raise MalformedError("a bootstrap time without number")
            key, seq = (fields[0][1], read_nni(found[212])), read_nni(found[214])
            if seq > SEQ_MAX:
                raise MalformedError("a sequence number above 2^63 - 1")
            if seq:
                vector[key] = max(seq, vector.get(key, 0))
    return vector


class Svs:
    """One participant of one group. Nothing is signed but by a digest: who reaches the group, changes it."""

    def __init__(self, group: bytes, node: bytes, boot: int, now: float) -> None:
        self.prefix = group + numbered(VERSION, 3)
        self.node, self.boot = node, boot
        self.vector: Vector = {}
        self._changed: dict[tuple[bytes, int], float] = {}
        self._heard: Vector | None = None
        self._is_due = True
        self.deadline = now + self._period()

    @staticmethod
    def _period() -> float:
        return PERIODIC_S * random.uniform(0.9, 1.1)

    @property
    def seq(self) -> int:
        """How far our node is."""
        return self.vector.get((self.node, self.boot), 0)

    def publish(self, now: float) -> int:
        """Takes the next sequence number; the group hears of it at the next `poll`."""
        self._set(now, (self.node, self.boot), self.seq + 1)
        self._is_due = True
        return self.seq

    def _set(self, now: float, key: tuple[bytes, int], seq: int) -> None:
        self.vector[key] = seq
        self._changed[key] = now

    def poll(self, now: float) -> bytes | None:
        """The parameters of the Sync Interest to send under `prefix`, if one is due."""
        if now >= self.deadline and self._heard is not None and not self._lacks(self._heard):
            # Others said it.
            self._steady(now)
        self._is_due |= now >= self.deadline
        if not self._is_due:
            return None
        self._is_due = False
        self._steady(now)
        return _packet.write_data(self.prefix, write_vector(self.vector))

    def _steady(self, now: float) -> None:
        self._heard = None
        self.deadline = now + self._period()

    def _lacks(self, heard: Vector) -> list[tuple[bytes, int]]:
        return [key for key, seq in self.vector.items() if heard.get(key, 0) < seq]

    def receive(self, now: float, unix_s: float, parameters: bytes) -> list[Update]:
        """Takes the parameters of a Sync Interest; what is new, newest bootstrap first."""
        heard = read_vector(_packet.read_data(parameters).content)
        if any(boot > unix_s + FUTURE_S for _, boot in heard):
            return []
        updates = self._merge(now, heard)
        lacked = self._lacks(heard)
        if not lacked:
            self._steady(now)
        elif self._heard is not None:
            for key, seq in heard.items():
                self._heard[key] = max(seq, self._heard.get(key, 0))
        elif any(now - self._changed[key] >= SUPPRESSION_S for key in lacked):
            self._heard = heard
            v = random.random()
            self.deadline = now + SUPPRESSION_S * (1 - math.exp(10 * (v - 1)))
        return updates

    def _merge(self, now: float, heard: Vector) -> list[Update]:
        updates = []
        room = VECTOR_OCTETS_MAX - len(write_vector(self.vector))
        for key, seq in sorted(heard.items(), key=lambda one: (one[0][0], -one[0][1])):
            known = self.vector.get(key, 0)
            cost = 8 if known else len(key[0]) + 30
            if seq <= known or cost > room:
                continue
            room -= cost
            self._set(now, key, seq)
            if key != (self.node, self.boot):
                updates.append(Update(key[0], key[1], known + 1, seq))
        return updates
