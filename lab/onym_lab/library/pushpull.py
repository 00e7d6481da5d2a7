"""Push against pull on one machine, in the same faces (Blackadder's Figs. 8 to 10).

The paper set its node beside CCNx 0.7; here both are halves of one node. Pull answers from the
producer's node or from caches, as the paper's did; nothing is signed.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from onym_lab.library import Row, bench_rows, call, pick, program, row
from onym_lab.library.router import daemon

PREFIX = "/onym"
"""What the load generator's names begin with."""

SEGMENT = 8000
"""Octets of content in a Data, at most."""


def needs(_: Mapping[str, Any]) -> None:
    """Say what is missing.

    Raises:
        NeedsError: A program that is not built.
    """
    program("onym")
    program("onym-bench")


def local(given: Mapping[str, Any], _seed: int, folder: Path) -> list[Row]:
    """Fig. 8: publications to one subscriber of a node, and content from that node's store.

    Pull sends what is larger than a Data in segments.
    """
    options = pick(given, payload=2048, seconds=1.0)
    payload = int(options["payload"])
    seconds = ["--seconds", str(options["seconds"])]
    out = folder / "bench.json"
    push = ["board", "--rounds", "1", "--subscribers", "1", "--reads", "sum", "--json", str(out)]
    call([program("onym-bench"), *push, "--payloads", str(payload), *seconds])
    found = {
        f"push {one['subject']}": 8 * payload * one["value"]
        for one in bench_rows(out)
        if one["metric"] == "messages_per_second"
    }
    with daemon(folder, {}) as (_, _, socket):
        loads = [_load(socket, socket, min(payload, SEGMENT), 31, "repeated", seconds)]
        found["pull"] = _goodput(loads, min(payload, SEGMENT))
    return [row(name, "goodput", "bit/s", value) for name, value in found.items()]


def chain(given: Mapping[str, Any], _seed: int, folder: Path) -> list[Row]:
    """Fig. 9: one publisher or producer, consumers at every node of a chain behind it.

    All consumers of pull ask for the same names one after the other, so that what one fetched
    comes to the others from the way.
    """
    options = pick(given, receivers=1, consumers=1, payload=1420, window=31, seconds=1.0)
    receivers, consumers = int(options["receivers"]), int(options["consumers"])
    seconds = ["--seconds", str(options["seconds"])]
    out = folder / "bench.json"
    push = ["push", "--everywhere", "--rounds", "1", "--subjects", "onym", "--json", str(out)]
    push += ["--nodes", str(receivers + 1), "--subscribers", str(consumers)]
    call([program("onym-bench"), *push, "--payloads", str(options["payload"]), *seconds])
    rates = [one["value"] for one in bench_rows(out) if one["metric"] == "messages_per_second"]
    with _chain(folder, receivers + 1) as nodes:
        loads = [
            _load(node, nodes[0], options["payload"], options["window"], "distinct", seconds)
            for node in nodes[1:]
            for _ in range(consumers)
        ]
        pull = _goodput(loads, int(options["payload"]))
    return [
        row("push", "goodput", "bit/s", 8 * int(options["payload"]) * rates[0]),
        row("pull", "goodput", "bit/s", pull),
    ]


def immutable(given: Mapping[str, Any], _seed: int, folder: Path) -> list[Row]:
    """Fig. 10: every publication has an item of its own, with a rendezvous and a path for each.

    As many subscriptions are under way as pull has Interests.
    """
    options = pick(given, window=31, payload=1420, times=300, items=20_000, seconds=1.0)
    payload, window = int(options["payload"]), int(options["window"])
    out = folder / "bench.json"
    push = ["rendezvous", "--strategies", "domain-local", "--json", str(out)]
    for flag in ("items", "times", "payload"):
        push += [f"--{flag}", str(options[flag])]
    call([program("onym-bench"), *push, "--subscribers", str(window)])
    rates = [one["value"] for one in bench_rows(out) if one["metric"] == "exchanges_per_second"]
    seconds = ["--seconds", str(options["seconds"])]
    with daemon(folder, {}) as (_, _, socket):
        pull = _goodput([_load(socket, socket, payload, window, "repeated", seconds)], payload)
    return [
        row("push", "goodput", "bit/s", 8 * payload * rates[0]),
        row("pull", "goodput", "bit/s", pull),
    ]


@contextmanager
def _chain(folder: Path, count: int) -> Iterator[list[Path]]:
    """Nodes one behind the other, joined by TCP, with a route to the first: their sockets."""
    onym = program("onym")
    with ExitStack() as stack:
        sockets: list[Path] = []
        before = 0
        for number in range(count):
            place = folder / f"n{number}"
            place.mkdir()
            _, port, socket = stack.enter_context(daemon(place, {}))
            if sockets:
                uri = f"tcp4://127.0.0.1:{before}"
                call([onym, "face", "create", uri, "--node", f"unix://{socket}"])
                call([onym, "route", "add", PREFIX, "--via", uri, "--node", f"unix://{socket}"])
            sockets.append(socket)
            before = port
        yield sockets


def _load(
    consumer: Path, producer: Path, payload: int, window: int, names: str, more: Sequence[str]
) -> subprocess.Popen[str]:
    argv: list[str | Path] = [program("onym-bench"), "load", "--names", names, *more]
    argv += ["--consumer", consumer, "--producer", producer]
    argv += ["--payload", str(payload), "--window", str(window)]
    return subprocess.Popen(
        [str(one) for one in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _goodput(loads: Sequence[subprocess.Popen[str]], payload: int) -> float:
    """Mean bits of content a second that each consumer got.

    Raises:
        RuntimeError: A generator failed.
    """
    rates = []
    for load in loads:
        said, why = load.communicate(timeout=120)
        if load.returncode:
            raise RuntimeError(f"onym-bench load: {why.strip()[-300:]}")
        told = json.loads(said)
        rates.append(told["exchanges"] / told["seconds"])
    return float(8 * payload * sum(rates) / len(rates))
