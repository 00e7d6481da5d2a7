"""The testbed paper's files, column for column (its appendix, listings 1 to 4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

PROCESS_HEAD = "#Time, INames, IPend, IProp, INoted, CPU, Mem"
TRAFFIC_HEAD = (
    "#timestamp, data direction goodput(byte/s), interest direction goodput(byte/s), "
    "data direction throughput(byte/s), interest direction throughput(byte/s), duplicates"
)
TRANSFER_HEAD = "#no, ccnxName, transferStart, transferStop, readTotal"

_VALID = re.compile(r"^\d+, \d+, \d+, \d+, \d+, \d+(?:\.\d+)?, \d+$")


def process_line(time: int, counters: Iterable[int] | None, cpu: float, memory_kb: int) -> str:
    """Write a line of listing 1; without counters it is one that the paper calls invalid."""
    middle = ", ".join(map(str, counters)) if counters is not None else ", , , "
    return f"{time}, {middle}, {cpu:.1f}, {memory_kb}"


def is_valid(line: str) -> bool:
    """Tell whether a line of listing 1 has all its counters."""
    return bool(_VALID.match(line))


def traffic_line(time: int, second: Iterable[int]) -> str:
    """Write a line of listing 2."""
    return ", ".join(str(one) for one in (time, *second))


def transfer_line(number: int, name: str, start: int, stop: int, octets: int) -> str:
    """Write a line of listing 3."""
    return f"{number}, ccnx:{name}, {start}, {stop}, {octets}"


def capture_summary(file: str, captured: int, received: int, dropped: int, interface: str) -> str:
    """Write listing 4."""
    return (
        f"File: {file}\nPackets captured: {captured}\n"
        f"Packets received/dropped on interface {interface}: {received}/{dropped}\n"
    )


_SUMMARY = re.compile(r"received/dropped on interface \S+: (\d+)/(\d+)")


def read_summary(path: Path) -> tuple[int, int]:
    """Read received and dropped of listing 4."""
    found = _SUMMARY.search(path.read_text())
    return (int(found[1]), int(found[2])) if found else (0, 0)


def times(path: Path, columns: Iterable[int]) -> list[int]:
    """List the time stamps in the given columns of a listing."""
    found = []
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        fields = line.split(", ")
        found += [int(fields[at]) for at in columns if fields[at].strip().isdigit()]
    return found


TIME_COLUMNS: Mapping[str, tuple[int, ...]] = {
    "process": (0,),
    "traffic": (0,),
    "transfers": (2, 3),
}
"""Which columns of the listings are time stamps."""


def normalise(folders: Iterable[Path], target: Path) -> int:
    """Write the listings of `folders` to `target` with the smallest stamp of all files made 1.

    Invalid lines are left out. Returns how many.
    """
    files = [
        (path, next(kind for kind in TIME_COLUMNS if path.name.startswith(kind)))
        for folder in folders
        for path in sorted(folder.glob("*.csv"))
        if any(path.name.startswith(kind) for kind in TIME_COLUMNS)
    ]
    stamps = [stamp for path, kind in files for stamp in times(path, TIME_COLUMNS[kind])]
    shift = min(stamps, default=1) - 1
    target.mkdir(parents=True, exist_ok=True)
    left_out = 0
    for path, kind in files:
        lines = []
        for line in path.read_text().splitlines():
            if line.startswith("#"):
                lines.append(line)
                continue
            if kind == "process" and not is_valid(line):
                left_out += 1
                continue
            fields = line.split(", ")
            for at in TIME_COLUMNS[kind]:
                if fields[at].strip().isdigit():
                    fields[at] = str(int(fields[at]) - shift)
            lines.append(", ".join(fields))
        (target / path.name).write_text("\n".join(lines) + "\n")
    return left_out
