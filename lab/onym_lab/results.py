"""The folder of a run: its paths, and how files in it are read and written."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import zstandard

KEYS = ["cell", "label"]


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file so that after a kill it is whole, old or new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    octets = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(octets)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Write JSON that a person can read, atomically."""
    write_atomically(path, json.dumps(value, indent=1, default=str) + "\n")


def read_json(path: Path, default: Any = None) -> Any:
    """Read JSON; `default` when the file is not there."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return default


def write_table(path: Path, frame: pd.DataFrame, csv: bool = False) -> None:
    """Write a table as Parquet, and as CSV beside it when asked."""
    temporary = path.with_name(f".{path.name}.tmp")
    frame.to_parquet(temporary, index=False)
    temporary.replace(path)
    if csv:
        write_atomically(path.with_suffix(".csv"), frame.to_csv(index=False))


def digest(path: Path) -> str:
    """Give a file's SHA-256."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def compress(path: Path) -> Path:
    """Put a file into its `.zst` and take the original away."""
    target = path.with_name(path.name + ".zst")
    temporary = target.with_name(f".{target.name}.tmp")
    with path.open("rb") as source, temporary.open("wb") as sink:
        zstandard.ZstdCompressor(level=3).copy_stream(source, sink)
    temporary.replace(target)
    path.unlink()
    return target


def open_compressed(path: Path) -> Any:
    """Open a `.zst` for reading octets."""
    return zstandard.ZstdDecompressor().stream_reader(path.open("rb"), closefd=True)


@dataclass(frozen=True)
class Replicate:
    """The folder of one replicate."""

    folder: Path
    cell: str
    replication: int

    @property
    def raw(self) -> Path:
        """What was measured; read-only after it was collected."""
        return self.folder / "raw"

    @property
    def derived(self) -> Path:
        """What was computed from it."""
        return self.folder / "derived"

    @property
    def spec(self) -> dict[str, Any]:
        """What was run, in plain units."""
        found = read_json(self.folder / "spec.json")
        return found if isinstance(found, dict) else {}

    @property
    def state(self) -> dict[str, Any]:
        """How far it is."""
        found = read_json(self.folder / "state.json")
        return found if isinstance(found, dict) else {"phase": None, "done": [], "attempts": 0}

    @property
    def is_done(self) -> bool:
        """Whether everything about it was measured and derived."""
        return bool(self.state.get("phase") == "done")

    def table(self, name: str) -> pd.DataFrame:
        """Read `derived/<name>.parquet`."""
        return pd.read_parquet(self.derived / f"{name}.parquet")


@dataclass(frozen=True)
class Run:
    """The folder of one run of an experiment."""

    folder: Path

    @property
    def experiment(self) -> dict[str, Any]:
        """The experiment with scale applied."""
        found = read_json(self.folder / "experiment.json")
        return found if isinstance(found, dict) else {}

    @property
    def plan(self) -> dict[str, Any]:
        """Cells and order."""
        found = read_json(self.folder / "plan.json")
        return found if isinstance(found, dict) else {}

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the numbers come from."""
        found = read_json(self.folder / "provenance.json")
        return found if isinstance(found, dict) else {}

    @property
    def state(self) -> dict[str, Any]:
        """How far it is."""
        found = read_json(self.folder / "state.json")
        return found if isinstance(found, dict) else {}

    @property
    def aggregate(self) -> pd.DataFrame:
        """One row per replicate, place and metric."""
        return pd.read_parquet(self.folder / "aggregate.parquet")

    @property
    def checks(self) -> pd.DataFrame:
        """What was checked of each replicate."""
        return pd.read_csv(self.folder / "checks.csv")

    def replicate(self, cell: str, replication: int) -> Replicate:
        """Name the folder of a replicate, there or not."""
        return Replicate(self.folder / "cells" / cell / f"r{replication}", cell, replication)

    def replicates(self) -> Iterator[Replicate]:
        """Go through the replicates that are done, in a fixed order."""
        for cell in sorted(one["cell"] for one in self.plan.get("cells", [])):
            folders = (self.folder / "cells" / cell).glob("r*")
            numbers = sorted(int(folder.name[1:]) for folder in folders)
            for number in numbers:
                replicate = self.replicate(cell, number)
                if replicate.is_done:
                    yield replicate

    def cell(self, cell: str) -> Mapping[str, Any]:
        """Give the plan's entry of a cell."""
        return next(one for one in self.plan["cells"] if one["cell"] == cell)

    def table(self, name: str) -> pd.DataFrame:
        """Read `samples`, `traffic` or `transfers` of all replicates."""
        return pd.read_parquet(self.folder / f"{name}.parquet")


def runs(root: Path, experiment: str | None = None) -> list[Run]:
    """List the runs under `root`, the newest last."""
    pattern = f"{experiment or '*'}/*/plan.json"
    found = sorted(root.glob(pattern), key=lambda path: path.stat().st_mtime)
    return [Run(path.parent) for path in found]
