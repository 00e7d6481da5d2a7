"""A program that a backend started, and waiting with a deadline."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from onym_lab.backend.base import BackendError

READY_S = 30.0
"""How long nodes, faces, routes and applications may take to be ready."""
END_S = 20.0
"""How long a program may take to end when it was asked to."""


def wait_for(what: str, condition: Callable[[], bool], patience: float = READY_S) -> None:
    """Wait until a condition holds.

    Raises:
        BackendError: It did not in time.
    """
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise BackendError(f"{what}: not within {patience:g} s")
        time.sleep(0.02)


class Program:
    """A process of ours and its files."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path, log: Path) -> None:
        self.process, self.out, self.log = process, out, log

    def says(self, word: str) -> bool:
        """Tell whether it said a word on standard error; an early end is an error."""
        said = self.log.read_text(errors="replace")
        if word in said:
            return True
        if self.process.poll() is not None:
            raise BackendError(f"{self.log.stem} ended: {said.strip()[-500:]}")
        return False

    def end(self, patience: float = END_S) -> None:
        """Ask it to end, and make it when it does not."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
