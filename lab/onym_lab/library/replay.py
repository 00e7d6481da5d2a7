"""Two runs of the uNDN paper with a real manager and real traffic: ``scripts/replay.py``.

A function is scaled out and in (its Fig. 5); a cache is poisoned and defended (its Fig. 7). What
the manager saw and decided stays with the replicate, as the script wrote it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from onym_lab.library import ROOT, NeedsError, Row, call, pick, program, row

SCRIPT = ROOT / "scripts" / "replay.py"
ROUTERS = "routers="
PHASES = ("before", "attack", "verified", "clean", "end")
MOST_S = 400.0


def needs(given: Mapping[str, Any]) -> None:
    """Say what is missing.

    Raises:
        NeedsError: A program that is not built, or a right.
    """
    program("onym")
    program("onym-bench")
    if "rule" in given and os.geteuid() != 0:
        raise NeedsError("a function's quota needs root")


def _replay(folder: Path, *words: str) -> str:
    argv: list[str | Path] = [sys.executable, SCRIPT, *words]
    argv += ["--onym", program("onym"), "--bench", program("onym-bench"), "--out", folder]
    return call(argv, timeout=MOST_S)


def scaling(given: Mapping[str, Any], _seed: int, folder: Path) -> list[Row]:
    """Fig. 5: a backward router under all the load that goes, then under little.

    `rule`: `paper` (more than 80 % of the quota: another one) or `headroom` (and those behind it
    could take it). `window`: Interests in flight. `balance`: how clones share names.
    """
    options = pick(
        given, rule="headroom", router=0.13, others=0.20, period=5, window=32, balance="auto"
    )
    words = [w for key, value in options.items() for w in (f"--{key}", str(value))]
    said = _replay(folder, "fig5", *words)
    return rates(pd.read_csv(folder / f"fig5-{options['rule']}.csv"), said)


def rates(table: pd.DataFrame, said: str) -> list[Row]:
    """Measures of a run of Fig. 5: goodput at the edge and loads by how many routers there were."""
    busy = table[table["phase"].str.startswith(ROUTERS)]
    count = busy["phase"].str.removeprefix(ROUTERS).astype(int)
    rows = [
        row("network", "routers_most", "1", float(count.max())),
        row("network", "back_to_one", "share", float("back to one: True" in said)),
    ]
    for number, part in busy.groupby(count):
        edge = part.loc[part["function"] == "cs", "goodput_mbps"]
        rows.append(row(f"{number} routers", "goodput", "bit/s", 1e6 * float(edge.median())))
        for name in ("cs", "br", "nr"):
            load = 100 * part.loc[part["function"] == name, "load"].median()
            rows.append(row(f"{name} of {number}", "cpu_load_mean", "percent", float(load)))
    return rows


def poisoning(given: Mapping[str, Any], _seed: int, folder: Path) -> list[Row]:
    """Fig. 7: the hit ratio of a cache before, under and after an attack with fakes."""
    pick(given)
    _replay(folder, "fig7")
    return hits(pd.read_csv(folder / "fig7.csv"), pd.read_csv(folder / "fig7-events.csv"))


def hits(table: pd.DataFrame, events: pd.DataFrame) -> list[Row]:
    """Measures of a run of Fig. 7: hit ratio by phase, and what the manager did when."""
    edge = table[(table["function"] == "cs1") & table["hit_ratio"].notna()]
    rows = []
    for phase in PHASES:
        ratio = edge.loc[edge["phase"] == phase, "hit_ratio"]
        value = float(ratio.median()) if len(ratio) else None
        rows.append(row(phase, "hit_ratio", "ratio", value))
    # What the verifier's placing mends takes a while to be asked for again.
    after = edge[edge["phase"].isin(["verified", "clean", "end"])]
    rows.append(row("verified", "hit_ratio_last", "ratio", float(after["hit_ratio"].iloc[-1])))
    begun = table.loc[table["phase"] == "attack", "seconds"].min()
    alarms = events.loc[events["kind"] == "alarm", "seconds"]
    rows.append(row("manager", "alarms", "1", float(len(alarms))))
    if len(alarms):
        rows.append(row("manager", "alarm_after", "s", float(alarms.min() - begun)))
    clear = (events["kind"] == "all-clear").any()
    rows.append(row("manager", "all_clear", "share", float(clear)))
    return rows
