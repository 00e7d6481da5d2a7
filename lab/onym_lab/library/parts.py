"""Benchmarks of other parts of the project: rows of their ``bench.json`` beside the papers'.

A part that is not built, or has no such benchmark yet, skips its experiment by name.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from onym_lab.library import ROOT, NeedsError, Row, bench_rows, call, program, row


def _command(given: Mapping[str, Any]) -> list[str]:
    """The benchmark's command with its program found."""
    words = [
        str(program("onym")) if word == "{onym}" else word
        for word in shlex.split(str(given["run"]))
    ]
    found = ROOT / words[0]
    words[0] = str(found if "/" in words[0] else program(words[0]))
    return words


def needs(given: Mapping[str, Any]) -> None:
    """Say which part is missing.

    Raises:
        NeedsError: Its program or its benchmark is not here.
    """
    part = given.get("part", "the part")
    command = _command(given)
    if not os.access(command[0], os.X_OK):
        raise NeedsError(f"{part} is not built here: there is no {given['run'].split()[0]}")
    out = str(given.get("out", "--json"))
    if command[0].endswith(".sh"):
        if out not in Path(command[0]).read_text():
            raise NeedsError(f"{part}: its benchmark {given['run']} writes no rows ({out})")
    elif len(command) > 1:
        said = subprocess.run([command[0], "--help"], capture_output=True, text=True, check=False)
        if not re.search(rf"^\s+{re.escape(command[1])}\b", said.stdout, re.MULTILINE):
            raise NeedsError(f"{part} is not built here: its benchmark knows no {command[1]!r}")


def run(given: Mapping[str, Any], _seed: int, folder: Path) -> list[Row]:
    """Run the benchmark; every row of its ``bench`` becomes one of the aggregate.

    ``flags`` are options of the program and ``env`` variables of its environment, where factors and
    a scale put what they change. The place of a row is
    ``place`` with the row's subject and the keys of its case put in; without it the subject and
    the whole case (but for keys that ``without`` names), so that all cases stand beside each other.
    What each of several receivers got
    is told in bits a second too, where the case says how large a publication is.
    """
    option = str(given.get("out", "--json"))
    out = folder / ("bench.csv" if option == "--csv" else "bench.json")
    flags = [word for key, value in given.get("flags", {}).items() for word in (f"--{key}", value)]
    call(
        [*_command(given), *map(str, flags), option, str(out)],
        timeout=float(given.get("at_most", 1200)),
        environment={
            **os.environ,
            **{key: str(value) for key, value in given.get("env", {}).items()},
        },
    )
    wanted = given.get("bench")
    rows = [one for one in bench_rows(out) if wanted in (None, one["bench"])]
    if not rows:
        raise RuntimeError(f"no rows of {wanted}")
    found = []
    for one in rows:
        place = _place(str(given.get("place", "{subject} {case}")), one, given.get("without", ()))
        found.append(row(place, one["metric"], one["unit"], one["value"]))
        if one["metric"] == "messages_per_second" and "payload" in one["keys"]:
            goodput = 8 * float(one["keys"]["payload"]) * one["value"]
            found.append(row(place, "goodput", "bit/s", goodput))
    return found


def _place(text: str, one: Mapping[str, Any], without: Collection[str]) -> str:
    case = ",".join(f"{key}={word}" for key, word in one["keys"].items() if key not in without)
    keys = {**one["keys"], "subject": one["subject"], "case": case}
    try:
        return text.format(**keys).strip()
    except KeyError as unknown:
        raise RuntimeError(f"place {text!r}: the case {one['case']!r} has no {unknown}") from None
