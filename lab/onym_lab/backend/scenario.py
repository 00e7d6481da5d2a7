"""The scenario file of `onym sim` and `onym load` for a replicate."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from onym_lab import tools
from onym_lab.backend.program import READY_S
from onym_lab.spec import App, Link, Node, Spec

SEGMENT = 4096
"""Octets of content in a segment of a file, where the experiment says nothing."""


def text(value: Any) -> str:
    """Write a value as TOML; JSON's strings, numbers and truth values are the same there."""
    if isinstance(value, dict):
        inner = ", ".join(f"{key} = {text(one)}" for key, one in value.items())
        return "{ " + inner + " }"
    return json.dumps(value)


def _time(seconds: float) -> str:
    return f"{max(0, round(seconds * 1e9))}ns"


def _table(kind: str, keys: dict[str, Any]) -> str:
    lines = [f"{key} = {text(value)}" for key, value in keys.items() if value is not None]
    return "\n".join([f"[[{kind}]]", *lines, ""])


def _node(node: Node, pit: bool = True) -> str:
    keys: dict[str, Any] = {"name": node.name, "cs": node.cs, "pit": node.pit if pit else None}
    if node.cost is not None:
        keys["cost"] = _time(node.cost)
        keys["backlog"] = node.backlog
        keys["cpu"] = f"{node.cpu * 100:g}" if node.cpu is not None else None
        if node.hog:
            keys["load"] = {
                "duty": f"{node.hog.duty * 100:g}",
                "on": _time(node.hog.on),
                "off": _time(node.hog.off),
                "phase": _time(node.hog.phase),
            }
    if not node.defences:
        keys["fairness"] = False
    return _table("node", keys)


def _link(link: Link, spec: Spec) -> str:
    downs = [
        [_time(fault.at), _time(fault.at + (fault.duration or spec.at_most))]
        for fault in spec.faults
        if fault.link in (f"{link.a}-{link.b}", f"{link.b}-{link.a}")
    ]
    return _table(
        "link",
        {
            "between": [link.a, link.b],
            "delay": _time(link.delay),
            "rate": f"{round(link.rate)}bit" if link.rate else None,
            "loss": f"{link.loss * 100:g}" if link.loss else None,
            "jitter": _time(link.jitter) if link.jitter else None,
            "queue": link.queue,
            "mtu": link.mtu,
            "down": downs or None,
        },
    )


def segments(app: App) -> int:
    """Tell how many segments a file of the application has."""
    octets, segment = int(app.options["octets"]), int(app.options.get("segment", SEGMENT))
    return max(1, math.ceil(octets / segment))


def _consumer(app: App) -> dict[str, Any]:
    options = app.options
    keys: dict[str, Any] = {
        "node": app.node,
        "prefix": app.prefix,
        "window": options.get("window"),
        "start": _time(options["start"]) if "start" in options else None,
        "lifetime": _time(options["lifetime"]) if "lifetime" in options else None,
        "refresh": _time(options["refresh"]) if "refresh" in options else None,
        "retries": options.get("retries"),
        "background": None if app.ends else True,
    }
    if app.kind == "files":
        keys["count"] = segments(app)
        keys["files"] = options["files"]
        keys["spacing"] = _time(1 / options["rate"])
    elif app.kind == "flood":
        lifetime = options.get("lifetime", 4.0)
        keys["count"] = options["total"]
        keys["window"] = options["total"]
        keys["lifetime"] = _time(lifetime)
        keys["refresh"] = _time(options.get("refresh", lifetime))
        keys["retries"] = 2**32 - 1
        keys["batch"] = options["batch"]
        keys["every"] = _time(options["every"])
    else:
        for key in ("count", "catalogue", "zipf", "batch"):
            keys[key] = options.get(key)
        keys["every"] = _time(options["every"]) if "every" in options else None
    return keys


SIMULATED = ("producer", "consumer", "files", "flood")
"""Kinds of applications that are written in a scenario."""


def apps(spec: Spec) -> list[App]:
    """List the scenario's applications in the order in which they are numbered there."""
    producers = [app for app in spec.apps if app.kind == "producer"]
    others = [app for app in spec.apps if app.kind in SIMULATED and app.kind != "producer"]
    return producers + others


def write(spec: Spec, only: App | None = None) -> str:
    """Write the scenario, with all applications or only one."""
    parts = [f'seed = {spec.seed}\nduration = "{_time(spec.at_most)}"\n']
    if spec.routes:
        parts.append('routes = "local"\n')
    if spec.strategies:
        parts.append("[strategy]")
        parts += [f"{text(prefix)} = {text(name)}" for prefix, name in spec.strategies.items()]
        parts.append("")
    parts += [_node(node) for node in spec.nodes]
    parts += [_link(link, spec) for link in spec.links]
    parts += [
        _table("route", {"node": node, "prefix": prefix, "via": via})
        for node, prefix, via in (spec.next_hops() if spec.routes else [])
    ]
    for app in [only] if only else apps(spec):
        if app.kind == "producer":
            keys = {
                "node": app.node,
                "prefix": app.prefix,
                "size": app.options.get("size", SEGMENT),
                "freshness": _time(app.options.get("freshness", 10.0)),
                "answers": app.options.get("answers"),
            }
            parts.append(_table("producer", keys))
        else:
            parts.append(_table("consumer", _consumer(app)))
    return "\n".join(parts)


def command(spec: Spec, app: App, node: str, folder: Path) -> list[str]:
    """Write the scenario of an application into a folder; gives the command line that runs it.

    Its transfers are written there too. Producers may run before and after measuring.
    """
    file = folder / f"{app.id}.toml"
    file.write_text(write(spec, app))
    longest = spec.at_most + spec.warmup + spec.cooldown + 10 * READY_S
    argv = [
        str(tools.onym()), "load", str(file), "--at", app.node, "--node", node, "--json",
        "--transfers", str(folder / f"{app.id}.csv"), "--duration", f"{longest:.3f}s",
    ]  # fmt: skip
    return [*argv, "--until-done"] if app.ends else argv
