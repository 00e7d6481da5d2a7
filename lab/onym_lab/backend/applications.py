"""The command lines of applications on real nodes, and whether what they fetched is right."""

from __future__ import annotations

import filecmp
import os
import random
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onym_lab import subject, tools
from onym_lab.backend import scenario
from onym_lab.spec import App


def command(
    app: App, place: subject.Place, forwarder: subject.Subject, folder: Path
) -> tuple[list[str], dict[str, Any]]:
    """Give an application's command line, and how its process is started.

    What it is given and what it says of itself lie in `folder`.
    """
    node = f"unix://{place.socket}"
    options: dict[str, Any] = {}
    if app.kind in scenario.SIMULATED:
        argv = scenario.command(place.spec, app, node, folder)
        if app.kind != "producer":
            argv.append("--wait")
            options["stdin"] = subprocess.PIPE
    elif app.kind == "put":
        file = given(app, place)
        write_object(file, int(app.options["octets"]), place.spec.seed)
        argv = forwarder.command(app, place, file) or [
            str(tools.onym()), "put", app.prefix, str(file), "--node", node,
            "--segment-size", str(app.options.get("segment", 8000)),
        ]  # fmt: skip
    elif app.kind == "get":
        file = got(app, place)
        argv = forwarder.command(app, place, file) or [
            str(tools.onym()), "get", app.prefix, "-o", str(file), "--node", node, "--json",
        ]  # fmt: skip
    else:
        argv = list(app.options["run"])
        options["env"] = {**os.environ, "NDN_CLIENT_TRANSPORT": node}
    return argv, options


def given(app: App, place: subject.Place) -> Path:
    """Where the file lies that a `put` serves."""
    return place.folder / f"{app.id}.data"


def got(app: App, place: subject.Place) -> Path:
    """Where a `get` writes what it fetches."""
    return place.folder / f"{app.id}.got"


def is_same(app: App, places: Mapping[str, subject.Place]) -> bool:
    """Tell whether what a `get` wrote is what was put under its name; True of all others."""
    if app.kind != "get":
        return True
    place = places[app.node]
    put = [one for one in place.spec.apps if one.kind == "put" and one.prefix == app.prefix]
    file = got(app, place)
    original = [given(one, places[one.node]) for one in put]
    return not original or (file.is_file() and filecmp.cmp(original[0], file, shallow=False))


def write_object(path: Path, octets: int, seed: int) -> None:
    """Write a file of pseudo-random octets."""
    path.write_bytes(random.Random(seed).randbytes(octets))
