"""The HTML page: everything in one file, nothing fetched, light or dark as the reader's machine."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from onym_lab import stats
from onym_lab.report.data import Measured
from onym_lab.report.pictures import analyses

ROWS_MOST = 1500
"""Most rows of the table of results."""

VERDICTS = {
    "holds": "good",
    "fails": "bad",
    "not measured": "open",
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
    parts = [
        _head(measured, verdict),
        _section("Paper and ours", _judged(judged), "paper") if len(judged) else "",
        _section(
            "What decides", "".join(_factorial(*one) for one in analyses(measured)), "factors"
        ),
        _section("Pictures", "".join(map(_figure, pictures)), "pictures"),
        _section("Results", _results(table), "results"),
        _section("Checks", _checks(measured), "checks"),
        _section("Provenance", _provenance(measured), "provenance"),
    ]
    return _PAGE.replace("@TITLE@", escape(measured.title)).replace("@BODY@", "\n".join(parts))


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


def _section(title: str, body: str, anchor: str) -> str:
    return f'<section id="{anchor}"><h2>{title}</h2>\n{body}</section>' if body else ""


def _head(measured: Measured, verdict: str) -> str:
    paper = measured.experiment.get("paper") or {}
    source = " ".join(str(paper[k]) for k in ("id",) if paper.get(k))
    if paper.get("figure"):
        source += f", figure {paper['figure']}"
    if paper.get("table"):
        source += f", table {paper['table']}"
    words = [
        f'<h1>{escape(measured.title)}</h1><p class="lead">'
        f"{escape(str(measured.experiment.get('description') or ''))}</p>"
    ]
    if paper.get("says"):
        claim = "What is claimed" if paper.get("id") == "beyond" else "The paper says"
        if paper.get("id") != "beyond":
            claim += f"</b> ({escape(source)})<b>"
        words.append(f"<p><b>{claim}</b>: {escape(str(paper['says']))}</p>")
    if measured.scale != 1:
        words.append(
            f'<p class="warn">Scaled: counts are {measured.scale:g} of those that the '
            "file asks for. Shapes may hold, sizes do not.</p>"
        )
    notes = (measured.experiment.get("report") or {}).get("notes") or []
    words += [f"<p>{escape(str(note))}</p>" for note in notes]
    bad = measured.checks[~measured.checks["passed"].astype(bool)]
    if len(bad):
        words.append(
            f'<p class="warn">✗ {len(bad)} checks failed; results of those replicates '
            "are marked ✗ and left out of means where there are others.</p>"
        )
    words.append(
        f"<p>Verdict: {_badge(verdict)} · backend "
        f"<b>{escape(str(measured.plan.get('backend', '?')))}</b> · "
        f"{len(measured.labels)} cells, {len(measured.plan.get('order', []))} runs · "
        f"{escape(origin(measured))}</p>"
    )
    return "\n".join(words)


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


def _badge(verdict: str) -> str:
    return f'<span class="badge {VERDICTS.get(verdict, "none")}">{escape(verdict or "–")}</span>'


def _judged(judged: pd.DataFrame) -> str:
    head = "".join(
        f"<th>{word}</th>" for word in ("what", "paper", "ours", "95 % interval", "verdict", "why")
    )
    rows = []
    for row in judged.to_dict("records"):
        interval = "" if np.isnan(row["low"]) else f"{number(row['low'])} … {number(row['high'])}"
        rows.append(
            f"<tr><td>{escape(str(row['says']))}</td><td class=n>{escape(number(row['paper']))}"
            f"</td><td class=n>{number(row['ours'])}</td><td class=n>{interval}</td>"
            f"<td>{_badge(str(row['verdict']))}</td><td>{escape(str(row['why']))}</td></tr>"
        )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _factorial(metric: str, where: str, unit: str, analysis: stats.Analysis) -> str:
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
        numbers = "".join(f"<td class=n>{cell}</td>" for cell in cells)
        rows.append(f"<tr><td>{escape(term)}</td>{numbers}<td>{known}</td></tr>")
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
    heads = ("effect", "share, %", "share in the log model, %", f"q, {unit}", "95 %", "significant")
    head = "".join(f"<th>{escape(word)}</th>" for word in heads)
    return (
        f"<h3>{escape(metric.replace('_', ' '))} of {escape(where)}</h3>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        f"<p>Experimental error: {analysis.error_share:.2f} % of the variation. "
        f"{escape('; '.join(words))}.</p>"
    )


def _results(table: pd.DataFrame) -> str:
    if table.empty:
        return "<p>Nothing was measured.</p>"
    shown = table.sort_values("scope", key=lambda scopes: scopes == "node", kind="stable")
    rest = len(shown) - ROWS_MOST
    shown = shown.head(ROWS_MOST)
    note = f"<p>{rest} more rows, of nodes, are in aggregate.csv.</p>" if rest > 0 else ""
    rows = []
    for row in shown.to_dict("records"):
        mark = (
            f'<span class="warn" title="checks failed">✗ {row["marked"]}</span>'
            if row["marked"]
            else ""
        )
        reach = (float(row["high"]) - float(row["low"])) / 2
        rows.append(
            f"<tr><td>{escape(str(row['label']))}</td><td>{escape(str(row['where']))}</td>"
            f"<td>{escape(str(row['metric']))}</td><td class=n>{number(row['mean'])}</td>"
            f"<td class=n>{'' if np.isnan(reach) else '± ' + number(reach)}</td>"
            f"<td>{escape(str(row['unit']))}</td><td class=n>{row['count']}</td><td>{mark}</td>"
            "</tr>"
        )
    head = "".join(
        f"<th{' class=n' if word in ('mean', '95 %', 'n') else ''}>{word}</th>"
        for word in ("cell", "where", "metric", "mean", "95 %", "unit", "n", "checks")
    )
    return (
        '<input id="find" type="search" placeholder="search the results" '
        'aria-label="search the results">'
        f'<div class="scroll"><table id="all"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{note}"
    )


def _figure(picture: Picture) -> str:
    svg, png, csv = picture.files
    if svg.stat().st_size <= SVG_MOST:
        kind, data = "image/svg+xml", svg.read_bytes()
    else:
        kind, data = "image/png", png.read_bytes()
    numbers = csv.read_bytes()
    link = ""
    if len(numbers) <= SVG_MOST:
        link = (
            f' <a download="{escape(csv.name)}" href="data:text/csv;base64,'
            f'{base64.b64encode(numbers).decode()}">numbers (CSV)</a>'
        )
    return (
        f'<figure><img alt="{escape(picture.caption)}" src="data:{kind};base64,'
        f'{base64.b64encode(data).decode()}"><figcaption>{escape(picture.caption)}'
        f"{link}</figcaption></figure>\n"
    )


def _checks(measured: Measured) -> str:
    if measured.checks.empty:
        return "<p>No checks were recorded.</p>"
    words = []
    for name, part in measured.checks.groupby("check", sort=False):
        passed = int(part["passed"].sum())
        # Where the limit is a least value, the smallest is the worst; both ends are shown.
        words.append(
            f"<tr><td>{escape(str(name))}</td><td class=n>{passed} of {len(part)}</td>"
            f"<td class=n>{number(part['value'].min())} … {number(part['value'].max())}"
            f"</td><td class=n>{number(part['limit'].iloc[0])}</td>"
            f"<td>{_badge('holds' if passed == len(part) else 'fails')}</td></tr>"
        )
    head = "<th>check</th><th class=n>passed</th><th class=n>values</th><th class=n>limit</th><th>"
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(words)}</tbody></table>"
    bad = measured.checks[~measured.checks["passed"]]
    if bad.empty:
        return table
    places = ", ".join(
        f"{measured.labels.get(str(row.cell)) or 'the cell'} r{row.replication} ({row.check})"
        for row in bad.head(30).itertuples()
    )
    return f"{table}<p>Failed in: {escape(places)}</p>"


def _provenance(measured: Measured) -> str:
    rows = "".join(
        f"<tr><td>{escape(key)}</td><td><code>{escape(value)}</code></td></tr>"
        for key, value in _flat("", measured.provenance)
    )
    return (
        f"<details><summary>where these numbers come from</summary><table>{rows}</table></details>"
    )


def _flat(prefix: str, value: object) -> Iterable[tuple[str, str]]:
    """Nested provenance as dotted keys."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{prefix}.{key}" if prefix else str(key), inner)
    elif isinstance(value, list):
        yield prefix, ", ".join(map(str, value))[:600]
    else:
        yield prefix, str(value)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>@TITLE@</title><style>
:root { color-scheme: light dark; --ink: #1d1d1f; --paper: #fff; --line: #dcdcdc; --soft: #f4f4f5;
  --good: #00624a; --bad: #a83c00; --open: #6a6a6a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #17181a; --line: #3a3b3e;
  --soft: #222326; --good: #4fd0a5; --bad: #ff9b5c; --open: #a8a8a8; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1080px; margin: 2em auto; padding: 0 1.2em; }
h1 { font-size: 1.6em; margin: 0 0 .3em } h2 { font-size: 1.15em; margin: 2em 0 .6em;
  border-bottom: 1px solid var(--line) }
table { border-collapse: collapse; font-size: .88em; width: 100% }
th, td { text-align: left; padding: .28em .6em; border-bottom: 1px solid var(--line);
  vertical-align: top } th { background: var(--soft); position: sticky; top: 0 }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.scroll { max-height: 28em; overflow: auto; border: 1px solid var(--line) }
.badge { font-weight: 600; white-space: nowrap } .good { color: var(--good) }
.bad, .warn { color: var(--bad) } .open, .none { color: var(--open) }
.good::before { content: "✓ " } .bad::before { content: "✗ " }
figure { margin: 1.2em 0 } figure img { max-width: 100%; background: #fff; border-radius: 4px }
figcaption { font-size: .88em; color: var(--open) } a { color: inherit }
input { font: inherit; margin: 0 0 .6em; padding: .3em .6em; width: 22em; max-width: 100% }
code { font-size: .92em; word-break: break-all }
@media print { .scroll { max-height: none } input { display: none } }
</style></head><body>
@BODY@
<script>
const find = document.getElementById("find");
if (find) find.oninput = () => {
  const words = find.value.toLowerCase().split(/\\s+/);
  for (const row of document.querySelectorAll("#all tbody tr")) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every(word => text.includes(word));
  }
};
</script></body></html>
"""
