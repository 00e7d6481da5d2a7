"""Where results come from: provenance, manifest, verify, diff, archive."""

from __future__ import annotations

import contextlib
import getpass
import importlib.metadata
import io
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import zstandard

from onym_lab import tools
from onym_lab.experiment import Experiment
from onym_lab.library import NeedsError, program
from onym_lab.results import Run, digest, read_json, write_json

PACKAGES = (
    "jsonschema",
    "matplotlib",
    "numpy",
    "pandas",
    "pyarrow",
    "PyYAML",
    "scipy",
    "zstandard",
)


def _git(*argv: str) -> str | None:
    done = subprocess.run(
        ["git", "-C", str(tools.ROOT), *argv], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else None


def is_in_history(commit: str) -> bool:
    """Tell whether a commit is in the history of what is checked out."""
    return _git("merge-base", "--is-ancestor", commit, "HEAD") is not None


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _processor() -> dict[str, Any]:
    text = _text("/proc/cpuinfo") or ""
    wanted = {"model name": "model", "microcode": "microcode", "cpu MHz": "mhz"}
    found: dict[str, Any] = {"cores": os.cpu_count()}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in wanted:
            found.setdefault(wanted[key.strip()], value.strip())
    found["governor"] = _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    found["smt"] = _text("/sys/devices/system/cpu/smt/active")
    return found


def _binary(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    done = subprocess.run([str(path), "--version"], capture_output=True, text=True, check=False)
    said = done.stdout.strip().splitlines() if done.returncode == 0 else []
    return {
        "sha256": digest(path),
        "version": said[0] if said else None,
        "program": path.name,
        "build": path.parent.name if path.parent.name in ("release", "debug") else None,
    }


def _onym(backend: str) -> Path | None:
    """Find onym; a measurement that is no network may go without."""
    try:
        return tools.onym()
    except tools.MissingToolError:
        if backend == "bench":
            return None
        raise


def _word(argument: str) -> str:
    """Give a word of the command, a path without its folder: that says nothing elsewhere."""
    return Path(argument).name if Path(argument).is_absolute() else argument


SOURCES = ("bin", "crates", "Cargo.lock", "Cargo.toml", ".cargo")
"""What the program is made of: a commit that changes none of these makes the same program."""

_SAID = re.compile(r"\(([0-9a-f]{7,40})(\+changes)?\)")


def stale(version: str | None) -> str | None:
    """Say why a program is not made of the sources that are checked out; None where it is.

    Nothing is known, and nothing refused, where the laboratory runs without the source tree.
    """
    head = _git("rev-parse", "HEAD") if (tools.ROOT / "Cargo.toml").is_file() else None
    if head is None:
        return None
    said = _SAID.search(version or "")
    if said is None:
        return f"{version or 'onym'} does not say the commit that it was built from"
    changed = _git("diff", "--name-only", said[1], head, "--", *SOURCES)
    if changed is None:
        return f"it was built from {said[1]}, which is not in this history"
    if changed:
        return f"it was built from {said[1]}, the source is at {head[:12]}"
    dirty = _git("status", "--porcelain", "--untracked-files=no", "--", *SOURCES)
    if dirty and not said[2]:
        return f"it was built from {said[1]}, and the source has changes since: {dirty.split()[1]}"
    if said[2] and not dirty:
        return f"it was built from {said[1]} with changes that the source has not"
    return None


def outdated(program: Path) -> str | None:
    """Say which source is newer than a program of the tree that tells no commit.

    None where none is. What cargo goes by, too: the times of files.
    """
    target = Path(os.environ.get("CARGO_TARGET_DIR", tools.ROOT / "target"))
    if not program.is_relative_to(target.resolve()):
        return None
    listed = _git("ls-files", "--", *SOURCES, "bench") or ""
    built = program.stat().st_mtime
    for name in listed.splitlines():
        source = tools.ROOT / name
        is_source = source.suffix in (".rs", ".toml", ".lock") and source.exists()
        if is_source and source.stat().st_mtime > built:
            return f"{name} was changed after {program.name} was built"
    return None


BY_BENCH = ("index:", "profile:", "pushpull:", "replay:", "router:")
"""Measurements that run ``onym-bench``."""


def programs(experiment: Experiment, backend: str) -> dict[str, Path | None]:
    """Find the programs that a run measures by: ours and, where they are on PATH, others'."""
    found = {"onym": _onym(backend), "ndnd": tools.on_path("ndnd"), "nfd": tools.on_path("nfd")}
    bench = experiment.data.get("bench", {})
    wanted = str(bench.get("with", {}).get("run", ""))
    if wanted.startswith("onym-bench") or str(bench.get("call", "")).startswith(BY_BENCH):
        with contextlib.suppress(NeedsError):
            found["onym-bench"] = program("onym-bench")
    return found


def refuse(found: dict[str, Path | None]) -> None:
    """Refuse programs that are not made of the sources that are checked out.

    Raises:
        OtherProgramError: Which, and why.
    """
    onym, bench = (_binary(found["onym"]) or {}), found.get("onym-bench")
    why = stale(onym["version"]) if onym else None
    name = "onym"
    if why is None and bench is not None:
        name, why = bench.name, outdated(bench)
    if why:
        raise tools.OtherProgramError(
            f"{name} is not that of the sources: {why}; `make build`, or --any-binary"
        )


def same_programs(run: Run, experiment: Experiment, backend: str) -> None:
    """Refuse to go on with a run by other programs than it was begun with.

    Raises:
        OtherProgramError: Which program is another one.
    """
    noted = run.provenance.get("binaries") or {}
    for name, path in programs(experiment, backend).items():
        before = (noted.get(name) or {}).get("sha256")
        if path is not None and before and digest(path) != before:
            raise tools.OtherProgramError(
                f"{run.folder.parent.name}/{run.folder.name} was begun with another {name}: "
                "take that folder away, give this run a --name, or --any-binary"
            )


def gather(experiment: Experiment, backend: str, any_binary: bool = False) -> dict[str, Any]:
    """Gather everything that a reader needs to judge and to repeat a run.

    Raises:
        OtherProgramError: A program was made of other sources, and ``any_binary`` is not set.
    """
    found = programs(experiment, backend)
    if not any_binary:
        refuse(found)
    status = _git("status", "--porcelain")
    memory = _text("/proc/meminfo") or "MemTotal: 0 kB"
    return {
        "experiment": experiment.name,
        "backend": backend,
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": _git("rev-parse", "HEAD"),
        "dirty": bool(status) if status is not None else None,
        "command": ["onym-lab", *map(_word, sys.argv[1:])],
        "binaries": {name: _binary(path) for name, path in found.items()},
        "machine": {
            "system": platform.system(),
            "kernel": platform.release(),
            "architecture": platform.machine(),
            "processor": _processor(),
            "memory_kb": int(memory.split()[1]),
            "rmem_max": _text("/proc/sys/net/core/rmem_max"),
            "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))),
        },
        "operator": getpass.getuser(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def _kept(run: Run) -> list[Path]:
    """List the files that the manifest holds: what was measured and what follows from it."""
    tops = [
        "experiment.yaml", "experiment.json", "plan.json", "provenance.json", "aggregate.csv",
        "aggregate.parquet", "samples.parquet", "traffic.parquet", "transfers.parquet",
        "checks.csv",
    ]  # fmt: skip
    found = [run.folder / name for name in tops]
    found += sorted((run.folder / "topologies").glob("*"))
    found += sorted((run.folder / "cells").rglob("raw/**/*"))
    return [path for path in found if path.is_file()]


def write_manifest(run: Run) -> None:
    """Write manifest.json."""
    files = {
        str(path.relative_to(run.folder)): {"sha256": digest(path), "octets": path.stat().st_size}
        for path in _kept(run)
    }
    write_json(run.folder / "manifest.json", {"files": files})


def verify(run: Run) -> list[str]:
    """Compare every file with the manifest; gives what is wrong."""
    manifest = read_json(run.folder / "manifest.json")
    if not manifest:
        return ["there is no manifest.json: the run is not finished"]
    wrong = []
    for name, noted in manifest["files"].items():
        path = run.folder / name
        if not path.is_file():
            wrong.append(f"{name}: is missing")
        elif digest(path) != noted["sha256"]:
            wrong.append(f"{name}: was changed")
    known = set(manifest["files"])
    wrong += [
        f"{path.relative_to(run.folder)}: is not in the manifest"
        for path in _kept(run)
        if str(path.relative_to(run.folder)) not in known
    ]
    return wrong


def _flat(value: Any, place: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        for key, one in value.items():
            found.update(_flat(one, f"{place}.{key}" if place else str(key)))
        return found
    return {place: value}


def diff(left: Run, right: Run) -> list[str]:
    """Say in what two runs differ: experiment, provenance, and means that are apart."""
    lines = []
    for part in ("experiment", "provenance"):
        a, b = _flat(getattr(left, part)), _flat(getattr(right, part))
        for key in sorted(a.keys() | b.keys()):
            if a.get(key) != b.get(key) and not key.startswith(("command", "began")):
                lines.append(f"{part} {key}: {a.get(key)!r} | {b.get(key)!r}")
    keys = ["label", "scope", "where", "metric"]
    means = [run.aggregate.groupby(keys)["value"].mean() for run in (left, right)]
    for key in sorted(set(means[0].index) | set(means[1].index)):
        one, two = (float(mean.get(key, float("nan"))) for mean in means)
        if one != two and not (one != one and two != two):
            ratio = f" (x{two / one:.3f})" if one and one == one and two == two else ""
            shown = [f"{value:.6g}" if value == value else "none" for value in (one, two)]
            lines.append(f"{' '.join(key)}: {' | '.join(shown)}{ratio}")
    return lines


def archive(run: Run, target: Path) -> None:
    """Put a run into one `.tar.zst`, with its experiment's name and its own in front."""
    base = Path(run.folder.parent.name) / run.folder.name
    squeeze = zstandard.ZstdCompressor(level=9)
    with (
        target.open("wb") as file,
        squeeze.stream_writer(file) as stream,
        tarfile.open(fileobj=stream, mode="w|") as tar,
    ):
        tar.add(run.folder, arcname=str(base))


def restore(source: Path, root: Path) -> Run:
    """Unpack an archive under `root`.

    Raises:
        ValueError: The archive is none of ours, or the run is there already.
    """
    with source.open("rb") as file:
        octets = zstandard.ZstdDecompressor().stream_reader(file).read()
    with tarfile.open(fileobj=io.BytesIO(octets)) as tar:
        names = tar.getnames()
        base = Path(names[0])
        if len(base.parts) != 2 or any(not name.startswith(names[0]) for name in names):
            raise ValueError(f"{source} is no archive of a run")
        if (root / base).exists():
            raise ValueError(f"{root / base} is there already")
        tar.extractall(root, filter="data")
    return Run(root / base)


def citation(run: Run) -> str:
    """Say how a result can be cited."""
    where = run.provenance
    paper = run.experiment.get("paper", {})
    machine = where.get("machine", {})
    after = f", after {paper['id']} figure {paper['figure']}" if "figure" in paper else ""
    return (
        f"Onym laboratory, experiment {where.get('experiment')} ({run.experiment.get('title')})"
        f"{after}; backend {where.get('backend')}, commit {str(where.get('commit'))[:12]}"
        f"{' with changes' if where.get('dirty') else ''}, {where.get('began')}, "
        f"{machine.get('processor', {}).get('model')}, Linux {machine.get('kernel')}."
    )


def shown(run: Run) -> str:
    """Give the provenance as text."""
    return json.dumps(run.provenance, indent=1)
