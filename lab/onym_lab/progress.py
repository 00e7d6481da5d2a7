"""How a run goes on, on the terminal: a bar that changes, or plain lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from onym_lab import life
from onym_lab.results import Replicate, Run


@contextmanager
def shown(name: str, plain: bool) -> Iterator[life.Listener]:
    """Make the listener for this terminal, and leave the terminal as it was."""
    if plain or not sys.stderr.isatty():
        yield Plain(name)
        return
    bar = Bar(name)
    try:
        yield bar
    finally:
        bar.bar.stop()


def clock(seconds: float) -> str:
    """Write a time as 1:02:03 or 2:03."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


class Counting(life.Listener):
    """Counts replicates and estimates what is left."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.todo = self.total = self.over = 0
        self.label = self.doing = ""
        self.begun = time.monotonic()
        self.share = 0.0

    def planned(self, run: Run, todo: int, total: int) -> None:
        """Note how much there is."""
        self.todo, self.total, self.over = todo, total, 0
        self.begun = time.monotonic()

    def began(self, replicate: Replicate, label: str, attempt: int) -> None:
        """Note what is under way."""
        again = f" (attempt {attempt})" if attempt > 1 else ""
        self.label, self.share = f"{label} r{replicate.replication}{again}", 0.0

    @property
    def left(self) -> str:
        """What time is left, by what the replicates took so far."""
        if not self.over:
            return "?"
        each = (time.monotonic() - self.begun) / (self.over + self.share)
        return clock(each * max(0.0, self.todo - self.over - self.share))


class Plain(Counting):
    """One line for each step."""

    def say(self, text: str) -> None:
        """Write a line."""
        print(f"{self.name}: {text}", file=sys.stderr, flush=True)

    def planned(self, run: Run, todo: int, total: int) -> None:
        """Say how much there is."""
        super().planned(run, todo, total)
        self.say(f"{todo} of {total} replicates to do")

    def ended(self, replicate: Replicate, why: str | None) -> None:
        """Say that one is over."""
        self.over += why is None
        state = f"failed: {why}" if why else "done"
        self.say(f"{self.label}: {state} ({self.over}/{self.todo}, {self.left} left)")

    def said(self, text: str) -> None:
        """Say it."""
        self.say(text)


class Bar(Counting):
    """A bar that changes, with what is said above it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.console = Console(stderr=True, highlight=False)
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(24),
            TextColumn("{task.fields[state]}", markup=False),
            console=self.console,
            transient=True,
        )
        self.task = self.bar.add_task(name, total=None, state="")

    def planned(self, run: Run, todo: int, total: int) -> None:
        """Show the empty bar."""
        super().planned(run, todo, total)
        self.bar.start()
        self.draw()

    def draw(self) -> None:
        """Show how far it is."""
        state = f"{self.over}/{self.todo} {self.label}: {self.doing}, {self.left} left"
        self.bar.update(
            self.task, total=max(1, self.todo), completed=self.over + self.share, state=state
        )

    def phase(self, replicate: Replicate, phase: str) -> None:
        """Show the phase."""
        self.doing = phase
        self.draw()

    def progress(self, share: float) -> None:
        """Show how far the measuring phase is."""
        self.share = min(1.0, share)
        self.draw()

    def ended(self, replicate: Replicate, why: str | None) -> None:
        """Show that one is over."""
        self.over += why is None
        self.share = 0.0
        if why:
            self.said(f"{self.label}: failed: {why}")
        self.draw()
        if self.over >= self.todo:
            self.bar.stop()

    def said(self, text: str) -> None:
        """Write a line above the bar."""
        self.console.print(f"{self.name}: {text}", markup=False)
