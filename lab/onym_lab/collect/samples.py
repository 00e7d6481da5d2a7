"""Samples of nodes and objects that were fetched, as they are written to `raw/`."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from onym_lab.collect import formats

COUNTERS = (
    "cs_hits", "cs_misses", "interests_in", "data_in", "nacks_in", "interests_out", "data_out",
    "dropped",
)  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """A node at a moment; counters are totals. None where the forwarder did not answer in time.

    `cpu` is percent of one core, `load` percent of what the node may use, `memory` octets. The
    forwarder read its counters at some moment of the `waited` seconds that its answer took.
    """

    time: float
    mono: float
    node: str
    cpu: float
    load: float
    memory: int
    names: int | None = None
    pending: int | None = None
    propagating: int | None = None
    noted: int | None = None
    cs_entries: int | None = None
    cs_hits: int | None = None
    cs_misses: int | None = None
    interests_in: int | None = None
    data_in: int | None = None
    nacks_in: int | None = None
    interests_out: int | None = None
    data_out: int | None = None
    dropped: int | None = None
    waited: float | None = None

    @property
    def valid(self) -> bool:
        """Whether the forwarder answered."""
        return self.pending is not None


@dataclass(frozen=True)
class Object:
    """An object that an application fetched: seconds since 1970, octets."""

    app: str
    node: str
    name: str
    start: float | None
    stop: float | None
    octets: int
    retransmissions: int
    completed: bool


SAMPLE_FIELDS = [field.name for field in dataclasses.fields(Sample)]
OBJECT_FIELDS = [field.name for field in dataclasses.fields(Object)]


def write(raw: Path, rows: Iterable[Sample]) -> None:
    """Write samples.csv and, for each node, listing 1."""
    by_node: dict[str, list[str]] = {}
    with (raw / "samples.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(SAMPLE_FIELDS)
        for row in rows:
            writer.writerow(dataclasses.astuple(row))
            counters = None
            if row.valid:
                counters = (row.names or 0, row.pending or 0, row.propagating or 0, row.noted or 0)
            line = formats.process_line(int(row.time), counters, row.cpu, row.memory // 1024)
            by_node.setdefault(row.node, []).append(line)
    for node, lines in by_node.items():
        text = "\n".join([formats.PROCESS_HEAD, *lines]) + "\n"
        (raw / f"process-{node}.csv").write_text(text)


def write_objects(raw: Path, rows: Iterable[Object]) -> None:
    """Write objects.csv and listing 3, which has the completed ones."""
    lines = [formats.TRANSFER_HEAD]
    with (raw / "objects.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(OBJECT_FIELDS)
        for row in rows:
            writer.writerow(dataclasses.astuple(row))
            if row.completed and row.start is not None and row.stop is not None:
                number = len(lines)
                line = formats.transfer_line(
                    number, row.name, int(row.start), int(row.stop), row.octets
                )
                lines.append(line)
    (raw / "transfers.csv").write_text("\n".join(lines) + "\n")
