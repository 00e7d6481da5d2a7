"""The whole library in one go: one experiment after the other, whatever becomes of those before.

Called again it goes on where it was stopped: finished runs are found, begun ones are resumed. All
is measured by the same programs; a run that another one began is refused
(:mod:`onym_lab.provenance`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from onym_lab import design, life, provenance
from onym_lab import experiment as files
from onym_lab.backend.base import BackendError, Refused
from onym_lab.experiment import Experiment, ExperimentError
from onym_lab.results import Run
from onym_lab.tools import MissingToolError, OtherProgramError


@dataclass(frozen=True)
class Wanted:
    """What is to be run."""

    root: Path
    names: Sequence[str]
    scale: float = 1.0
    replications: int | None = None
    any_binary: bool = False

    def files(self) -> Iterator[Path]:
        """The experiments' files: those that are named, else all of the library."""
        yield from map(files.find, self.names) if self.names else files.library()

    def options(self, one: Experiment) -> life.Options:
        """How one of them is run; what has no scale is run whole."""
        return life.Options(
            root=self.root,
            backend=one.backends[0],
            scale=self.scale if one.data.get("scale") else 1.0,
            replications=self.replications,
            any_binary=self.any_binary,
        )


@dataclass(frozen=True)
class Ended:
    """What became of one experiment."""

    name: str
    word: str
    why: str = ""
    replicates: int = 0
    took: float = 0.0
    """Seconds that its replicates took, also before the campaign was stopped and resumed."""

    @property
    def failed(self) -> bool:
        """Whether someone must look; what this machine lacks, and failed checks, are told."""
        return self.word == "failed"


def plan(wanted: Wanted) -> Iterator[str]:
    """Lines that say what would run, and what would be refused."""
    most, count = 0.0, 0
    for path in wanted.files():
        one = files.load(path)
        options = wanted.options(one)
        one = files.scaled(one, options.scale)
        cells = design.cells(one)
        times = options.replications or design.replications(one)
        try:
            skipped = life.refusals(one, cells, options, 1)
        except Refused as refused:
            yield f"{one.name:24} refused: {'; '.join(refused.reasons)}"
            continue
        runs = (len(cells) - len(skipped)) * times
        done = sum(1 for _ in Run(wanted.root / one.name / options.run_name).replicates())
        line = f"{one.name:24} {options.backend:8} {runs:4} runs"
        if options.backend not in ("bench", "sim"):
            # A benchmark says nothing of its time, the simulator's is not the clock's.
            longest = max(one.spec(cell.settings, 1).at_most for cell in cells)
            most += (runs - done) * longest
            line += f", {longest:.0f} s each at most"
        line += f", {done} are done" if done else ""
        line += f", {len(skipped)} cells skipped" if skipped else ""
        count += runs - done
        yield line
    yield f"{count} runs to do; those of real nodes take {most / 3600:.1f} h at most"


def go(wanted: Wanted, run: Callable[[Experiment, life.Options], int]) -> list[Ended]:
    """Run all; `run` brings one to its end and gives an exit code, or raises."""
    ended = []
    for path in wanted.files():
        begun = time.monotonic()
        word, why, name = "done", "", path.stem
        options = None
        try:
            one = files.load(path)
            name, options = one.name, wanted.options(one)
            word = _one(one, options, run)
        except OtherProgramError as error:
            word, why = "failed", str(error)
        except (Refused, MissingToolError) as error:
            word, why = "refused", str(error)
        except (ExperimentError, BackendError, life.RunExistsError, ValueError, OSError) as error:
            word, why = "failed", str(error)
        folder = wanted.root / name / options.run_name if options else wanted.root / name
        replicates = list(Run(folder).replicates())
        took = sum(float(one.state.get("took", 0)) for one in replicates)
        ended.append(Ended(name, word, why, len(replicates), took))
        print(told_one(ended[-1], time.monotonic() - begun), file=sys.stderr)
    return ended


def _one(one: Experiment, options: life.Options, run: Callable[..., int]) -> str:
    """Bring one experiment to its end; one that is there already must be of the same programs."""
    there = Run(options.root / one.name / options.run_name)
    if there.state.get("phase") != "done":
        return "done" if run(one, options) == 0 else "done, checks failed"
    life.plan(one, options)
    if not options.any_binary:
        provenance.same_programs(there, one, options.backend)
    return "done" if there.checks["passed"].all() else "done, checks failed"


def told_one(one: Ended, now: float) -> str:
    """A line when an experiment ends."""
    return f"{one.name}: {one.word} after {now:.0f} s{f': {one.why}' if one.why else ''}"


def told(ended: Sequence[Ended]) -> Iterator[str]:
    """The closing lines: each experiment, and the time of all together."""
    for one in ended:
        minutes = f"{one.replicates:4} runs, {one.took / 60:7.1f} min"
        yield f"{one.name:24} {minutes}  {one.word}{f': {one.why}' if one.why else ''}"
    count = {word: sum(one.word == word for one in ended) for word in dict.fromkeys(
        one.word for one in ended)}  # fmt: skip
    words = ", ".join(f"{number} {word}" for word, number in count.items())
    total = sum(one.took for one in ended)
    yield f"{len(ended)} experiments ({words}), measured for {total / 3600:.2f} h in all"
