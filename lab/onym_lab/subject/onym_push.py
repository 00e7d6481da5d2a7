"""Onym's push half: a file is published, and comes to those who subscribed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from onym_lab import tools, topology
from onym_lab.backend.scenario import text
from onym_lab.collect.client import Client, UnansweredError
from onym_lab.spec import App, Spec
from onym_lab.subject.base import Place
from onym_lab.subject.onym import Onym

SERVED = ("put", "get", "command")
"""Kinds of applications that can be told in the words of push."""
SCOPE = "6f6e796d2d6c6162"
"""The scope of all files, `onym-lab` in hexadecimal digits."""


class OnymPush(Onym):
    """`onym daemon` with its push half; `put` publishes a file, `get` subscribes to it.

    The node from which all others are nearest is rendezvous and topology manager.
    """

    name = "onym-push"
    known = "file"
    by_source = True

    def refusals(self, spec: Spec) -> list[str]:
        """Name what it cannot do."""
        reasons = super().refusals(spec)
        reasons += [
            f"{self.name}: {app.id} is a {app.kind}, and push has files only: put and get"
            for app in spec.apps
            if app.kind not in SERVED
        ]
        if spec.strategies:
            reasons.append(f"{self.name} has no forwarding strategies")
        if spec.transport != "udp":
            reasons.append(f"{self.name} joins nodes by udp here, not by {spec.transport}")
        return reasons

    def more(self, place: Place) -> dict[str, Any]:
        """Turn the push half on."""
        names = [node.name for node in place.spec.nodes]
        is_center = place.node.name == center(place.spec)
        return {
            "push.enabled": True,
            "push.node": f"{names.index(place.node.name) + 1:x}",
            "push.roles": ["rendezvous", "topology"] if is_center else [],
            "push.seed": place.spec.seed,
        }

    def tables(self, place: Place) -> list[str]:
        """Name the neighbours, on both ends of a link."""
        lines = []
        for port in place.ports:
            lines += ["[[push.link]]", f"face = {text(port.uri(place.transport))}"]
        return lines

    def is_up(self, place: Place) -> bool:
        """Tell whether it knows its neighbours and a rendezvous."""
        client = Client(place.socket)
        try:
            status = json.loads(client.ask("/localhost/onym/push/status", 0.5))
        except (UnansweredError, ValueError):
            return False
        finally:
            client.close()
        return bool(status["homes"]) and all(link["neighbour"] for link in status["links"])

    def command(self, app: App, place: Place, file: Path) -> list[str]:
        """Publish, or subscribe; a file is one publication."""
        node = ["--node", f"unix://{place.socket}", "--json"]
        if app.kind == "put":
            return [
                str(tools.onym()),
                "publish",
                identifier(app.prefix),
                str(file),
                "--keep",
                *node,
            ]
        return [
            str(tools.onym()), "subscribe", identifier(app.prefix), "--count", "1",
            "-o", str(file), *node,
        ]  # fmt: skip

    def is_served(self, app: App, place: Place, out: Path) -> bool:
        """Tell whether the node has its publisher."""
        del out
        node = ["--node", f"unix://{place.socket}", "--json"]
        try:
            said = tools.call([tools.onym(), "explain", "--push", identifier(app.prefix), *node])
        except RuntimeError:
            return False
        here = json.loads(said)["here"]
        return bool(here and here["publishers"])


def identifier(prefix: str) -> str:
    """Give the identifier of a file: the scope of all, and what its name hashes to."""
    return f"/{SCOPE}/{hashlib.sha256(prefix.encode()).hexdigest()[:16]}"


def center(spec: Spec) -> str:
    """Name the node with the least sum of hops to all others, the first of several."""
    graph = {name: dict.fromkeys(found, 1.0) for name, found in spec.weights().items()}

    def far(name: str) -> int:
        paths = (topology.shortest(graph, name, other) for other in graph if other != name)
        return sum(len(path or graph) for path in paths)

    return min(graph, key=far)
