"""Index structures of a content store and of a FIB, side by side (the paper's section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onym_lab.library import Row, bench_rows, call, pick, program, row


def needs(_: Mapping[str, Any]) -> None:
    """Say what is missing.

    Raises:
        NeedsError: A program that is not built.
    """
    program("onym-bench")


def compare(given: Mapping[str, Any], _seed: int, folder: Path) -> list[Row]:
    """One size of table and one length of names, every structure in turns."""
    options = pick(
        given, table="cs", entries=10_000, components=4, lookups=20_000, rounds=3, payload=1024
    )
    sizes = {"cs": "entries", "fib": "routes"}
    out = folder / "bench.json"
    argv: list[str | Path] = [
        program("onym-bench"),
        "index",
        "--json",
        out,
        "--components",
        str(options["components"]),
        "--lookups",
        str(options["lookups"]),
        "--rounds",
        str(options["rounds"]),
        "--payload",
        str(options["payload"]),
    ]
    for table, flag in sizes.items():
        size = options["entries"] if table == options["table"] else 1
        argv += [f"--{flag}", str(size)]
    call(argv)
    found = []
    for one in bench_rows(out):
        keys = one["keys"]
        if keys["table"] == options["table"]:
            metric = one["metric"] + (f"_{keys['asked']}" if "asked" in keys else "")
            found.append(row(keys["index"], metric, one["unit"], one["value"]))
    return found
