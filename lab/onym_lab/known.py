"""Counters against known traffic, before a campaign.

Two nodes; a consumer asks for some names, then another at the same node for the same. Where there
are no names to ask for, a file is published at one node and subscribed to at the other. What the
forwarders must have counted is known: a campaign on counters that say otherwise does not begin.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from onym_lab import backend
from onym_lab import experiment as files
from onym_lab import subject as forwarders
from onym_lab.backend.base import BackendError
from onym_lab.results import write_json

COUNT = 50
"""Names that each of the consumers asks for."""

HEAD = """schema: onym-lab/1
name: known
title: Known traffic
topology: {preset: line, n: 2}
defaults: {cs: 1000}
phases: {measure: {until: done, at_most: 30s}}
sample: 200ms
apps:
"""
NAMES = f"""  - {{id: server, node: n2, kind: producer, prefix: /known, size: 500,
     freshness: 3600s}}
  - {{id: first, node: n1, kind: consumer, prefix: /known, count: {COUNT}, window: 4}}
  - {{id: second, node: n1, kind: consumer, prefix: /known, count: {COUNT}, window: 4,
     start: START}}
"""
FILE = """  - {id: server, node: n2, kind: put, prefix: /known, octets: 100kB}
  - {id: first, node: n1, kind: get, prefix: /known}
"""

EXPECTED = (
    ("n1", "cs_hits", COUNT),
    ("n1", "cs_misses", COUNT),
    ("n1", "interests_out", COUNT),
    ("n1", "data_in", COUNT),
    ("n2", "data_out", COUNT),
)
"""Node, counter, and what it must have counted."""
PUBLISHED = (("n2", "publications_sent", 1), ("n1", "publications_delivered", 1))
"""The same of a file."""

PROBES = 8
"""Packets more that a node may have counted: it is ready when probes' Data came."""

STARTS = ("1s", "4s", "12s")
"""When the second consumer begins; later on a machine on which the first was not done by then."""

DONE = "counters.json"
"""What was counted, once it is right."""


def campaign(name: str, subjects: Iterable[str], folder: Path) -> None:
    """Check each subject of a campaign, once.

    Raises:
        BackendError: As :func:`check`.
    """
    for subject in sorted(subjects):
        if not (folder / subject / DONE).exists():
            check(name, subject, folder / subject)


def check(name: str, subject: str, folder: Path) -> list[dict[str, Any]]:
    """Run the traffic on a backend with a subject; gives a row for each counter.

    A counter that the forwarder does not have is no row. Traffic that was asked for again widens
    what is allowed; so does management traffic, which other forwarders than onym count with the
    rest: theirs must have counted no less, and found no more in the cache.

    Raises:
        BackendError: A counter says something else; all that do are named.
        Refused: The backend or the subject is not here.
    """
    rows: list[dict[str, Any]] = []
    for start in STARTS:
        rows = _once(name, subject, folder, start)
        if all(row["passed"] for row in rows):
            write_json(folder / DONE, rows)
            return rows
    told = "; ".join(
        f"{row['node']} {row['counter']}: {row['counted']} for {row['expected']}"
        for row in rows
        if not row["passed"]
    )
    raise BackendError(f"counters of {subject} do not tell known traffic: {told}")


def _once(name: str, subject: str, folder: Path, start: str) -> list[dict[str, Any]]:
    if folder.exists():
        backend.clean_up(folder)
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    path = folder / "known.yaml"
    kind = forwarders.make(subject)
    traffic, expected, more = (
        (FILE, PUBLISHED, 0) if kind.known == "file" else (NAMES, EXPECTED, PROBES)
    )
    path.write_text(HEAD + traffic.replace("START", start))
    bed = backend.make(name, files.load(path).spec({"subject": subject}, 1), folder)
    bed.raw.mkdir()
    with closing(bed):
        bed.provision()
        bed.warm_up()
        bed.measure(lambda _: None)
        bed.collect()
    apps = json.loads((bed.raw / "apps.json").read_text())
    again = sum(int(app.get("retransmissions") or 0) for app in apps)
    counted = json.loads((bed.raw / "measure.json").read_text())["nodes"]
    return compare(counted, more + again, kind.is_exact, expected)


def compare(
    counted: Mapping[str, Mapping[str, Any]],
    more: int,
    is_exact: bool,
    expected: Sequence[tuple[str, str, int]],
) -> list[dict[str, Any]]:
    """What nodes counted beside what they must have, and `more` at most."""
    rows = []
    for node, counter, least in expected:
        value = counted.get(node, {}).get(counter)
        if value is not None:
            is_bound = is_exact or counter == "cs_hits"
            passed = least <= value and (value <= least + more or not is_bound)
            rows.append(
                {
                    "node": node, "counter": counter, "expected": least, "counted": value,
                    "passed": passed,
                }
            )  # fmt: skip
    return rows
