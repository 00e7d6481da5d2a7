"""The programs that the laboratory runs: where they are, and how they are called."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class MissingToolError(Exception):
    """A program that is needed and not there."""


class OtherProgramError(MissingToolError):
    """A program that is there, and not the one that must be measured."""


def onym() -> Path:
    """Find the program under test: `ONYM`, then the source tree's newest build, then PATH.

    Raises:
        MissingToolError: There is none.
    """
    named = os.environ.get("ONYM")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    places = [Path(named)] if named else [target / "release" / "onym", target / "debug" / "onym"]
    built = [place for place in places if os.access(place, os.X_OK)]
    # The newest build is that of the present source; `make experiments` builds the release first.
    found = max(built, key=lambda place: place.stat().st_mtime, default=None)
    if found is None and not named:
        on_path = shutil.which("onym")
        found = Path(on_path) if on_path else None
    if found is None:
        raise MissingToolError("onym is not there: `make build`, or name it in ONYM")
    return found.resolve()


def on_path(name: str) -> Path | None:
    """Find a program on PATH."""
    found = shutil.which(name)
    return Path(found) if found else None


def unusable(*names: str) -> list[str]:
    """Say why programs of others cannot be measured: not on PATH, or they do not start."""
    reasons = []
    for name in names:
        path = on_path(name)
        if path is None:
            reasons.append(f"{name} is not on PATH")
            continue
        try:
            call([path, "--version"], timeout=10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
            reasons.append(f"{name} does not start: {error}")
    return reasons


def call(argv: Sequence[str | Path], timeout: float = 60) -> str:
    """Run a program to its end and give its output.

    Raises:
        RuntimeError: It failed; the text has what it said.
    """
    done = subprocess.run(
        [str(one) for one in argv], capture_output=True, text=True, timeout=timeout, check=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise RuntimeError(f"{Path(argv[0]).name} {argv[1] if len(argv) > 1 else ''}: {said}")
    return done.stdout
