"""The sampler: at equal times, what each forwarder and its process say. No program is started."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onym_lab.collect.client import Client, UnansweredError
from onym_lab.collect.meter import Meter, enter
from onym_lab.collect.samples import Sample

PAGE = 4096
PATIENCE_S = 4.0
"""How long counters are waited for: the lifetime of an Interest that names none (NDN packet
format, InterestLifetime)."""
IN_FLIGHT = 8
"""Questions that wait at one node at once."""


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
    """Samples one node at equal times; its forwarder's answers come when they come.

    A forwarder short of its processor answers late: up to `IN_FLIGHT` questions wait at once, so
    that a late answer costs the moments after it nothing. A moment that finds all of them waiting
    has no counters.
    """

    def __init__(self, name: str, every: float, watched: Watched) -> None:
        super().__init__(daemon=True)
        self.node, self.every, self.pids = name, every, watched.pids
        self.share = watched.share or 1.0
        self.socket, self.meter = watched.socket, watched.meter
        self.rows: list[Sample] = []
        self.stopping = threading.Event()
        self.local = threading.local()
        self.clients: list[Client] = []
        self.waiting: dict[int, Future[tuple[dict[str, Any], float]]] = {}
        self.askers = ThreadPoolExecutor(IN_FLIGHT, f"ask-{name}", self.enter)

    def enter(self) -> None:
        """Begin one of the threads that ask."""
        if self.meter:
            enter(self.meter.space)
        self.local.client = Client(self.socket)
        self.clients.append(self.local.client)

    def run(self) -> None:
        """Sample until stopped; moments that were missed are rows without counters."""
        last = (time.monotonic(), cpu_seconds(self.pids) or 0.0)
        next_at = last[0] + self.every
        while not self.stopping.wait(max(0.0, next_at - time.monotonic())):
            last = self.sample(last)
            missed = max(0, int((time.monotonic() - next_at) / self.every))
            self.rows += self.rows[-1:] * missed
            next_at += (1 + missed) * self.every
        self.askers.shutdown()
        self.answered()
        for client in self.clients:
            client.close()

    def sample(self, last: tuple[float, float]) -> tuple[float, float]:
        """Take one sample of the processes, and ask for its counters."""
        wall, now = time.time(), time.monotonic()
        used = cpu_seconds(self.pids)
        span = max(now - last[0], 1e-6)
        cpu = 0.0 if used is None else max(0.0, 100 * (used - last[1]) / span)
        self.answered()
        if len(self.waiting) < IN_FLIGHT:
            self.waiting[len(self.rows)] = self.askers.submit(self.ask, now)
        self.rows.append(
            Sample(
                time=wall, mono=now, node=self.node, cpu=cpu, load=cpu / self.share,
                memory=resident(self.pids),
            )
        )  # fmt: skip
        return now, used if used is not None else last[1]

    def ask(self, since: float) -> tuple[dict[str, Any], float]:
        """Give the counters, and how long they took to come; a node without an answer has none."""
        try:
            if self.meter:
                counters = self.meter.read(PATIENCE_S)
            else:
                counters = self.local.client.general(PATIENCE_S)
        except UnansweredError:
            # What comes later still must not answer the next question.
            self.local.client.close()
            counters = {}
        return counters, time.monotonic() - since

    def answered(self) -> None:
        """Put what came into the rows of the moments that asked."""
        for at in [at for at, answer in self.waiting.items() if answer.done()]:
            counters, took = self.waiting.pop(at).result()
            if not counters:
                continue
            known: dict[str, Any] = {
                key: counters.get(key)
                for key in (
                    "names", "pending", "cs_entries", "cs_hits", "cs_misses", "interests_in",
                    "data_in", "nacks_in", "interests_out", "data_out", "dropped",
                )
            }  # fmt: skip
            # Forwarders count names, not (face, name) pairs; what is pending keeps its nonces.
            pending = known["pending"]
            self.rows[at] = dataclasses.replace(
                self.rows[at], propagating=pending, noted=pending, waited=took, **known
            )


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
                node.join(timeout=2 * PATIENCE_S)

    @property
    def rows(self) -> list[Sample]:
        """All samples, in the order of time."""
        rows = [row for node in self.nodes.values() for row in node.rows]
        return sorted(rows, key=lambda row: (row.time, row.node))
