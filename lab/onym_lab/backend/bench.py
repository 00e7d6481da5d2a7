"""Measurements that are no network of nodes: a function of the library, called once a replicate.

``bench: {call: "module:function", with: {...}}`` names a function of :mod:`onym_lab.library`.
It is given ``with`` (into which factors put their levels), the seed and a folder for its files, and
gives rows of the aggregate. What it needs and does not find it says by raising
:class:`onym_lab.library.NeedsError`: a part that is not built skips its experiment by name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onym_lab.backend.base import Backend, BackendError, Progress
from onym_lab.library import NeedsError
from onym_lab.results import write_json

Row = Mapping[str, Any]
Call = Callable[[Mapping[str, Any], int, Path], list[Row]]


class Bench(Backend):
    """One call of a function of the library."""

    name = "bench"

    def refusals(self) -> list[str]:
        """Name the part or program that is missing, as far as it can be told beforehand."""
        if not self.spec.bench:
            return ["bench needs a section bench: {call: module:function}"]
        try:
            module, _ = self._find()
            needs = getattr(module, "needs", None)
            if needs is not None:
                needs(self.spec.bench.get("with", {}))
        except NeedsError as missing:
            return [str(missing)]
        return []

    def _find(self) -> tuple[Any, Call]:
        name, _, function = str(self.spec.bench.get("call", "")).partition(":")
        try:
            module = importlib.import_module(f"onym_lab.library.{name}")
            call: Call = getattr(module, function)
        except (ImportError, AttributeError) as error:
            raise NeedsError(f"the library has no {name}:{function}") from error
        return module, call

    def provision(self) -> None:
        """Do nothing: the function makes what it needs and takes it away."""

    def warm_up(self) -> None:
        """Do nothing."""

    def measure(self, progress: Progress) -> None:
        """Call the function."""
        _, call = self._find()
        # Programs take absolute paths of sockets only.
        work = self.raw.absolute() / "files"
        work.mkdir()
        try:
            rows = call(self.spec.bench.get("with", {}), self.spec.seed, work)
        except (NeedsError, RuntimeError, OSError) as error:
            raise BackendError(f"{self.spec.bench['call']}: {error}") from error
        self.facts["bench"] = dict(self.spec.bench)
        write_json(
            self.raw / "measures.json", [{"scope": "system", "hop": None, **r} for r in rows]
        )
        progress(1.0)

    def collect(self) -> None:
        """Do nothing: the function gave the rows of the aggregate."""
