"""The sampler beside forwarders that answer late, or never."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onym_lab.collect import sampler
from onym_lab.collect.client import UnansweredError
from onym_lab.collect.meter import Meter
from onym_lab.collect.samples import Sample

EVERY = 0.01


class Late(Meter):
    """Answers nobody until it is let to, and notes how many wait at once."""

    def __init__(self) -> None:
        super().__init__(None)
        self.go, self.lock = threading.Event(), threading.Lock()
        self.now = self.most = 0

    def read(self, timeout: float) -> dict[str, Any]:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        came = self.go.wait(timeout)
        with self.lock:
            self.now -= 1
        if not came:
            raise UnansweredError("late")
        return {"pending": 7, "names": 9}


def sampled(meter: Meter, until: Callable[[list[Sample]], bool]) -> list[Sample]:
    """Sample this process until the rows are as wanted, and stop."""
    watched = sampler.Watched(Path("none"), (os.getpid(),), 0.5, meter)
    one = sampler.Sampler(EVERY, {"n1": watched})
    one.start()
    end = time.monotonic() + 20
    while not until(one.rows):
        assert time.monotonic() < end, f"{len(one.rows)} rows are not what was waited for"
        time.sleep(EVERY)
    one.stop()
    return one.rows


def test_a_late_answer_fills_the_moment_that_asked_and_costs_the_next_ones_nothing() -> None:
    meter = Late()

    def until(rows: list[Sample]) -> bool:
        if len(rows) >= 30:
            meter.go.set()
        return any(row.valid for row in rows[30:])

    rows = sampled(meter, until)
    assert meter.most == sampler.IN_FLIGHT, "so many wait at once, and no more"
    first, full = rows[: sampler.IN_FLIGHT], rows[sampler.IN_FLIGHT : 30]
    assert all(row.valid and row.pending == row.noted == 7 and row.names == 9 for row in first)
    assert not any(row.valid for row in full), "who did not ask has no counters"
    assert all(row.memory > 0 and row.waited is None for row in full)
    waits = [row.waited or 0.0 for row in first]
    assert waits == sorted(waits, reverse=True), "who asked first has waited longest"
    assert min(waits) > EVERY, "longer than a period, and a sample all the same"
    assert all(b.mono >= a.mono for a, b in itertools.pairwise(rows))


def test_who_never_answers_has_rows_without_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "PATIENCE_S", 3 * EVERY)
    rows = sampled(Late(), lambda rows: len(rows) >= 20)
    assert not any(row.valid for row in rows)
    assert all(row.memory > 0 and row.load == pytest.approx(2 * row.cpu) for row in rows)
