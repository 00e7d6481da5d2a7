"""Onym's node taken apart: dispatcher, content store, backward router, name router."""

from __future__ import annotations

from http import HTTPStatus

from onym_lab import tools
from onym_lab.collect.client import UnansweredError
from onym_lab.collect.meter import Services, inside
from onym_lab.spec import Spec
from onym_lab.subject.base import Place, Subject, SubjectError, only_onym

ANSWER_S = 5.0
"""How long a service may take for a request."""
CONTROLLED = ("cs", "br", "nr")
"""Services whose counters are those of the node; the dispatcher splits clients' packets only."""
DOORS = {"cs": 2, "br": 3, "nr": 4, "nr-producer": 5}
"""Where each service is found by the others of its node: ports behind the node's own."""
CONTROL = 10
"""Control interfaces begin so far behind it, in the order of the services."""


class OnymChain(Subject):
    """Four `onym service` a node, joined by TCP as the manager joins them.

    ```text
    applications ─ dispatcher ─┬► content store ► backward router ► name router ─┬► neighbours
    neighbours ────────────────┘       (producers' Data and registrations) ◄─────┘
    ```
    """

    name = "onym-chain"
    chooses_address = True
    datasets = False
    is_exact = True

    def refusals(self, spec: Spec) -> list[str]:
        """Name what it cannot do."""
        try:
            tools.onym()
        except tools.MissingToolError as error:
            return [str(error)]
        reasons = only_onym(self.name, spec)
        if spec.strategies:
            reasons.append(f"{self.name} has no strategies by prefix: its router has one rule")
        return reasons

    def prepare(self, place: Place) -> list[str]:
        """Give the command line of the dispatcher, to which applications come."""
        return self.processes(place)["pd"]

    def processes(self, place: Place) -> dict[str, list[str]]:
        """Give the services; each makes its faces by itself, and again when they break."""
        node, host = place.node, _host(place)

        def door(service: str) -> str:
            return f"tcp4://{host}:{place.number + DOORS[service]}"

        def service(kind: str, part: str, *options: str) -> list[str]:
            port = place.number + CONTROL + [*CONTROLLED, "pd"].index(part)
            return [
                str(tools.onym()), "service", kind, "--name", f"{node.name}-{part}",
                "--control", f"{host}:{port}", *options,
            ]  # fmt: skip

        entries = place.addresses or ["0.0.0.0"]
        listens = [f"{place.transport}4://{one}:{place.number}" for one in entries]
        inward = [word for uri in listens for word in ("--listen", f"in={uri}")]
        outward = [
            word
            for port in place.ports
            if port.prefixes
            for word in ("--face", f"to-{port.peer}={port.uri(place.transport)}")
        ]
        return {
            "nr": service(
                "name-router", "nr", "--listen", f"consumer={door('nr')}",
                "--listen", f"producer={door('nr-producer')},side=producer",
                "--set", "registration=open", "--set", "match=longest", *outward,
            ),
            "br": service(
                "backward-router", "br", "--listen", f"in={door('br')}",
                "--face", f"up={door('nr')}", "--set", f"capacity={node.pit}",
            ),
            "cs": service(
                "content-store", "cs", *inward, "--listen", f"local={door('cs')}",
                "--face", f"up={door('br')}", "--set", f"capacity={node.cs}",
            ),
            "pd": service(
                "packet-dispatcher", "pd", "--listen", f"clients=unix://{place.socket}",
                "--set", f"consumer_path={door('cs')}",
                "--set", f"producer_path={door('nr-producer')}",
            ),
        }  # fmt: skip

    def is_up(self, place: Place) -> bool:
        """Tell whether every service has its faces, and the dispatcher its socket."""
        found: list[bool] = []
        inside(place.space, lambda: found.append(self.meter(place).is_ready(0.5)))
        return found == [True] and place.socket.exists()

    def settle(self, place: Place) -> None:
        """Give the name router its routes."""
        routes = [
            {"prefix": prefix, "face": f"to-{port.peer}", "cost": 0}
            for port in place.ports
            for prefix in port.prefixes
        ]
        answers: list[tuple[int, object]] = []

        def put() -> None:
            body = {"routes": routes}
            answers.append(self.meter(place).ask("nr", "/v1/routes", ANSWER_S, body))

        try:
            inside(place.space, put)
        except UnansweredError as error:
            raise SubjectError(f"routes of {place.node.name}: {error}") from error
        status, answer = answers[0]
        if status != HTTPStatus.OK:
            raise SubjectError(f"routes of {place.node.name}: {status} {answer}")

    def meter(self, place: Place) -> Services:
        """Ask the services that see every packet."""
        first = place.number + CONTROL
        ports = {part: first + n for n, part in enumerate(CONTROLLED)}
        return Services(_host(place), ports, place.space)


def _host(place: Place) -> str:
    """Where the services of a node find each other: its own address, or its loopback."""
    return place.addresses[0] if place.addresses else "127.0.0.1"
