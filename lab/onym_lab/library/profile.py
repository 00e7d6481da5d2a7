"""Where the router's instructions go: the paper's Table 7 beside ours, counted by callgrind.

Counted from the moment the node is ready until its end, so that its start is not in it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onym_lab.library import NeedsError, Row, call, pick, program, row
from onym_lab.library.router import daemon

PATIENCE_S = 180.0
"""A node whose instructions are counted is some fifty times slower."""

_LINE = re.compile(r"^\s*[\d,]+ \(\s*([\d.]+)%\)\s+(?:([^:]*):)?(.+?)(?: \[[^\]]*\])?$")

PARTS = {
    "wire": "decoding and encoding",
    "tables": "tables",
    "forward": "forwarding",
    "node": "shards and faces",
    "face": "shards and faces",
    "sys": "shards and faces",
}
"""What the crates do."""
_CRATE = re.compile(r"crates/(\w+)/|onym_(\w+)::")


def needs(_: Mapping[str, Any]) -> None:
    """Say what is missing.

    Raises:
        NeedsError: valgrind, or a program that is not built.
    """
    program("onym")
    program("onym-bench")
    if not shutil.which("callgrind_annotate"):
        raise NeedsError("missing Debian package: valgrind")


def short(name: str) -> str:
    """A function's name without the hash, the generics and the path before its module."""
    name = re.sub(r"::h[0-9a-f]{16}$", "", name.strip())
    while (bare := re.sub(r"<[^<>]*>", "", name)) != name:
        name = bare
    return "::".join(part for part in name.split("::")[-2:] if part).replace("'2", "")


def lines(text: str) -> list[tuple[str, str, float]]:
    """Each line of the profile: source file, function, percent. Inlined code has its own file."""
    found = (_LINE.match(line) for line in text.splitlines() if "PROGRAM TOTALS" not in line)
    return [(one[2] or "", one[3], float(one[1])) for one in found if one]


def parse(text: str, most: int) -> list[tuple[str, float]]:
    """The functions with the largest share of their own, in percent."""
    found: dict[str, float] = {}
    for _, function, share in lines(text):
        name = short(function)
        found[name] = found.get(name, 0.0) + share
    return sorted(found.items(), key=lambda one: -one[1])[:most]


def parts(text: str) -> dict[str, float]:
    """The share of each part of the program, in percent.

    By the crate that the source belongs to; for inlined code of the standard library by the crate
    of the function that it is in.
    """
    found = dict.fromkeys([*PARTS.values(), "libraries"], 0.0)
    for file, function, share in lines(text):
        crate = _CRATE.search(file) or _CRATE.search(function)
        name = PARTS.get((crate[1] or crate[2]) if crate else "", "libraries")
        found[name] += share
    return found


def router(given: Mapping[str, Any], _seed: int, folder: Path) -> list[Row]:
    """Carry some thousand packets and tell the ten functions that took most."""
    options = pick(given, segments=3000, components=16, payload=1024, diversity=8, cs=10_000)
    out = folder / "callgrind.out"
    under = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
    settings = {"cs.packets_max": str(options["cs"])}
    with daemon(folder, settings, under, PATIENCE_S) as (pid, port, _):
        call(["callgrind_control", "--instr=on", str(pid)])
        argv: list[str | Path] = [program("onym-bench"), "distribute"]
        argv += ["--tcp", f"127.0.0.1:{port}", "--watch", str(pid), "--seconds", "300"]
        for key in ("segments", "components", "payload", "diversity"):
            argv += [f"--{key}", str(options[key])]
        received = int(json.loads(call(argv))["received"])
    text = call(["callgrind_annotate", "--threshold=99.9", "--show-percs=yes", "--auto=no", out])
    (folder / "callgrind.txt").write_text(text)
    out.unlink()
    top = parse(text, 10)
    rows = [row(name, "instructions_share", "percent", share) for name, share in top]
    rows += [
        row(part, "instructions_share_of_part", "percent", share)
        for part, share in parts(text).items()
    ]
    rest = 100 - sum(share for _, share in top)
    rows.append(row("the rest", "instructions_share", "percent", rest))
    rows.append(row("router", "data_out", "packets", received))
    return rows
