"""The sampler: at equal times, what each forwarder and its process say. No program is started."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onym_lab.collect.client import Client, UnansweredError
from onym_lab.collect.meter import Meter, enter
from onym_lab.collect.samples import Sample

PAGE = 4096


def cpu_seconds(pids: Iterable[int]) -> float | None:
    """Tell the processor time of all threads of some processes; None when one is gone."""
    total = 0
    try:
        for pid in pids:
            for thread in Path(f"/proc/{pid}/task").iterdir():
                total += int((thread / "schedstat").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return total / 1e9


def resident(pids: Iterable[int]) -> int:
    """Tell the resident memory of some processes, in octets; 0 when one is gone."""
    try:
        return PAGE * sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    except (OSError, ValueError, IndexError):
        return 0


@dataclass(frozen=True)
class Watched:
    """A forwarder to sample: socket, processes, share of a core, and what tells its counters."""

    socket: Path
    pids: tuple[int, ...]
    share: float | None
    meter: Meter | None


class _Node(threading.Thread):
    """Samples one node: a slow one does not make the others wait."""

    def __init__(self, name: str, every: float, watched: Watched) -> None:
        super().__init__(daemon=True)
        self.node, self.every, self.pids = name, every, watched.pids
        self.share = watched.share or 1.0
        self.client = Client(watched.socket)
        self.meter = watched.meter
        self.rows: list[Sample] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        """Sample until stopped; a moment that was missed is skipped."""
        if self.meter:
            enter(self.meter.space)
        last = (time.monotonic(), cpu_seconds(self.pids) or 0.0)
        next_at = last[0] + self.every
        while not self.stopping.wait(max(0.0, next_at - time.monotonic())):
            last = self.sample(last)
            next_at += self.every
            behind = time.monotonic() - next_at
            if behind > 0:
                next_at += (behind // self.every + 1) * self.every
        self.client.close()

    def sample(self, last: tuple[float, float]) -> tuple[float, float]:
        """Take one sample; without an answer it has no counters."""
        wall, now = time.time(), time.monotonic()
        used = cpu_seconds(self.pids)
        span = max(now - last[0], 1e-6)
        cpu = 0.0 if used is None else max(0.0, 100 * (used - last[1]) / span)
        memory = resident(self.pids)
        counters: dict[str, Any] = {}
        try:
            patience = self.every * 0.9
            counters = self.meter.read(patience) if self.meter else self.client.general(patience)
        except UnansweredError:
            pass
        known = {
            key: counters.get(key)
            for key in (
                "names", "pending", "cs_entries", "cs_hits", "cs_misses", "interests_in",
                "data_in", "nacks_in", "interests_out", "data_out", "dropped",
            )
        }  # fmt: skip
        # Forwarders count names, not (face, name) pairs, and keep the nonces of what is pending.
        pending = known["pending"]
        self.rows.append(
            Sample(
                time=wall, mono=now, node=self.node, cpu=cpu, load=cpu / self.share, memory=memory,
                propagating=pending, noted=pending, **known,
            )
        )  # fmt: skip
        return now, used if used is not None else last[1]


class Sampler:
    """Samples all nodes, each in a thread of its own."""

    def __init__(self, every: float, nodes: Mapping[str, Watched]) -> None:
        self.nodes = {name: _Node(name, every, watched) for name, watched in nodes.items()}

    def start(self) -> None:
        """Begin."""
        for node in self.nodes.values():
            node.start()

    def wait_first(self, patience: float) -> None:
        """Wait until every node was sampled once."""
        end = time.monotonic() + patience
        while time.monotonic() < end and not all(node.rows for node in self.nodes.values()):
            time.sleep(0.01)

    def moved(self, name: str, pids: tuple[int, ...]) -> None:
        """Say that a node is other processes now."""
        self.nodes[name].pids = pids

    def stop(self) -> None:
        """End, and wait for the last samples."""
        for node in self.nodes.values():
            node.stopping.set()
        for node in self.nodes.values():
            if node.is_alive():
                node.join(timeout=5)

    @property
    def rows(self) -> list[Sample]:
        """All samples, in the order of time."""
        rows = [row for node in self.nodes.values() for row in node.rows]
        return sorted(rows, key=lambda row: (row.time, row.node))
