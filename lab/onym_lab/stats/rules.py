"""The paper's numbers and acceptance rules beside what was measured.

Rules are judged on the valid replicates of a cell by their 95 % intervals
(:mod:`onym_lab.stats.kinds`). A rule that several cells must keep is as good
as its worst cell, and names it. The kinds of rules are listed in the
laboratory's README.
"""

from __future__ import annotations

import pandas as pd

from onym_lab.stats.intervals import mean_interval
from onym_lab.stats.kinds import (
    KINDS,
    WORST,
    Entry,
    Finding,
    MissingError,
    Verdict,
    kinds,
    pick,
    settle,
    some,
)

__all__ = ["COLUMNS", "RUNS", "Entry", "Finding", "judge", "kinds", "pick", "verdict"]

COLUMNS = ("id", "says", "paper", "ours", "low", "high", "verdict", "why")
"""Columns of what :func:`judge` gives back."""

RUNS = {
    "fails": "not reproduced",
    "not measured": "not measured",
    "not settled": "not settled",
    "differs, and worse": "differs, and worse",
    "differs, and better": "differs, and better",
    "holds": "reproduced",
}
"""What the worst rule of a run makes of the run."""


def judge(paper: Entry, aggregate: pd.DataFrame) -> pd.DataFrame:
    """One row for each entry of the paper's ``values`` and ``rules``.

    An unknown kind of rule is a mistake of the file and raises ``ValueError``.
    """
    good = aggregate[aggregate["valid"].astype(bool) & aggregate["value"].notna()]
    rows = [_row(entry, _value(entry, good)) for entry in paper.get("values", [])]
    rows += [_row(entry, _rule(entry, good)) for entry in paper.get("rules", [])]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def verdict(judged: pd.DataFrame) -> str:
    """The run's verdict: a word of :data:`RUNS` for its worst rule, or ``no rules``.

    Values of the paper that no rule gates do not count.
    """
    gates = {str(word) for word in judged["verdict"] if word != ""}
    if not gates:
        return "no rules"
    return RUNS[next(word for word in WORST if word in gates)]


def _row(entry: Entry, found: Finding) -> dict[str, object]:
    says = entry.get("says") or _words(entry)
    paper = entry["value"] if "value" in entry else _demand(entry)
    gated = "value" not in entry or "within" in entry or found.verdict == "not measured"
    return {
        "id": entry["id"],
        "says": says,
        "paper": paper,
        "ours": found.ours,
        "low": found.low,
        "high": found.high,
        "verdict": found.verdict if gated else "",
        "why": found.why,
    }


def _words(entry: Entry) -> str:
    """A rule in words when the file gives none."""
    where = f" at {entry['where']}" if entry.get("where") else ""
    source = f" ({entry['source']})" if entry.get("source") else ""
    return f"{entry.get('metric', '')}{where}{source}".strip()


def _demand(entry: Entry) -> str:
    """What a rule asks for, as short as a table cell."""
    low, high = entry.get("at_least"), entry.get("at_most")
    between = " and ".join(
        f"{sign} {limit:g}" for sign, limit in (("≥", low), ("≤", high)) if limit is not None
    )
    match entry["kind"]:
        case "monotone":
            direction = entry.get("direction", "rising")
            sign = "≤ -" if direction == "falling" else "≥ "
            return f"{direction}, rho {sign}{entry.get('rho', 0.9):g}"
        case "spread":
            return f"spread {between}"
        case "order":
            return " < ".join(" ".join(map(str, cell.values())) for cell in entry["cells"])
        case "knee":
            rise, cpu = entry.get("rise", 2), entry.get("cpu", 95)
            return f"rises {rise:g} times, then flat at CPU ≥ {cpu:g} %"
        case _:
            return between


def _value(entry: Entry, good: pd.DataFrame) -> Finding:
    try:
        interval = mean_interval(some(good, entry)["value"])
    except MissingError as missing:
        return Finding("not measured", str(missing))
    ours, within = interval.centre, entry.get("within")
    off = abs(ours / entry["value"] - 1) if entry["value"] else abs(ours)
    why = f"{entry.get('unit', '')} {entry.get('source', '')}".strip()
    if within is None:
        return Finding("holds", why, ours, interval.low, interval.high)
    reach = abs(entry["value"]) * float(within)
    kept = settle(
        interval, entry["value"] - reach, entry["value"] + reach, bool(entry.get("exact"))
    )
    why = f"{off:.0%} off, {within:.0%} allowed; {why}"
    return Finding(kept, why, ours, interval.low, interval.high)


def _rule(entry: Entry, good: pd.DataFrame) -> Finding:
    if entry["kind"] not in KINDS:
        raise ValueError(
            f"rule {entry['id']}: no kind {entry['kind']!r}; there are {', '.join(kinds())}"
        )
    try:
        found = KINDS[entry["kind"]](entry, good)
    except MissingError as missing:
        return Finding("not measured", str(missing))
    if entry.get("differs") and found.verdict == "fails":
        # The rule states the paper's finding; ours is the opposite, and the file says what that is.
        word: Verdict = (
            "differs, and better" if entry["differs"] == "better" else "differs, and worse"
        )
        return Finding(word, found.why, found.ours, found.low, found.high)
    return found
