"""Functions behind the experiments that wrap a benchmark instead of running a network of nodes.

Each takes ``with`` of the experiment file, a seed and a folder, and gives rows
``{where, metric, unit, value}`` of the aggregate (``scope`` is ``system`` unless it says so).
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
"""The source tree."""

Row = dict[str, Any]


class NeedsError(Exception):
    """A part or a program that an experiment needs and that is not here."""


def program(name: str) -> Path:
    """Find a program of the source tree: where ``ONYM`` is, then release, then debug.

    ``ONYM_BIN`` names a folder in place of the one that ``ONYM`` is in.

    Raises:
        NeedsError: It is not built.
    """
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    named = os.environ.get("ONYM_BIN")
    beside = os.environ.get("ONYM")
    places = [Path(named)] if named else [Path(beside).parent] if beside else []
    places += [target / "release", target / "debug"]
    for place in places:
        if os.access(place / name, os.X_OK):
            return (place / name).resolve()
    raise NeedsError(
        f"{name} is not built: cargo build --release, or name the folder that has it in ONYM_BIN"
    )


def call(
    argv: Sequence[str | Path],
    timeout: float = 600,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a program to its end and give its output.

    Raises:
        RuntimeError: It failed; with the end of what it said.
    """
    done = subprocess.run(
        [str(a) for a in argv],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=environment,
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-600:]
        raise RuntimeError(f"{Path(argv[0]).name}: {said}")
    return done.stdout


def bench_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a ``bench.json`` or its CSV, with their case taken apart into ``keys``."""
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            rows = [{**one, "value": float(one["value"])} for one in csv.DictReader(file)]
    else:
        rows = json.loads(path.read_text())
    for row in rows:
        pairs = (part.partition("=") for part in str(row["case"]).split(",") if part)
        row["keys"] = {key: value for key, _, value in pairs}
    return list(rows)


def row(where: str, metric: str, unit: str, value: float | None, **more: Any) -> Row:
    """One row of the aggregate."""
    return {"where": where, "metric": metric, "unit": unit, "value": value, **more}


def pick(options: Mapping[str, Any], **defaults: Any) -> dict[str, Any]:
    """The options over their defaults; an unknown one is a mistake of the file.

    Raises:
        RuntimeError: An option that the function does not know.
    """
    unknown = sorted(set(options) - set(defaults))
    if unknown:
        raise RuntimeError(f"no option {', '.join(unknown)}; there are {', '.join(defaults)}")
    return {**defaults, **options}
