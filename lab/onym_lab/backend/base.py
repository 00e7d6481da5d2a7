"""What every backend does for one replicate."""

from __future__ import annotations

import abc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onym_lab.spec import Spec

Progress = Callable[[float], None]


class BackendError(Exception):
    """The testbed failed; the replicate can be tried again."""


class Refused(Exception):  # noqa: N818
    """The experiment asks for what the backend cannot do; each reason names it."""

    def __init__(self, backend: str, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.backend, self.reasons = backend, reasons


class Backend(abc.ABC):
    """One replicate on one testbed.

    The phases are called once each in their order; `close` is called whatever happens and gives
    back everything that was taken. Files go to `folder`: `raw/` is what was measured.
    """

    name = ""

    def __init__(self, spec: Spec, folder: Path) -> None:
        self.spec, self.folder = spec, folder
        self.raw = folder / "raw"
        #: Command lines and the like, for the provenance.
        self.facts: dict[str, Any] = {}

    @abc.abstractmethod
    def refusals(self) -> list[str]:
        """Name everything in the experiment that this backend cannot do."""

    @abc.abstractmethod
    def provision(self) -> None:
        """Make nodes, links and routes; returns when they are ready."""

    @abc.abstractmethod
    def warm_up(self) -> None:
        """Let the network settle as long as the experiment says."""

    @abc.abstractmethod
    def measure(self, progress: Progress) -> None:
        """Run the applications; `progress` is told a share from 0 to 1."""

    @abc.abstractmethod
    def collect(self) -> None:
        """Put everything that was measured into `raw/` in the common formats."""

    def close(self) -> None:  # noqa: B027
        """Give back what was taken: processes, namespaces, groups."""
