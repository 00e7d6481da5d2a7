"""The HTML page: everything in one file, nothing fetched, light or dark as the reader's machine."""

from __future__ import annotations

import base64
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from onym_lab import stats
from onym_lab.report.data import Measured
from onym_lab.report.pictures import analyses

Fields = dict[str, Any]
"""What the template is given."""

ROWS_MOST = 1500
"""Most rows of the table of results."""

VERDICTS = {
    "holds": "good",
    "fails": "bad",
    "not measured": "open",
    "not settled": "open",
    "differs, and better": "good",
    "differs, and worse": "bad",
    "reproduced": "good",
    "not reproduced": "bad",
    "": "none",
}
"""How a verdict looks; its words are always there, colour is never all."""

SVG_MOST = 400_000
"""A vector picture with more octets goes in as pixels."""


@dataclass(frozen=True)
class Picture:
    """A picture as it was written."""

    name: str
    caption: str
    files: Sequence[Path]


def render(
    measured: Measured,
    judged: pd.DataFrame,
    verdict: str,
    table: pd.DataFrame,
    pictures: Sequence[Picture],
) -> str:
    """The whole page."""
    # Everything is escaped: names and texts come from files of others.
    environment = Environment(
        loader=PackageLoader("onym_lab", "report"), autoescape=True, undefined=StrictUndefined
    )
    page = environment.get_template("page.html.j2")
    return page.render(
        looks=VERDICTS,
        verdict=verdict,
        judged=[_judged(row) for row in judged.to_dict("records")],
        factorial=[_factorial(*one) for one in analyses(measured)],
        figures=[_figure(picture) for picture in pictures],
        provenance=list(_flat("", measured.provenance)),
        **_head(measured),
        **_results(table),
        **_checks(measured),
    )


def number(value: object) -> str:
    """A number as short as it can be said; a dash where there is none."""
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return "–"
    if isinstance(value, int | float | np.number):
        plain = float(value)
        if plain and (abs(plain) >= 1e7 or abs(plain) < 1e-3):
            return f"{plain:.4g}"
        return f"{plain:,.4g}" if abs(plain) < 1e4 else f"{plain:,.0f}"
    return str(value)


def _head(measured: Measured) -> Fields:
    paper = measured.experiment.get("paper") or {}
    source = str(paper.get("id") or "")
    for part in ("figure", "table"):
        if paper.get(part):
            source += f", {part} {paper[part]}"
    return {
        "title": measured.title,
        "description": measured.experiment.get("description") or "",
        "paper": {"id": paper.get("id"), "says": paper.get("says")},
        "source": source,
        "scale": measured.scale,
        "notes": (measured.experiment.get("report") or {}).get("notes") or [],
        "failed": int((~measured.checks["passed"].astype(bool)).sum()),
        "backend": measured.plan.get("backend", "?"),
        "cells": len(measured.labels),
        "runs": len(measured.plan.get("order", [])),
        "origin": origin(measured),
    }


def origin(measured: Measured) -> str:
    """Commit, date and machine in a line."""
    seen = measured.provenance
    commit = str(seen.get("commit") or "")[:12]
    dirty = " with changes" if seen.get("dirty") else ""
    words = [
        f"commit {commit}{dirty}" if commit else "",
        str(seen.get("began") or ""),
        machine(seen.get("machine")),
    ]
    return " · ".join(word for word in words if word)


def machine(seen: object) -> str:
    """The kind of machine in a few words."""
    if not isinstance(seen, dict):
        return str(seen or "")
    processor = seen.get("processor") or {}
    words = [
        f"{processor.get('cores')} cores",
        processor.get("model"),
        seen.get("architecture"),
        f"{seen.get('system', '')} {seen.get('kernel', '')}".strip(),
    ]
    return ", ".join(str(word) for word in words if word)


def _judged(row: Mapping[Hashable, Any]) -> Fields:
    interval = "" if np.isnan(row["low"]) else f"{number(row['low'])} … {number(row['high'])}"
    return {
        "says": row["says"],
        "paper": number(row["paper"]),
        "ours": number(row["ours"]),
        "interval": interval,
        "verdict": str(row["verdict"]),
        "why": row["why"],
    }


def _factorial(metric: str, where: str, unit: str, analysis: stats.Analysis) -> Fields:
    """Allocation of variation, additive and log, with what the residuals say."""
    positive = bool((analysis.responses > 0).all())
    table = analysis.effects.sort_values("share", ascending=False, kind="stable").head(10)
    log = stats.analyse(analysis.factors, analysis.responses, "log") if positive else None
    rows = []
    for row in table.to_dict("records"):
        term, reach = str(row["term"]), (float(row["high"]) - float(row["low"])) / 2
        cells = [
            f"{float(row['share']):.2f}",
            f"{log.share(term):.2f}" if log else "–",
            number(row["q"]),
            "–" if np.isnan(reach) else f"± {number(reach)}",
        ]
        known = {True: "yes", False: "no", None: "unreplicated"}[row["significant"]]
        rows.append({"term": term, "cells": cells, "significant": known})
    words = [
        f"{check.name}: {'ok' if check.ok else 'fails'} ({check.note}"
        f"{'' if np.isnan(check.p) else f', p = {check.p:.3g}'})"
        for check in stats.check(analysis)
    ]
    if positive:
        power = stats.box_cox(analysis.factors, analysis.responses)
        words.append(
            f"Box-Cox power {power.best:.2f} ({power.low:.2f} … {power.high:.2f}), "
            f"suggested transform: {power.suggested}"
        )
    return {
        "metric": metric.replace("_", " "),
        "where": where,
        "unit": unit,
        "rows": rows,
        "error": f"{analysis.error_share:.2f}",
        "remarks": "; ".join(words),
    }


def _results(table: pd.DataFrame) -> Fields:
    if table.empty:
        return {"results": [], "left_out": 0}
    shown = table.sort_values("scope", key=lambda scopes: scopes == "node", kind="stable")
    rows = []
    for row in shown.head(ROWS_MOST).to_dict("records"):
        reach = (float(row["high"]) - float(row["low"])) / 2
        row["mean"] = number(row["mean"])
        row["reach"] = "" if np.isnan(reach) else f"± {number(reach)}"
        rows.append(row)
    return {"results": rows, "left_out": len(shown) - ROWS_MOST}


def _figure(picture: Picture) -> Fields:
    svg, png, csv = picture.files
    if svg.stat().st_size <= SVG_MOST:
        kind, data = "image/svg+xml", svg.read_bytes()
    else:
        kind, data = "image/png", png.read_bytes()
    numbers = csv.read_bytes()
    return {
        "caption": picture.caption,
        "kind": kind,
        "data": base64.b64encode(data).decode(),
        "file": csv.name,
        "numbers": base64.b64encode(numbers).decode() if len(numbers) <= SVG_MOST else "",
    }


def _checks(measured: Measured) -> Fields:
    rows = []
    for name, part in measured.checks.groupby("check", sort=False):
        # Where the limit is a least value, the smallest is the worst; both ends are shown.
        rows.append(
            {
                "name": name,
                "passed": int(part["passed"].sum()),
                "all": len(part),
                "low": number(part["value"].min()),
                "high": number(part["value"].max()),
                "limit": number(part["limit"].iloc[0]),
            }
        )
    bad = measured.checks[~measured.checks["passed"].astype(bool)]
    places = ", ".join(
        f"{measured.labels.get(str(row.cell)) or 'the cell'} r{row.replication} ({row.check})"
        for row in bad.head(30).itertuples()
    )
    return {"checks": rows, "failed_in": places}


def _flat(prefix: str, value: object) -> Iterable[tuple[str, str]]:
    """Nested provenance as dotted keys."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{prefix}.{key}" if prefix else str(key), inner)
    elif isinstance(value, list):
        yield prefix, ", ".join(map(str, value))[:600]
    else:
        yield prefix, str(value)
